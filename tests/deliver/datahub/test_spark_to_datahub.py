"""A Spark application that is set up for DataHub's agent, run with Headwater instead: what DataHub would be told."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from making import aspects, urns

PROGRAM = """
import sys
from pyspark.sql import SparkSession

folder = sys.argv[1]
spark = (
    SparkSession.builder.master("local[1]").appName("Nightly Load")
    .config("spark.ui.enabled", "false")
    .config("spark.datahub.emitter", "file")
    .config("spark.datahub.file.filename", f"{folder}/mcps.json")
    .config("spark.datahub.metadata.dataset.env", "DEV")
    .config("spark.datahub.metadata.dataset.materialize", "true")
    .config("spark.datahub.metadata.dataset.include_schema_metadata", "true")
    .config("spark.datahub.tags", "nightly")
    .getOrCreate()
)
spark.range(5).selectExpr("id", "id * 2 AS twice").write.parquet(f"{folder}/a")
spark.read.parquet(f"{folder}/a").selectExpr("id AS key", "twice + 1 AS more").write.parquet(f"{folder}/b")
spark.stop()
"""


@pytest.mark.live
def test_the_agents_settings_lead_to_datahub(
    tmp_path: Path, need: Callable[[str, str], None], wrong: Callable[[list[Any]], list[Any]]
) -> None:
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jre-headless")
    job = tmp_path / "job.py"
    job.write_text(PROGRAM)
    headwater = str(Path(sys.executable).with_name("headwater"))
    environment = {**os.environ, "HEADWATER_SPOOL": str(tmp_path / "spool"), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [headwater, "run", "--", sys.executable, str(job), str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr[-3000:]
    drain = [headwater, "spool", "drain", "--dir", str(tmp_path / "spool")]
    file = tmp_path / "mcps.json"
    for _ in range(60):  # a drainer of the host's may be at it still
        drained = subprocess.run(drain, capture_output=True, text=True, env=environment)
        if file.exists() and '"SUCCESS"' in file.read_text():
            break
    assert file.exists(), ran.stderr[-2000:] + drained.stdout + drained.stderr
    made = json.loads(file.read_text())
    assert wrong(made) == []
    assert urns(made, "dataJob") == {
        "urn:li:dataJob:(urn:li:dataFlow:(spark,Nightly Load,default),Nightly Load)"
    }
    edges = aspects(made, "dataJobInputOutput")[-1]
    outputs = [each["destinationUrn"] for each in edges["outputDatasetEdges"]]
    assert outputs == [
        f"urn:li:dataset:(urn:li:dataPlatform:file,{tmp_path}/{name},DEV)" for name in ("a", "b")
    ]
    assert any("more" in each["downstreams"][0] for each in edges["fineGrainedLineages"])
    assert aspects(made, "globalTags")[-1] == {"tags": [{"tag": "urn:li:tag:nightly"}]}
    assert aspects(made, "schemaMetadata")
