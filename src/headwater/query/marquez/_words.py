"""query.marquez._words: our words for states, types, ids and times -> Marquez's."""

from __future__ import annotations

from functools import lru_cache
from uuid import NAMESPACE_URL, UUID, uuid5

from headwater.facts import ref
from headwater.facts.definitions import NEW
from headwater.facts.derive import RANK

_OURS = uuid5(NAMESPACE_URL, "headwater:marquez")

STATES = {
    "START": "RUNNING",
    "OTHER": "RUNNING",
    "RUNNING": "RUNNING",
    "COMPLETE": "COMPLETED",
    "ABORT": "ABORTED",
    "FAIL": "FAILED",
    "NEW": "NEW",
}
STORED = (NEW, *(f"{rank} {word}" for word, rank in RANK.items()))
"""Every state as rows keep it."""
RUN_STATES = ("NEW", "RUNNING", "COMPLETED", "ABORTED", "FAILED")


def state(stored: str | None) -> str:
    """A run's state. Of one that only its children named, we know that it has begun."""
    return STATES[stored.split(" ", 1)[1]] if stored else "RUNNING"


def job_type(processing: str | None) -> str:
    """BATCH, STREAM or SERVICE."""
    word = (processing or "").upper()
    return {"STREAMING": "STREAM", "STREAM": "STREAM", "SERVICE": "SERVICE"}.get(word, "BATCH")


_STREAMS = (
    "kafka",
    "kinesis",
    "pulsar",
    "pubsub",
    "eventhub",
    "rabbitmq",
    "amqp",
    "mqtt",
    "nats",
    "sqs",
    "redpanda",
)


def dataset_type(kind: str | None, namespace: str) -> str:
    """STREAM where an event says so or the platform holds nothing but streams, else DB_TABLE."""
    word = (kind or "").upper()
    if word in ("STREAM", "TOPIC", "STREAMING"):
        return "STREAM"
    scheme = namespace.partition("://")[0].lower()
    return "STREAM" if not word and any(scheme.startswith(each) for each in _STREAMS) else "DB_TABLE"


def source_type(url: str) -> str:
    """What kind of source a url names: POSTGRESQL for `jdbc:postgresql://…` and `postgres://…`."""
    scheme = url.removeprefix("jdbc:").partition(":")[0].strip().upper()
    return {"POSTGRES": "POSTGRESQL", "": "OTHER"}.get(scheme, scheme)


@lru_cache(maxsize=50_000)
def _uuid(text: str) -> str:
    return str(uuid5(_OURS, text))


def job_uuid(namespace: str, name: str) -> str:
    """The id of a job."""
    return _uuid(f"job\n{ref(namespace, name)}")


def job_version_uuid(namespace: str, name: str, version: bytes) -> str:
    """The id of a job's version: of its name, its inputs and its outputs."""
    return _uuid(f"job version\n{version.hex()}\n{ref(namespace, name)}")


def schema_uuid(schema: bytes | None) -> str:
    """The id of a schema."""
    return _uuid(f"schema\n{schema.hex() if schema else ''}")


def dataset_version_uuid(namespace: str, name: str, run_id: str | None, at: int | None) -> str:
    """The id of a dataset's version: written by a run, or told of by itself at a time, or only known to be there."""
    what = f"run {run_id}" if run_id else "seen" if at is None or run_id == "" else f"at {at}"
    return _uuid(f"dataset version\n{what}\n{ref(namespace, name)}")


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID as it is written out."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
