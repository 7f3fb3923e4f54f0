"""A DAG that submits a Spark job by Airflow's own operator; what the job must know of Airflow the provider puts into its properties."""

from __future__ import annotations

import os
from datetime import datetime

try:
    from airflow.sdk import dag, task
except ImportError:
    from airflow.decorators import dag, task
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

JOB = os.environ.get("HEADWATER_SUBMITTED", "")


@dag(schedule=None, start_date=datetime(2026, 1, 1), catchup=False, tags=["headwater"])
def headwater_submit():
    @task
    def prepare():
        return "ready"

    submit = SparkSubmitOperator(
        task_id="submit",
        application=JOB,
        application_args=[os.environ.get("HEADWATER_READ", ""), os.environ.get("HEADWATER_WRITTEN", "")],
        conn_id="spark_local",
        name="submitted",
        conf={"spark.ui.enabled": "false", "spark.driver.memory": "512m"},
        env_vars={"PYTHONPATH": os.environ.get("HEADWATER_SITE", "")},
    )
    prepare() >> submit


headwater_submit()
