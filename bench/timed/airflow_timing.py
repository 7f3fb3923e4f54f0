"""airflow_timing: an event of Airflow -> how long the console transport takes for it, and how long ours, in one process.

Airflow makes a process, a client and a transport for each event, so what is timed is all of that which is a transport's
own: import, making it, emit. The states of the server take turns.
"""

from __future__ import annotations

import json
import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from openlineage.client.transport.console import ConsoleConfig, ConsoleTransport
from openlineage.client.transport.transport import Config, Transport


class TimedConfig(Config):
    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> TimedConfig:
        return cls(params)


class Timed(Transport):
    kind = "timed"
    config_class = TimedConfig

    def __init__(self, config: TimedConfig) -> None:
        self.states: dict[str, dict[str, Any]] = config.params["states"]
        self.results = Path(config.params["results"])

    def emit(self, event: Any) -> None:
        file = os.open(self.results.with_suffix(".turn"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, b".")
        turn = os.lseek(file, 0, os.SEEK_CUR)
        os.close(file)
        state = list(self.states)[turn % len(self.states)]
        begun = time.perf_counter()
        ConsoleTransport(ConsoleConfig.from_dict({})).emit(event)
        console = time.perf_counter() - begun
        begun, cpu = time.perf_counter(), time.process_time()
        module = import_module("headwater.airflow")
        imported = time.perf_counter() - begun
        module.Transport(module.TransportConfig.from_dict(self.states[state])).emit(event)
        ours, used = time.perf_counter() - begun, time.process_time() - cpu
        row = {"state": state, "console": console, "ours": ours, "import": imported, "cpu": used}
        with self.results.open("a") as out:
            out.write(json.dumps(row) + "\n")
