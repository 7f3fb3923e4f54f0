"""naming.aliases: rules -> one canonical identity for whatever namespace and name any producer sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headwater.naming._platforms import PLATFORMS
from headwater.naming._rule import AliasRule

_MOST_STEPS = 32
_MOST_REMEMBERED = 65_536


class Aliases:
    """Rules, first match first, applied until nothing changes.

    The outcome is canonical: rewriting it again changes nothing. Rules that chase each other in a circle settle on
    the smallest identity of that circle; rules that never settle leave the identity as it was.

    >>> Aliases(["kafka://{b}:9092 -> kafka://prod"]).rewrite("kafka://b1:9092", "orders")
    ('kafka://prod', 'orders')
    """

    __slots__ = ("_known", "rules")

    def __init__(self, rules: Iterable[AliasRule | str | Mapping[str, str]] = ()) -> None:
        self.rules: tuple[AliasRule, ...] = tuple(_read(rule) for rule in rules)
        self._known: dict[tuple[str, str], tuple[str, str]] = {}

    def __repr__(self) -> str:
        return f"Aliases({len(self.rules)} rules)"

    def rewrite(self, namespace: str, name: str) -> tuple[str, str]:
        """The canonical namespace and name."""
        key = (namespace, name)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            found = self._known[key] = self._settle(key)
        return found

    def _settle(self, start: tuple[str, str]) -> tuple[str, str]:
        trail = [start]
        while len(trail) <= _MOST_STEPS:
            after = self._step(*trail[-1])
            if after == trail[-1]:
                return after
            if after in trail:
                return min(trail[trail.index(after) :])
            trail.append(after)
        return start

    def _step(self, namespace: str, name: str) -> tuple[str, str]:
        for rule in self.rules:
            if namespace.startswith(rule.prefix) and (after := rule.rewrite(namespace, name)) is not None:
                return after
        return namespace, name


def _read(rule: AliasRule | str | Mapping[str, str]) -> AliasRule:
    if isinstance(rule, AliasRule):
        return rule
    return AliasRule.parse(rule) if isinstance(rule, str) else AliasRule.from_dict(rule)


def _default_rules() -> tuple[AliasRule, ...]:
    schemes = {
        "postgresql": "postgres",
        "sqlserver": "mssql",
        "mariadb": "mysql",
        "cockroachdb": "postgres",
        "mongodb+srv": "mongodb",
        "s3a": "s3",
        "s3n": "s3",
        "gcs": "gs",
        "abfs": "abfss",
        "wasb": "wasbs",
        "unity": "unitycatalog",
        "databricks": "unitycatalog",
    }
    # Great Expectations names a database by its SQLAlchemy url, driver and all. Where names have a database and a schema it
    # leaves out the former: such a namespace stays its own, so that a rule for it can be told from one for the real names.
    drivers = ("mysql", "mariadb", "clickhouse")
    rules = [
        *(AliasRule.parse(f"{each}+{{driver}}://{{rest*}} -> {each}://{{rest*}}") for each in drivers),
        # what the specification itself calls sqlserver stays so
        AliasRule.parse(
            "sqlserver://{h}.sql.azuresynapse.net:{p} -> sqlserver://{h:lower}.sql.azuresynapse.net:{p}"
        ),
        AliasRule.parse(
            "sqlserver://{h}.sql.azuresynapse.net -> sqlserver://{h:lower}.sql.azuresynapse.net:1433"
        ),
        *(AliasRule.parse(f"{old}://{{rest*}} -> {new}://{{rest*}}") for old, new in schemes.items()),
        # addresses where the specification has a shorter name
        AliasRule.parse(
            "redshift://{c}.{id}.{r}.redshift.amazonaws.com:{p} -> redshift://{c:lower}.{r:lower}:{p}"
        ),
        AliasRule.parse(
            "redshift://{c}.{id}.{r}.redshift-serverless.amazonaws.com:{p} -> redshift://{c:lower}.{r:lower}:{p}"
        ),
        AliasRule.parse(
            "snowflake://{account}.snowflakecomputing.com:443 -> snowflake://{account}.snowflakecomputing.com"
        ),
        AliasRule.parse("snowflake://{account}.snowflakecomputing.com -> snowflake://{account:lower}"),
        # what OpenLineage's clients add to a locator that names no region; Snowflake has none of that name
        AliasRule.parse("snowflake://{locator}.us-west-1.aws -> snowflake://{locator:lower}"),
        AliasRule.parse("unitycatalog://{host}:443 -> unitycatalog://{host:lower}"),
        # one ClickHouse server listens on four ports
        *(
            AliasRule.parse(f"clickhouse://{{h}}:{p} -> clickhouse://{{h:lower}}:8123")
            for p in (8443, 9000, 9440)
        ),
        # dbt's usual name of the catalog that has this name
        AliasRule(namespace="awsathena://{h}", name="awsdatacatalog.{t*}", to_name="AwsDataCatalog.{t*}"),
        # where the JVM agent departs from the specification
        AliasRule(namespace="azurecosmos://{h*}", name="/colls/{c*}", to_name="colls/{c*}"),
        AliasRule("azurekusto://{h}/{db}", "{table*}", "azurekusto://{h:lower}", "{db}/{table*}"),
        AliasRule("mongodb://{h}/{db}", "{c*}", "mongodb://{h:lower}", "{db}.{c*}"),
        AliasRule.parse("mssql://{h}/{instance} -> mssql://{h:lower}/{instance}"),
    ]
    for scheme, port in _ports().items():
        rules.append(AliasRule.parse(f"{scheme}://{{h}}:{{p}} -> {scheme}://{{h:lower}}:{{p}}"))
        if port is not None:
            rules.append(AliasRule.parse(f"{scheme}://{{h}} -> {scheme}://{{h:lower}}:{port}"))
    return tuple(rules)


def _ports() -> dict[str, int | None]:
    """Scheme -> default port, of the stores whose namespace is scheme://host:port."""
    ports: dict[str, int | None] = {}
    for platform in PLATFORMS.values():
        scheme, _, rest = platform.namespace.partition("://")
        if rest.startswith("{host}:{port}") and scheme != "sqlserver":
            ports.setdefault(scheme, platform.port)
    # a broker is never written without its port, so a name without one is a cluster's; Hive's two services have a port each
    return {**ports, "kafka": None, "hive": None}


DEFAULT_RULES: tuple[AliasRule, ...] = _default_rules()
"""Equivalences that hold everywhere; put your own rules before them: Aliases([*mine, *DEFAULT_RULES])"""
