"""migrating.correlator_airflow: the settings of correlator-airflow and of Airflow's provider -> what becomes of each beside `headwater.airflow`."""

from __future__ import annotations

from headwater.migrating._rules import Rule

OURS = "headwater.airflow.Transport"
THEIRS = ("correlator", "airflow_correlator.transport.CorrelatorTransport")
_PROVIDER = "the provider reads it, whatever the transport"
_A = "AIRFLOW__OPENLINEAGE__"

TRANSPORT = (
    Rule("type", "becomes", "`correlator` is found by no OpenLineage client: in Airflow it is an ImportError", f"`{OURS}`"),
    Rule("url", "honoured", "of Headwater; or of Correlator, with `\"profile\": \"correlator\"`", example="http://h:5000"),
    Rule("api_key", "honoured", "sent as `X-API-Key` and as `Authorization: Bearer …`", example="k"),
    Rule("timeout", "honoured", "5 unless set, not 30: it is the drainer that waits, not the task", example="3"),
    Rule("verify_ssl", "honoured", example="false"),
)  # fmt: skip
"""Keys of the transport: in openlineage.yml below `transport`, or in the JSON of a variable."""

ENVIRONMENT = (
    Rule(f"{_A}TRANSPORT", "honoured", "a JSON text; its keys are those of `transport`"),
    Rule(f"{_A}CONFIG_PATH", "honoured", "the path of an openlineage.yml"),
    Rule(f"{_A}CONFIG_CONN_ID", "honoured", "a connection whose extra holds `{\"transport\": {…}}`"),
    Rule(f"{_A}NAMESPACE", "honoured", _PROVIDER),
    Rule(f"{_A}DISABLED", "honoured", _PROVIDER),
    Rule(f"{_A}DISABLED_FOR_OPERATORS", "honoured", _PROVIDER),
    Rule(f"{_A}SELECTIVE_ENABLE", "honoured", _PROVIDER),
    Rule(f"{_A}EMISSION_POLICY", "honoured", _PROVIDER),
    Rule(f"{_A}EXTRACTORS", "honoured", _PROVIDER),
    Rule(f"{_A}CUSTOM_RUN_FACETS", "honoured", _PROVIDER),
    Rule(f"{_A}DISABLE_SOURCE_CODE", "honoured", _PROVIDER),
    Rule(f"{_A}INCLUDE_FULL_TASK_INFO", "honoured", _PROVIDER),
    Rule(f"{_A}DEBUG_MODE", "honoured", _PROVIDER),
    Rule(f"{_A}DAG_STATE_CHANGE_PROCESS_POOL_SIZE", "honoured", _PROVIDER),
    Rule(f"{_A}EXECUTION_TIMEOUT", "honoured", f"{_PROVIDER}; an event of ours is on disk long before"),
    Rule(f"{_A}EXECUTE_IN_THREAD", "honoured", f"{_PROVIDER}; not needed here: nothing is sent from the task"),
    Rule(f"{_A}SPARK_INJECT_PARENT_JOB_INFO", "honoured", f"{_PROVIDER}; Headwater's Spark capture reads what it injects"),
    Rule(f"{_A}SPARK_INJECT_TRANSPORT_INFO", "honoured", f"{_PROVIDER}; works where `url` is http or https"),
    Rule("CORRELATOR_API_KEY", "honoured", "where a value says `${CORRELATOR_API_KEY}`"),
    Rule("CORRELATOR_URL", "honoured", "where a value says `${CORRELATOR_URL}`"),
)  # fmt: skip
"""Variables."""

RULES = (
    *(Rule(f"transport.{each.key}", each.verdict, each.why, each.to) for each in TRANSPORT),
    *ENVIRONMENT,
    Rule("pip install correlator-airflow", "becomes", to="`pip install 'headwater[airflow]'`"),
    Rule("OPENLINEAGE_CONFIG", "refused", "with JSON in it: it must be the path of a file"),
    Rule("$AIRFLOW_HOME/openlineage.yml", "becomes", "no client looks there", f"`{_A}CONFIG_PATH`"),
)
