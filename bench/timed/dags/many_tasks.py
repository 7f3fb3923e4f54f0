"""Many small tasks: each tells its start and its end."""

from __future__ import annotations

import os
from datetime import datetime

try:
    from airflow.sdk import dag, task
except ImportError:
    from airflow.decorators import dag, task


@dag(schedule=None, start_date=datetime(2026, 1, 1), catchup=False)
def many_tasks():
    @task
    def one(x):
        return x

    one.expand(x=list(range(int(os.environ["HEADWATER_TASKS"]))))


many_tasks()
