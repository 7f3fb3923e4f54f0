"""A DAG: Spark by Airflow's own operator, then dlt in a shell."""

import os
from datetime import datetime

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag

STORY = os.environ.get("STORY", "")  # where the programs stand, and where their data lie
LAKE = os.environ.get("STORY_LAKE", "")


@dag(schedule=None, start_date=datetime(2026, 1, 1), catchup=False)
def nightly():
    gold = SparkSubmitOperator(
        task_id="gold",
        application=f"{STORY}/gold.py",
        application_args=[LAKE, *os.environ.get("STORY_LEFT_OUT", "").split()],
        conn_id="spark",
        name="gold",
        properties_file=os.environ.get("STORY_SPARK"),
        env_vars={"PYTHONPATH": os.environ.get("STORY_SITE", "")},
    )
    mart = BashOperator(
        task_id="mart", bash_command=f"$STORY_PYTHON {STORY}/mart.py {LAKE} {LAKE}/shop.duckdb"
    )
    gold >> mart


nightly()
