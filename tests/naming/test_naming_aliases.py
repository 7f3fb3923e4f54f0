import json
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.errors import ConfigError
from headwater.naming import DEFAULT_RULES, PLATFORMS, Aliases, AliasRule, _rule, database, from_jdbc

FOREIGN = [
    ("postgresql://H/x", "t", "postgres://H/x", "t"),
    ("postgresql://Db", "d.s.t", "postgres://db:5432", "d.s.t"),
    ("postgres://DB:5433", "d.s.t", "postgres://db:5433", "d.s.t"),
    ("mysql://h", "d.t", "mysql://h:3306", "d.t"),
    ("mariadb://h:3306", "d.t", "mysql://h:3306", "d.t"),
    ("sqlserver://H", "d.s.t", "mssql://h:1433", "d.s.t"),
    ("sqlserver://H/inst", "d.s.t", "mssql://h/inst", "d.s.t"),
    ("sqlserver://w.sql.azuresynapse.net:1433", "s.t", "sqlserver://w.sql.azuresynapse.net:1433", "s.t"),
    ("s3a://b", "k", "s3://b", "k"),
    ("s3n://b", "k", "s3://b", "k"),
    ("gcs://b", "k", "gs://b", "k"),
    ("abfs://c@a.dfs.core.windows.net", "k", "abfss://c@a.dfs.core.windows.net", "k"),
    ("wasb://c@a.blob.core.windows.net", "k", "wasbs://c@a.blob.core.windows.net", "k"),
    ("redshift://c.x.us-west-2.redshift.amazonaws.com:5439", "d.s.t", "redshift://c.us-west-2:5439", "d.s.t"),
    ("snowflake://Org-Acc.snowflakecomputing.com", "D.S.T", "snowflake://org-acc", "D.S.T"),
    ("snowflake://Org-Acc.snowflakecomputing.com:443", "D.S.T", "snowflake://org-acc", "D.S.T"),
    (
        "awsathena://athena.eu-west-1.amazonaws.com",
        "awsdatacatalog.d.t",
        "awsathena://athena.eu-west-1.amazonaws.com",
        "AwsDataCatalog.d.t",
    ),
    ("snowflake://XY12345.us-west-1.aws", "D.S.T", "snowflake://xy12345", "D.S.T"),
    ("snowflake://xy12345.us-west-2.aws", "D.S.T", "snowflake://xy12345.us-west-2.aws", "D.S.T"),
    ("clickhouse://h:8443", "d.t", "clickhouse://h:8123", "d.t"),
    ("azurecosmos://h/dbs/d", "/colls/c", "azurecosmos://h/dbs/d", "colls/c"),
    ("azurekusto://h/d", "t", "azurekusto://h", "d/t"),
    ("mongodb://h:27017/d", "c", "mongodb://h:27017", "d.c"),
    ("kafka://B1:9092", "Topic", "kafka://b1:9092", "Topic"),
    ("kafka://prod", "t", "kafka://prod", "t"),
    ("hive://ms:9083", "d.t", "hive://ms:9083", "d.t"),
    ("file", "/Data/X", "file", "/Data/X"),
    ("my-namespace", "anything", "my-namespace", "anything"),
]


@pytest.mark.parametrize(("namespace", "name", "to_namespace", "to_name"), FOREIGN)
def test_what_others_send_becomes_ours(namespace, name, to_namespace, to_name):
    assert Aliases(DEFAULT_RULES).rewrite(namespace, name) == (to_namespace, to_name)


@pytest.mark.parametrize("key", PLATFORMS)
def test_our_own_names_are_canonical(key):
    host = "w.sql.azuresynapse.net" if key == "synapse" else "h1.x.org"
    found = database(key, "t", host=host, database="d", region="r", account="1", path="/p")
    once = Aliases(DEFAULT_RULES).rewrite(found.namespace, found.name)
    assert once == (found.namespace, found.name)


def test_a_jvm_agents_table_joins_ours():
    ours = from_jdbc("jdbc:sqlserver://DB;databaseName=shop", "dbo.orders")
    assert Aliases(DEFAULT_RULES).rewrite("sqlserver://db", "shop.dbo.orders") == (ours.namespace, ours.name)


@pytest.mark.parametrize(
    ("rule", "given_", "after"),
    [
        ({"namespace": "a://{h}", "to_namespace": "b://{h}"}, ("a://x", "n"), ("b://x", "n")),
        ({"namespace": "a://{h}", "to_namespace": "b://{h}"}, ("a://x/y", "n"), None),  # no slash in {h}
        ({"namespace": "a://{h*}", "to_namespace": "b://{h*}"}, ("a://x/y", "n"), ("b://x/y", "n")),
        ({"namespace": "a://{h*}", "to_namespace": "b://{h}"}, ("a://x/y", "n"), ("b://x/y", "n")),
        ({"namespace": "a", "to_namespace": "b"}, ("aa", "n"), None),  # the whole text
        ({"namespace": "a.c", "to_namespace": "b"}, ("abc", "n"), None),  # a dot is a dot
        ({"name": "{t}_v{n}", "to_name": "{t}"}, ("x", "orders_v2"), ("x", "orders")),
        (
            {"namespace": "ns", "name": "{t}", "to_namespace": "{t:lower}", "to_name": "{t:upper}"},
            ("ns", "Ab"),
            ("ab", "AB"),
        ),
        ({"namespace": "{d}", "name": "{d}.{t}", "to_name": "{t}"}, ("x", "x.t"), ("x", "t")),
        ({"namespace": "{d}", "name": "{d}.{t}", "to_name": "{t}"}, ("x", "y.t"), None),
        ({"name": "{a}-{a}", "to_name": "{a}"}, ("x", "1-1"), ("x", "1")),
        ({"name": "{a}-{a}", "to_name": "{a}"}, ("x", "1-2"), None),
        (
            {"pattern": "demo/{t}", "canonical": "postgres://d/marts.{t}"},
            ("demo", "o"),
            ("postgres://d", "marts.o"),
        ),
        ({"pattern": "postgres://d/{t*}", "canonical": "x/{t*}"}, ("postgres://d", "a/b"), ("x", "a/b")),
    ],
)
def test_rules_match_and_rewrite(rule, given_, after):
    assert AliasRule.from_dict(rule).rewrite(*given_) == after


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: AliasRule(), "nothing to match"),
        (lambda: AliasRule(namespace="a"), "nothing to change"),
        (lambda: AliasRule(namespace="", to_name="b"), "namespace is empty"),
        (lambda: AliasRule(namespace="a", to_name=" "), "to_name is empty"),
        (lambda: AliasRule(namespace="a{x}", to_name="{y}"), r"uses \{y\}, the pattern has x"),
        (lambda: AliasRule(namespace="a", to_name="{y}"), "no variables"),
        (lambda: AliasRule(namespace="{a b}", to_name="b"), "is no variable"),
        (lambda: AliasRule(namespace="{a}", to_name="{a:title}"), "is no variable"),
        (lambda: AliasRule(namespace="{a", to_name="b"), "a brace is not closed"),
        (lambda: AliasRule(namespace="a}", to_name="b"), "a brace is not closed"),
        (lambda: AliasRule(namespace=7, to_name="b"), "a text was expected"),
        (lambda: AliasRule.parse("a => b"), "write it as"),
        (lambda: AliasRule.parse("a -> b -> c"), "write it as"),
        (lambda: AliasRule.parse(" -> b"), "namespace is empty"),
        (lambda: AliasRule.from_urns("postgres://d", "x/y"), "namespace/name"),
        (lambda: AliasRule.from_dict({"pattern": "a/b", "to": "c"}), "unknown pattern, to"),
    ],
)
def test_a_wrong_rule_says_what_is_wrong(make, says):
    with pytest.raises(ConfigError, match=says):
        make()


def test_rules_survive_json():
    for rule in DEFAULT_RULES:
        assert AliasRule.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule


def test_the_first_rule_that_matches_wins():
    aliases = Aliases(["a://keep -> a://keep", "a://{x} -> b://{x}"])
    assert aliases.rewrite("a://keep", "n") == ("a://keep", "n")
    assert aliases.rewrite("a://y", "n") == ("b://y", "n")
    assert aliases.rewrite("a://y", "n") == ("b://y", "n")  # remembered


def test_rules_follow_each_other():
    assert Aliases(["a -> b", "b -> c"]).rewrite("a", "n") == ("c", "n")


def test_a_circle_settles_on_its_smallest():
    aliases = Aliases(["a -> c", "c -> b", "b -> a", "z -> c"])
    assert {aliases.rewrite(start, "n") for start in "abcz"} == {("a", "n")}


def test_rules_that_never_settle_change_nothing():
    assert Aliases(["a{x*} -> aa{x*}"]).rewrite("ab", "n") == ("ab", "n")


def test_a_users_rule_and_the_default_port_agree():
    aliases = Aliases(["postgres://{h}:5432 -> postgres://prod", *DEFAULT_RULES])
    assert (
        aliases.rewrite("postgresql://h", "t")
        == aliases.rewrite("postgres://prod", "t")
        == ("postgres://prod", "t")
    )


words = st.text("abc/:.", min_size=1, max_size=4)
patterns = st.one_of(words, words.map(lambda w: w + "{x}"), words.map(lambda w: "{x*}" + w))
rules = st.builds(
    lambda left, right, tail: AliasRule(
        namespace=left, to_namespace=right + ("{x}" if "{x" in left and tail else "")
    ),
    patterns,
    words,
    st.booleans(),
)


@settings(deadline=None)
@given(st.lists(rules, max_size=6), words)
@example([AliasRule.parse("a -> b"), AliasRule.parse("b -> a")], "a")
def test_a_rewritten_identity_stays(some, namespace):
    aliases = Aliases(some)
    once = aliases.rewrite(namespace, "n")
    assert aliases.rewrite(*once) == once


@settings(deadline=None)
@given(st.sampled_from([f[0] for f in FOREIGN]) | st.text(max_size=30), st.text(max_size=20))
def test_the_default_rules_are_canonical_too(namespace, name):
    aliases = Aliases(DEFAULT_RULES)
    once = aliases.rewrite(namespace, name)
    assert aliases.rewrite(*once) == once


@pytest.mark.parametrize(
    ("rules", "namespace", "canonical"),
    [
        (DEFAULT_RULES, f"redshift://{'.' * 3000}x", f"redshift://{'.' * 3000}x:5439"),
        (["k://{a*}.{b*}.{c*}:9 -> k://{a}|{b}|{c}"], f"k://{'.' * 3000}", None),
        (["k://{a*}.{b*}.{c*}:9 -> k://{a}|{b}|{c}"], f"k://{'.' * 3000}:9", f"k://{'.' * 2996}|.|."),
        (["k://{a}.{b*} -> n://{a}|{b}"], f"k://{'x.' * 1000}/.", f"n://{'x.' * 999}x|/."),
    ],
    ids=["default", "no match", "match", "slash"],
)
def test_a_long_name_is_matched_in_no_time(rules, namespace, canonical):
    aliases, begun = Aliases(rules), process_time()
    assert aliases.rewrite(namespace, "t")[0] == (canonical or namespace)
    assert process_time() - begun < 1.0


@given(st.from_regex(r"(a|/|\.|V|W){1,6}", fullmatch=True), st.text("a/.b", max_size=9))
@example("V.W.V", "a.b/.a.b")
def test_a_long_text_is_matched_as_a_short_one_is(pattern, text):
    for at in range(pattern.count("V") + pattern.count("W")):
        kind = next(each for each in pattern if each in "VW")
        pattern = pattern.replace(kind, f"{{v{at}}}" if kind == "V" else f"{{v{at}*}}", 1)
    short = _rule._find(pattern, text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_rule, "_SHORT", -1)
        assert _rule._find(pattern, text) == short
