import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.naming import Aliases, Dataset, Symlink, broker_aliases, from_topic


@pytest.mark.parametrize(
    ("bootstrap", "namespace"),
    [
        ("b1:9092", "kafka://b1:9092"),
        ("B1", "kafka://b1:9092"),
        ("PLAINTEXT://b1:19092", "kafka://b1:19092"),
        ("SASL_SSL://B1.corp:9093", "kafka://b1.corp:9093"),
        ("kafka://b1:9092", "kafka://b1:9092"),
        ("[::1]:9092", "kafka://[::1]:9092"),
        (" b1:9092 ", "kafka://b1:9092"),
        ("u:pw@b1:9092", "kafka://b1:9092"),
        ("", "kafka"),
    ],
)
def test_one_broker_is_the_namespace(bootstrap, namespace):
    assert from_topic(bootstrap, "orders") == Dataset(namespace, "orders")


def test_the_first_broker_names_and_the_others_lead_to_it():
    found = from_topic("b2:9092, SSL://B1:9093,b2", "orders")
    assert found == Dataset("kafka://b2:9092", "orders", (Symlink("kafka://b1:9093", "orders", "LOCATION"),))
    assert from_topic(["b2:9092", "SSL://b1:9093"], "orders") == found


def test_a_cluster_may_have_a_name():
    found = from_topic("b1,b2", "orders", canonical="prod")
    assert found.namespace == "kafka://prod"
    assert [link.namespace for link in found.symlinks] == ["kafka://b1:9092", "kafka://b2:9092"]


brokers = st.lists(
    st.sampled_from(["b1:9092", "B2", "SSL://b3:9093", "b4:1"]), min_size=1, max_size=4, unique=True
)


@settings(deadline=None)
@given(brokers, st.sampled_from([None, "prod", "kafka://prod:1", "b4:1"]))
def test_any_part_of_the_list_ends_at_one_namespace(part, canonical):
    everyone = "b1:9092,b2:9092,b3:9093,b4:1"
    aliases = Aliases(broker_aliases(everyone, canonical))
    target = from_topic(everyone, "t", canonical=canonical)
    assert aliases.rewrite(from_topic(part, "t").namespace, "t") == (target.namespace, "t")


@settings(deadline=None)
@given(brokers, brokers)
def test_overlapping_lists_share_an_identity(one, other):
    known = [
        {d.identity, *(link.identity for link in d.symlinks)}
        for d in (from_topic(one, "t"), from_topic(other, "t"))
    ]
    hosts = [{host.lower() for host in part} for part in (one, other)]
    assert bool(known[0] & known[1]) == bool(hosts[0] & hosts[1])


def test_no_brokers_make_no_rules():
    assert broker_aliases("") == ()
    assert broker_aliases("b1:9092") == ()
    assert broker_aliases("{x}:1,b")[0].to_namespace == "kafka://x:1"


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=20))
def test_no_text_is_refused(bootstrap, topic):
    assert from_topic(bootstrap, topic).namespace.startswith("kafka")
    broker_aliases(bootstrap, topic or None)
