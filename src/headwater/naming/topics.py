"""naming.topics: a broker list and a topic -> its Dataset, under which any part of that list is found again."""

from __future__ import annotations

from collections.abc import Iterable

from headwater.naming._hosts import split_hosts
from headwater.naming._identity import Dataset, Symlink
from headwater.naming._rule import AliasRule

_PORT = 9092
_MOST_BROKERS = 32  # a list longer than this is no bootstrap list


def from_topic(bootstrap: str | Iterable[str], topic: str, *, canonical: str | None = None) -> Dataset:
    """Name a Kafka topic.

    The namespace is the first broker of the list, as Spark's, Flink's and Debezium's own lineage has it; each other
    broker is a symlink, so two programs whose lists overlap meet in one node without anybody configuring it.

    Args:
        bootstrap: a broker list, with listener prefixes (`SASL_SSL://`) or without.
        topic: the topic.
        canonical: the cluster's name or namespace (`prod`, `kafka://prod`); all brokers become symlinks then.

    >>> from_topic("PLAINTEXT://B1:9092,b2", "orders")  # doctest: +NORMALIZE_WHITESPACE
    Dataset(namespace='kafka://b1:9092', name='orders',
            symlinks=(Symlink(namespace='kafka://b2:9092', name='orders', type='LOCATION'),))
    """
    brokers = _namespaces(bootstrap)
    first = _cluster(canonical) if canonical else (brokers[0] if brokers else "kafka")
    others = (broker for broker in brokers[:_MOST_BROKERS] if broker != first)
    return Dataset(first, topic, tuple(Symlink(broker, topic, "LOCATION") for broker in others))


def broker_aliases(brokers: str | Iterable[str], canonical: str | None = None) -> tuple[AliasRule, ...]:
    """Rules that lead every broker of a cluster to one namespace: `canonical`, else the first broker.

    >>> [rule.to_dict() for rule in broker_aliases("b1:9092,b2:9092")]
    [{'namespace': 'kafka://b2:9092', 'to_namespace': 'kafka://b1:9092'}]
    """
    found = _namespaces(brokers)
    if not found:
        return ()
    target = _cluster(canonical) if canonical else found[0]
    return tuple(
        AliasRule(namespace=_literal(one), to_namespace=_literal(target)) for one in found if one != target
    )


def _namespaces(brokers: str | Iterable[str]) -> tuple[str, ...]:
    text = brokers if isinstance(brokers, str) else ",".join(brokers)
    return tuple(f"kafka://{_literal(host)}" for host in split_hosts(text, default=_PORT))


def _cluster(canonical: str) -> str:
    """A cluster's name may lack a port: it is a name and not an address."""
    hosts = split_hosts(canonical)
    return f"kafka://{_literal(hosts[0])}" if hosts else "kafka"


def _literal(text: str) -> str:
    """Braces mean something in a rule and nothing in a host."""
    return text.replace("{", "").replace("}", "")
