"""A dlt pipeline as a task starts it: it says nothing of Airflow, its lineage finds the task by itself."""

import os

import dlt
import headwater.dlt

headwater.dlt.install(url=os.environ["HEADWATER_DLT_EVENTS"])
folder = os.environ["HEADWATER_DLT_EVENTS"].removeprefix("file:") + ".out"
pipeline = dlt.pipeline(
    "from_airflow", destination=dlt.destinations.filesystem(bucket_url=folder), pipelines_dir=f"{folder}.dlt"
)
pipeline.run([{"id": 1}], table_name="orders")
