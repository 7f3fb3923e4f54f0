from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openlineage.client.uuid import generate_static_uuid

from headwater.capture import parents

RUN, ROOT = "0192c3a4-0000-7000-8000-000000000001", "0192c3a4-0000-7000-8000-000000000002"
TASK = {
    "AIRFLOW_CTX_DAG_ID": "daily",
    "AIRFLOW_CTX_TASK_ID": "load",
    "AIRFLOW_CTX_LOGICAL_DATE": "2026-01-02T00:00:00+00:00",
    "AIRFLOW_CTX_TRY_NUMBER": "1",
}


@given(
    st.datetimes(datetime(1971, 1, 1), datetime(2200, 1, 1)),
    st.integers(-14 * 60, 14 * 60),
    st.text(st.characters(codec="utf-8")),
)
def test_run_ids_are_those_of_the_openlineage_client(at: datetime, minutes: int, text: str) -> None:
    at = at.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    assert parents.static_uuid(at, text) == str(generate_static_uuid(at, text.encode()))


def test_a_parent_that_is_named() -> None:
    found = parents.find(
        {
            **TASK,
            "OPENLINEAGE_PARENT_ID": f"s3://a/b/dag.task/{RUN}",
            "OPENLINEAGE_ROOT_PARENT_ID": f"ns/dag/{ROOT}",
        }
    )
    assert found == parents.Ancestry(
        parents.Ancestor("s3://a/b", "dag.task", RUN), parents.Ancestor("ns", "dag", ROOT)
    )
    alone = parents.find({"OPENLINEAGE_PARENT_ID": f"ns/job/{RUN}"})
    assert alone is not None
    assert alone.root == alone.parent


@pytest.mark.parametrize("text", ["", "x", f"job/{RUN}", "ns/job/not-a-uuid", "//", f"/job/{RUN}"])
def test_what_names_no_parent_is_passed_over(text: str) -> None:
    assert parents.find({"OPENLINEAGE_PARENT_ID": text}) is None


def test_the_variables_of_a_task_give_the_runs_that_the_provider_tells(tmp_path: Path) -> None:
    found = parents.find({**TASK, "AIRFLOW_HOME": str(tmp_path), "OPENLINEAGE_NAMESPACE": "prod"})
    at = datetime(2026, 1, 2, tzinfo=timezone.utc)
    assert found is not None
    assert found.parent == parents.Ancestor(
        "prod", "daily.load", str(generate_static_uuid(at, b"prod.daily.load.1.-1"))
    )
    assert found.root == parents.Ancestor("prod", "daily", str(generate_static_uuid(at, b"prod.daily.0")))
    older = {
        **TASK,
        "AIRFLOW_CTX_EXECUTION_DATE": TASK["AIRFLOW_CTX_LOGICAL_DATE"],
        "OPENLINEAGE_NAMESPACE": "prod",
    }
    del older["AIRFLOW_CTX_LOGICAL_DATE"]
    assert parents.find({**older, "AIRFLOW_HOME": str(tmp_path)}) == found
    assert UUID(found.parent.run).version == 7


def test_the_namespace_is_airflows_own_setting_first(tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").write_text("[core]\nx = %(y)s\n[openlineage]\nnamespace = of the file\n")
    there = {**TASK, "AIRFLOW_HOME": str(tmp_path), "OPENLINEAGE_NAMESPACE": "last"}

    def namespace(**more: str) -> str:
        found = parents.find({**there, **more})
        assert found is not None
        return found.parent.namespace

    assert namespace() == "of the file"
    assert namespace(AIRFLOW__OPENLINEAGE__NAMESPACE="of the variable") == "of the variable"
    assert namespace(AIRFLOW_HOME="/nowhere") == "last"
    (tmp_path / "airflow.cfg").write_bytes(b"\xff no ini [")
    assert namespace() == "last"


@pytest.mark.parametrize("missing", sorted(TASK))
def test_a_part_of_the_variables_tells_nothing(missing: str) -> None:
    assert parents.find({name: value for name, value in TASK.items() if name != missing}) is None


def test_where_airflow_tells_nothing_there_is_no_parent() -> None:
    assert parents.find({**TASK, "AIRFLOW__OPENLINEAGE__DISABLED": "True"}) is None
    assert parents.find({**TASK, "AIRFLOW_CTX_LOGICAL_DATE": "yesterday"}) is None
    assert parents.find({}) is None
