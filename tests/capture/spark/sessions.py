"""A live session with the capture installed, its records kept, and events read back; for the recorder and the live tests."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import headwater.spark

PLAIN = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For statements of few rows: to compile code for each takes longer than to go without, and what is told is the same."""


class Session:
    """A Spark application whose records and events are kept."""

    def __init__(self, root: Path, **conf: str) -> None:
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        from pyspark.sql import SparkSession

        self.root, self._events = root, root / "events.jsonl"
        master = conf.get("spark.master", "local[2]")
        builder = SparkSession.builder.master(master).appName("Programs")
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(root / "warehouse"),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            **conf,
        }
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self.capture = headwater.spark.install(
            self.spark, transport=f"file://{self._events}", namespace="tests"
        )
        self.records: list[dict[str, Any]] = []
        self._seen = 0
        """Bytes of the events that were taken already: ten thousand queries tell more than should be read each time."""
        plain = self.capture._handle

        def keep(record: dict[str, Any]) -> None:
            if record["kind"] != "app_start":  # may come before or after this stands
                told = {key: value for key, value in record.items() if key != "site"}  # of this machine
                self.records.append(json.loads(json.dumps(told)))
            plain(record)

        self.capture._handle = keep  # type: ignore[method-assign]

    @property
    def minor(self) -> str:
        """`4.1` of 4.1.4."""
        return ".".join(self.spark.version.split(".")[:2])

    @property
    def state(self) -> Any:
        """What interpretation knows of the application."""
        return self.capture._state

    def settle(self) -> None:
        """Wait until the listener bus is empty and all that it brought is told."""
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
        assert self.capture.flush(60)

    def peek(self) -> list[dict[str, Any]]:
        """The events since the last time, as they are now."""
        return self._read()[0]

    def _read(self) -> tuple[list[dict[str, Any]], int]:
        with open(self._events, "rb") as file:
            file.seek(self._seen)
            lines = [line for line in file if line.endswith(b"\n")]
        return [json.loads(line) for line in lines], self._seen + sum(map(len, lines))

    def take(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The records and events since the last time."""
        self.settle()
        records, self.records[:] = list(self.records), []
        events, self._seen = self._read()
        return records, events

    def stop(self) -> None:
        """End the application and the capture."""
        self.spark.stop()
        self.capture.close()
