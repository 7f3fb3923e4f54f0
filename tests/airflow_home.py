"""A version -> an Airflow in an environment of its own, for whichever suite needs one."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VERSIONS = ("3", "2.11")


def python_of(version: str) -> Path:
    return ROOT / ".venvs" / f"airflow-{version}" / "bin" / "python"


@dataclass
class Airflow:
    """One Airflow with a home of its own; its database is made once."""

    version: str
    home: Path
    dags: Path

    def environment(self, **more: str) -> dict[str, str]:
        no = ("AIRFLOW", "OPENLINEAGE", "HEADWATER", "PYTHONDONTWRITEBYTECODE")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(no)}
        path = os.pathsep.join([str(ROOT / "src"), *([kept["PYTHONPATH"]] if kept.get("PYTHONPATH") else [])])
        return {
            **kept,
            "PYTHONPATH": path,
            "PYTHONPYCACHEPREFIX": str(
                python_of(self.version).parents[1] / "pyc"
            ),  # compiled once, as what is installed
            "HOME": str(self.home),
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.db",
            "AIRFLOW__OPENLINEAGE__NAMESPACE": "live",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
            **more,
        }

    def command(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python_of(self.version)), "-m", "airflow", *words],
            env=self.environment(**more),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def migrate(self) -> None:
        done = self.command("db", "migrate")
        assert done.returncode == 0, done.stderr[-3000:]

    def test(self, dag: str, date: str, **more: str) -> str:
        """`airflow dags test` -> all that it wrote. A DAG with a failing task may end with any code."""
        done = self.command("dags", "test", dag, date, **more)
        assert "Traceback" not in done.stderr[:200], done.stderr
        return done.stdout + done.stderr


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []
