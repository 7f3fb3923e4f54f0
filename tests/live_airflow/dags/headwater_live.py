"""A DAG of everything that makes events: success, failure, a retry, mapped tasks, a shell, a Spark job, a dlt pipeline."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

try:
    from airflow.sdk import dag, task
except ImportError:
    from airflow.decorators import dag, task
from airflow.providers.standard.operators.bash import BashOperator

SEEN = os.environ["HEADWATER_SEEN"]
PYTHON = os.environ["HEADWATER_PYTHON"]
FIND = (
    "import sys; from headwater.capture import parents; above = parents.find();"
    " print(above.parent.told(), above.root.told(), sep='|', file=open(sys.argv[1], 'a'))"
)


def note(who: str) -> None:
    """Write down which run a capture would take for its parent here."""
    from headwater.capture import parents

    above = parents.find()
    line = {"who": who, "parent": above and above.parent.told(), "root": above and above.root.told()}
    with open(SEEN, "a") as file:
        file.write(json.dumps(line) + "\n")


@dag(schedule=None, start_date=datetime(2026, 1, 1), catchup=False, tags=["headwater"])
def headwater_live():
    @task
    def succeed():
        note("succeed")
        return [1, 2, 3]

    @task
    def mapped(x):
        note(f"mapped {x}")

    @task(retries=1, retry_delay=timedelta(seconds=0))
    def flaky():
        note("flaky")
        mark = Path(SEEN + ".flaky")
        if not mark.exists():
            mark.touch()
            raise RuntimeError("the first try fails")

    @task
    def fail():
        raise ValueError("on purpose")

    def start(engine, python):
        note(engine)
        job = Path(__file__).parents[1] / f"{engine}_job.py"
        subprocess.run([python, str(job)], check=True, timeout=300)

    @task
    def spark():
        start("spark", os.environ["HEADWATER_SPARK_PYTHON"])

    @task
    def dlt():
        start("dlt", os.environ["HEADWATER_DLT_PYTHON"])

    shell = BashOperator(task_id="shell", bash_command=f'{PYTHON} -c "{FIND}" "{SEEN}.shell"')
    first = succeed()
    first >> mapped.expand(x=first)
    first >> [flaky(), shell]
    if os.environ.get("HEADWATER_SPARK_PYTHON"):
        first >> spark()
    if os.environ.get("HEADWATER_DLT_PYTHON"):
        first >> dlt()
    first >> fail()


headwater_live()
