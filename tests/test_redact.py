"""What must not be kept is nowhere in the store, and what may be is as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headwater.cli.demo import recorded
from headwater.errors import ConfigError
from headwater.event import Limits, parse
from headwater.ingest import ingest, replay
from headwater.redact import Redaction
from headwater.redact._sql import hide_literals
from headwater.store import open_store

RUN = "3f5e83fa-3480-44ff-99c5-ff943904e5e8"
SECRET = "hunter2-4111111111111111"
ALL = Redaction(
    sql_literals=True,
    paths=("run.facets.environmentVariables.*", "*.facets.owner*.owners.mail", "inputs.inputFacets.*.rows"),
    drop=("job.facets.sourceCode", "outputs.facets.*.sample"),
    values=(r"\b\d{16}\b", r"hunter\d"),
)


def event(**facets: Any) -> dict[str, Any]:
    return {
        "eventTime": "2026-01-01T00:00:00Z",
        "eventType": "COMPLETE",
        "run": {"runId": RUN, "facets": facets.pop("run", {})},
        "job": {"namespace": "shop", "name": "4111111111111111", "facets": facets.pop("job", {})},
        "inputs": [{"namespace": "s3://lake", "name": "hunter2", **facets.pop("input", {})}],
        "outputs": [{"namespace": "s3://lake", "name": "out", "facets": facets.pop("output", {})}],
    }


FULL = event(
    run={
        "environmentVariables": {
            "_producer": "p",
            "environmentVariables": [{"name": "HOME", "value": SECRET}],
        },
        "errorMessage": {"message": f"card {SECRET} refused", "code": 4111111111111111},
        "parent": {"run": {"runId": RUN}, "job": {"namespace": "shop", "name": "4111111111111111"}},
    },
    job={
        "sql": {
            "query": f"SELECT * FROM t2 WHERE card = '{SECRET}' AND n IN (1, 2.5)",
            "dialect": "postgres",
        },
        "sourceCode": {"sourceCode": SECRET},
        "ownership": {"owners": [{"name": "me", "mail": SECRET}]},
    },
    input={"inputFacets": {"stats": {"rows": 12, "bytes": 3}}},
    output={"preview": {"sample": [SECRET], "kept": "yes"}},
)


def kept(redaction: Redaction, given: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    store = open_store("memory:")
    assert ingest(store, [json.dumps(given).encode()], Limits(), redaction).rejected == ()
    ((_, entry),) = store.log()
    tables = store.dump()
    assert replay(store) == 1
    assert store.dump() == tables  # the log has all that the tables have
    store.close()
    return json.loads(entry.raw), entry


def test_each_rule_hides_what_it_names_and_nothing_else() -> None:
    found, _ = kept(ALL, FULL)
    run, job = found["run"]["facets"], found["job"]["facets"]
    assert run["environmentVariables"] == {
        "_producer": "p",
        "environmentVariables": [{"name": "***", "value": "***"}],
    }
    assert run["errorMessage"] == {"message": "card ***-*** refused", "code": 4111111111111111}
    assert job["sql"]["query"] == "SELECT * FROM t2 WHERE card = ? AND n IN (?, ?)"
    assert "sourceCode" not in job
    assert job["ownership"] == {"owners": [{"name": "me", "mail": "***"}]}
    assert found["inputs"][0]["inputFacets"] == {"stats": {"rows": None, "bytes": 3}}
    assert found["outputs"][0]["facets"] == {"preview": {"kept": "yes"}}
    # what the graph is made of stays, whatever a pattern finds in it
    assert (found["job"]["name"], found["inputs"][0]["name"]) == ("4111111111111111", "hunter2")
    assert run["parent"] == FULL["run"]["facets"]["parent"]


def test_nothing_of_it_is_in_the_file(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/x.db")
    broken = json.dumps({**FULL, "eventTime": 5}).encode()
    halves = [broken[:-9], b'["' + SECRET.encode() + b'"]', b'"' + SECRET.encode() + b'"', b"  " + broken]
    twice = b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"a","name":"b","facets":{"x":{"v":"hunter2"},"x":{"v":"fine"}}}}'
    outcome = ingest(store, [json.dumps(FULL).encode(), broken, twice, *halves], Limits(), ALL)
    assert (outcome.stored, len(outcome.rejected)) == (2, 5)
    told = (
        json.dumps(store.rejected())
        + repr(store.dump())
        + "".join(entry.raw.decode() for _, entry in store.log())
    )
    store.close()
    assert "hunter2" not in told.replace("s3://lake\\nhunter2", "").replace('"name":"hunter2"', "").replace(
        '\\"name\\":\\"hunter2\\"', ""
    )
    assert SECRET not in told


def test_secrets_in_copied_configuration_are_hidden_unless_someone_says_otherwise() -> None:
    facets = {
        "environmentVariables": {
            "environmentVariables": [
                {"name": "DB_PASSWORD", "value": "pw"},
                {"name": "HOME", "value": "/root"},
            ]
        },
        "spark_properties": {
            "properties": {
                "spark.app.name": "x",
                "fs.s3a.secret.key": "k",
                "url": "jdbc:postgresql://me:pw@db/x",
            }
        },
    }
    found, _ = kept(Redaction(), event(run=facets))
    assert found["run"]["facets"]["environmentVariables"]["environmentVariables"] == [
        {"name": "DB_PASSWORD", "value": "***"},
        {"name": "HOME", "value": "/root"},
    ]
    assert found["run"]["facets"]["spark_properties"]["properties"] == {
        "spark.app.name": "x",
        "fs.s3a.secret.key": "***",
        "url": "jdbc:postgresql://db/x",
    }
    found, _ = kept(Redaction(secrets=False), event(run=facets))
    assert found["run"]["facets"] == facets


@pytest.mark.parametrize(
    "told",
    [
        {"run": {"errorMessage": {"message": "no login with password=hunter2-x", "stackTrace": "…"}}},
        {"run": {"errorMessage": {"message": "…", "stackTrace": "at postgres://me:hunter2-x@db/shop"}}},
        {"output": {"dataSource": {"name": "db", "uri": "postgres://me:hunter2-x@db:5432/shop"}}},
        {"output": {"dataSource": {"name": "db", "uri": "jdbc:mysql://db/shop?user=me&password=hunter2-x"}}},
        {"output": {"dataSource": {"name": "db", "uri": "jdbc:snowflake://a.example.org/?token=hunter2-x"}}},
        {"output": {"dataSource": {"name": "db", "uri": "jdbc:sqlserver://db;user=me;PWD=hunter2-x"}}},
        {"output": {"dataSource": {"name": "db", "uri": "https://acc.example.org/lake?sv=1&sig=hunter2-x"}}},
        {"output": {"dataSource": {"uri": "db", "more": {"uri": "mysql://db/shop?api_key=hunter2-x"}}}},
    ],
)
def test_secrets_that_a_text_quotes_are_hidden(told: dict[str, Any]) -> None:
    raw = json.dumps(event(**told), separators=(",", ":"), ensure_ascii=False).encode()
    kept = Redaction().apply(raw)
    assert b"hunter2-x" not in kept
    assert Redaction().apply(kept) == kept
    assert Redaction(secrets=False).apply(raw) == raw


@pytest.mark.parametrize("redaction", [Redaction(), ALL], ids=["default", "all"])
def test_what_no_rule_touches_keeps_its_bytes(redaction: Redaction) -> None:
    odd = b'{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"a","name":"b","facets":{"n":{"v":1.10,"w":12345678901234567890123,"x":"\\u00e9"}}}}'
    for line in [*recorded(), odd]:
        raw = parse(line).raw
        if b'"sql"' not in raw or redaction is not ALL:
            assert redaction.apply(raw) == raw


texts = st.text(alphabet="a1'\"\\-/*\n$ `?.[]e_*", max_size=40) | st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
facets = st.dictionaries(
    st.sampled_from(["sql", "environmentVariables", "owners", "x"]),
    st.dictionaries(texts | st.just("query"), values, max_size=3),
    max_size=3,
)
rules = st.builds(
    Redaction,
    secrets=st.booleans(),
    sql_literals=st.booleans(),
    paths=st.sampled_from([(), ("run.facets.*.a*",), ("*.facets.x",)]),
    drop=st.sampled_from([(), ("job.facets.x.*",)]),
    values=st.sets(st.sampled_from([r"^a", r"\*", r"\d+$", r"(?<=a)1", r"[^a]+", r"a|\*\*"]), max_size=3).map(
        tuple
    ),
)


@given(rules, facets, facets)
def test_what_is_applied_twice_changes_nothing(
    redaction: Redaction, run: dict[str, Any], job: dict[str, Any]
) -> None:
    raw = parse(json.dumps(event(run=run, job=job))).raw
    once = redaction.apply(raw)
    assert redaction.apply(once) == once
    before, after = parse(raw), parse(once)
    assert (after.run_id, after.job.namespace, after.job.name) == (
        before.run_id,
        before.job.namespace,
        before.job.name,
    )  # type: ignore[union-attr]


@given(texts, st.sampled_from([None, "spark", "postgres", "unheard-of"]))
@example("date'2020-01-01'", None)
@example("'it\\'s secret' OR 'x'", None)
def test_statements_are_hidden_once_and_for_all(text: str, dialect: str | None) -> None:
    once = hide_literals(text, dialect)
    assert hide_literals(once, dialect) == once


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ("SELECT 'a''b', N'x', E'a\\'b', date'2020-01-01', X'ff' FROM t1", "postgres", "SELECT ?, ?, ?, date?, ? FROM t1"),
        ('SELECT "a" FROM "T"', "snowflake", 'SELECT "a" FROM "T"'),
        ('SELECT "a" FROM `T`', "spark", "SELECT ? FROM `T`"),
        ('SELECT "a" FROM t', None, "SELECT ? FROM t"),
        ("SELECT 'C:\\', secret FROM t", "postgres", "SELECT ?, secret FROM t"),
        ("SELECT 'it\\'s', c FROM t", "spark", "SELECT ?, c FROM t"),
        ("SELECT 'C:\\' , 'secret'", None, "SELECT ?"),  # nobody can tell where the first one ends
        ("SELECT $$se'cret$$, $a$ x $$ y $a$, $1 FROM t", None, "SELECT ?, ?, $1 FROM t"),
        ("SELECT a1, t2.c3, 1.5e-7, .5, 0xff, 1_000 FROM x -- secret\nWHERE /* secret */ n = -5", None, "SELECT a1, t2.c3, ?, ?, ?, ? FROM x  \nWHERE   n = -?"),
        ("SELECT 'never closed secret", None, "SELECT ?"),
        ("SELECT a[1], b['k'] FROM t", "spark", "SELECT a[?], b[?] FROM t"),
    ],
)  # fmt: skip
def test_literals(text: str, dialect: str | None, expected: str) -> None:
    assert hide_literals(text, dialect) == expected


@given(
    st.text(alphabet="secrt' ", min_size=1, max_size=12).filter(lambda t: t.strip(" '")),
    st.sampled_from([None, "spark", "postgres"]),
)
def test_no_part_of_a_quoted_text_stays(text: str, dialect: str | None) -> None:
    statement = "SELECT 0 FROM q WHERE x = '" + text.replace("'", "''") + "' AND y = z"
    assert hide_literals(statement, dialect) == "SELECT ? FROM q WHERE x = ? AND y = z"


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"paths": ("run.runId",)}, "leads into no facet"),
        ({"paths": ("*",)}, "leads into no facet"),
        ({"drop": ("job.name.x",)}, "leads into no facet"),
        ({"paths": ("run.facets",)}, "leads into no facet"),
        ({"paths": ("run..x",)}, "empty part"),
        ({"drop": ("ruun.facets.x",)}, "leads into no facet"),
        ({"values": ("(",)}, "no regular expression"),
        ({"values": ("x*",)}, "everything"),
    ],
)
def test_bad_rules_are_refused_at_start(rules: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Redaction(**rules)


def test_long_and_nasty_statements_cost_no_more_than_their_length() -> None:
    """Twice the length takes about twice as long, not four times: counted in steps of the machine, not seconds."""
    import sys

    def steps(text: str) -> int:
        count = 0

        def trace(*_: Any) -> Any:
            nonlocal count
            count += 1
            return trace

        sys.settrace(trace)
        try:
            hide_literals(text)
        finally:
            sys.settrace(None)
        return count

    for piece in ("''", "'a'", "\\'", "/*", "$a$", "[[", "1", '"', "--\n", "`"):
        few, many = steps(piece * 200), steps(piece * 400)
        assert many < 3 * few + 100, piece
