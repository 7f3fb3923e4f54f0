"""naming._urls: a JDBC or SQLAlchemy url and its properties -> which store, which host, which database; nobody's password.

Most drivers write `scheme://hosts/database?settings`; those that do not have a reader of their own in READERS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, unquote_plus

from headwater.naming._platforms import platform_key

_WRAPPERS = re.compile(
    r"^(?:jdbc|aws-wrapper|p6spy|otel|log4jdbc|datadog|pivotal|arrow)\s*:\s*(?=[A-Za-z])", re.IGNORECASE
)
_SCHEME = re.compile(r"([A-Za-z][\w.+\-]*):(.*)", re.DOTALL)
_SETTING = re.compile(r"([\w.\- ]+?)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;&?]*)")
_HOST_SUFFIXES = (  # a driver that several stores share, told apart by where the server stands
    ("mssql", ".sql.azuresynapse.net", "synapse"),
    ("mssql", ".datawarehouse.fabric.microsoft.com", "fabric"),
    ("postgres", ".redshift.amazonaws.com", "redshift"),
    ("postgres", ".redshift-serverless.amazonaws.com", "redshift"),
)
_DATABASE = (
    "database databasename dbname db conncatalog catalog catalog_name projectid project initial_catalog"
)
_SCHEMA = "currentschema schema connschema defaultschema defaultdataset dataset searchpath schema_name"


@dataclass(frozen=True, slots=True)
class Location:
    """Where a url points: a platform's key, or its bare scheme when nobody knows it, and the parts it names."""

    platform: str
    host: str | None = None
    port: str | None = None
    parts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """A url taken apart, before a driver's own rules."""

    scheme: str
    hosts: str
    path: tuple[str, ...]
    user: str
    settings: Mapping[str, str]
    rest: str  # all behind the scheme, settings included

    def first(self, names: str) -> str:
        return next((self.settings[name] for name in names.split() if self.settings.get(name)), "")


def bare(url: str) -> str:
    """The url without `jdbc:` and without the prefixes of wrapping drivers."""
    text = url.strip()
    while found := _WRAPPERS.match(text):
        text = text[found.end() :]
    return text


def locate(url: str, properties: Mapping[str, object] | None = None) -> Location | None:
    """Read a url; None when it has no form that any driver would take.

    >>> locate("jdbc:mysql:loadbalance://fred:pw@h1,h2:3307/shop?useSSL=false").parts
    {'database': 'shop'}
    """
    found = _SCHEME.fullmatch(bare(url))
    if not found:
        return None
    scheme = found[1].lower()
    given = {
        str(key).lower().replace(" ", "_"): str(value)
        for key, value in (properties or {}).items()
        if value is not None
    }
    pieces = _take_apart(scheme, found[2], given)
    reader = READERS.get(scheme) or READERS.get(scheme.partition("+")[0], _network)
    return reader(pieces)


def _take_apart(scheme: str, rest: str, given: Mapping[str, str]) -> _Pieces:
    cut = re.search(r"[?;#]", rest)
    head, tail = (rest[: cut.start()], rest[cut.start() :]) if cut else (rest, "")
    settings = {**given, **_settings(tail)}
    _, slashes, place = head.partition("//")
    user = ""
    if not slashes:
        return _Pieces(scheme, "", (), given.get("user", ""), settings, rest)
    if "@" in place:
        before, _, after = place.rpartition("@")
        if "," in after.partition("/")[0] or "/" in before or "," not in before:
            user, place = before.partition(":")[0], after
        else:  # each host of the list has its own user
            place = ",".join(host.rpartition("@")[2] for host in place.split(","))
    hosts, _, path = place.partition("/")
    segments = tuple(unquote(part) for part in path.split("/") if part)
    return _Pieces(scheme, hosts, segments, unquote(user) or settings.get("user", ""), settings, rest)


def _settings(text: str) -> dict[str, str]:
    """`;a=b;c={d}` and `?a=b&c=d`, under lower-case names."""
    decode = unquote_plus if text.startswith("?") else str
    found = ((key.strip().lower().replace(" ", "_"), value.strip()) for key, value in _SETTING.findall(text))
    return {
        key: decode(value[1:-1] if value.startswith("{") and value.endswith("}") else value)
        for key, value in found
    }


def _network(url: _Pieces) -> Location | None:
    """Any driver that writes hosts after two slashes."""
    platform = platform_key(url.scheme) or url.scheme.partition("+")[0]
    database, colon, first = (url.path[0] if url.path else "").partition(":")
    if colon:  # Db2 and Informix begin their settings there; slashes that follow are of a setting's path
        url = replace(url, path=(database,), settings={**url.settings, **_settings(first)})
    schema = url.path[1] if len(url.path) > 1 else ""
    hosts, port = url.hosts, url.first("port portnumber dbs_port")
    if "(" in hosts or "=" in hosts:  # MySQL's address=(host=h)(port=p)
        hosts, port = _bracketed_hosts(url.rest), port
    if not hosts and "//" not in url.rest and platform in ("postgres", "mysql"):  # jdbc:postgresql:shop
        hosts, database = "localhost", re.split(r"[?;/]", url.rest, maxsplit=1)[0]
    hosts = _cloud_sql(url) or hosts or url.first("host hostname servername server")
    if not hosts:
        if "///" not in url.rest or platform not in ("postgres", "mysql", "clickhouse"):
            return None
        hosts = "localhost"
    for shared, suffix, real in _HOST_SUFFIXES:
        if platform == shared and re.search(re.escape(suffix) + r"(?::[0-9]+)?$", hosts.lower()):
            platform = real
    parts = {
        "database": database or url.first(_DATABASE),
        "schema": schema or url.first(_SCHEMA).split(",")[0],
    }
    if instance := url.first("instancename instance"):
        parts["instance"] = instance
    return Location(platform, hosts, port or None, {key: value for key, value in parts.items() if value})


def _cloud_sql(url: _Pieces) -> str:
    """The instance of Cloud SQL that a socket leads to, whatever stands where the host should: each is `localhost` else."""
    named = (
        url.first("cloudsqlinstance") or url.first("host unix_socket unix_sock").partition("/cloudsql/")[2]
    )
    return named.strip("/").partition("/")[0].replace(":", ".")


def _bracketed_hosts(text: str) -> str:
    """Hosts of `(host=h)(port=p)` and `(host=h,port=p)` alike."""
    hosts: list[str] = []
    for key, value in re.findall(r"\b(host|port)\s*=\s*([^(),;&?\s]+)", text, re.IGNORECASE):
        if key.lower() == "host":
            hosts.append(value)
        elif hosts and ":" not in hosts[-1]:
            hosts[-1] += f":{value}"
    return ",".join(hosts)


def _sqlserver(url: _Pieces) -> Location | None:
    r"""sqlserver://host\instance:port;databaseName=d, jtds:sqlserver://host/d;instance=i, mssql+pyodbc:///?odbc_connect=…"""
    if "odbc_connect" in url.settings:
        odbc = _settings(unquote_plus(url.settings["odbc_connect"]))
        server, _, port = odbc.get("server", odbc.get("address", "")).removeprefix("tcp:").partition(",")
        settings = {**odbc, "servername": server, "port": port or odbc.get("port", "")}
        url = _Pieces("mssql", "", (), "", settings, "")
    hosts = url.hosts or url.first("servername server")
    host, backslash, instance = hosts.partition("\\")
    name, colon, port = instance.partition(":")
    if backslash:
        hosts = f"{host}:{port}" if colon else host
    settings = dict(url.settings)
    if name:
        settings["instancename"] = name
    scheme = "mssql" if url.scheme in ("jtds", "microsoft") else url.scheme
    path = url.path
    if not name and len(path) == 1 and "\\" in path[0]:
        path = ()
    return _network(_Pieces(scheme, hosts, path, url.user, settings, url.rest)) if hosts else None


def _oracle(url: _Pieces) -> Location | None:
    """Thin, OCI and SQLAlchemy: //host:port/service, host:port:sid, a TNS description, ldap://host/service."""
    text = re.sub(r"^:?(?:thin|oci[0-9]?|kprb)?:?", "", url.rest, flags=re.IGNORECASE)
    login, at, place = text.rpartition("@")
    if url.rest.startswith("//"):  # SQLAlchemy
        login, place = url.user, text.rpartition("@")[2].removeprefix("//")
    elif not at:
        return None
    user = re.split(r"[/:]", login, maxsplit=1)[0].strip('"') or url.settings.get("user", "")
    schema = {"schema": unquote(user).upper()} if re.fullmatch(r"[\w$#%]+", user) else {}
    if "(" in place:
        hosts = _bracketed_hosts(place)
        named = re.search(r"(?:SERVICE_NAME|SID|INSTANCE_NAME)\s*=\s*([\w.$#\-]+)", place, re.IGNORECASE)
        return _oracle_at(hosts, None, named[1] if named else "", schema)
    place = re.split(r"[?;]", place, maxsplit=1)[0]
    protocol = re.match(r"(?:(ldaps?|tcps?):)?(?://)?", place, re.IGNORECASE)
    kind = protocol[1].lower() if protocol and protocol[1] else ""
    hosts, _, service = place[protocol.end() if protocol else 0 :].partition("/")
    if not service and (sid := re.fullmatch(r"(.+?)(?::([0-9]+))?:([A-Za-z][\w.$#\-]*)", hosts)):
        hosts, service = f"{sid[1]}:{sid[2]}" if sid[2] else sid[1], sid[3]
    service = re.split(r"[:/,]", service or url.first("service_name servicename sid"), maxsplit=1)[0]
    return _oracle_at(hosts, {"ldap": "389", "ldaps": "636"}.get(kind), service, schema)


def _oracle_at(hosts: str, port: str | None, service: str, schema: dict[str, str]) -> Location | None:
    if not re.fullmatch(r"[\w.,:\[\]\-]+", hosts):
        return None
    return Location("oracle", hosts, port, {**schema, **({"service": service.upper()} if service else {})})


def _teradata(url: _Pieces) -> Location | None:
    """teradata://host/DATABASE=d,DBS_PORT=1025: the settings stand where others write the database."""
    settings = {**url.settings, **_settings(";" + ";".join(url.path).replace(",", ";"))}
    path = () if any("=" in part for part in url.path) else url.path
    return _network(_Pieces(url.scheme, url.hosts, path, url.user, settings, url.rest))


def _redshift(url: _Pieces) -> Location | None:
    """redshift:iam://cluster:region/database, beside what others write."""
    named = re.fullmatch(r"([\w\-]+):([a-z]{2}(?:-[a-z]+)+-[0-9])", url.hosts)
    return _network(replace(url, hosts=f"{named[1]}.{named[2]}") if named else url)


def _snowflake(url: _Pieces) -> Location | None:
    """The names in the url are identifiers: unquoted ones are upper case."""
    found = _network(url)
    if found is None:
        return None
    names = {
        key: value.strip('"') if value.startswith('"') else value.upper()
        for key, value in found.parts.items()
    }
    return Location(found.platform, found.host, None, names)


def _schema_in_path(url: _Pieces) -> Location | None:
    """databricks://host:443/schema;ConnCatalog=c, ignite:thin://host/schema: unlike elsewhere, the path is the inner level."""
    found = _network(_Pieces(url.scheme, url.hosts, (), url.user, url.settings, url.rest))
    if found is None:
        return None
    inner = {"schema": url.path[-1]} if url.path and "schema" not in found.parts else {}
    return Location(found.platform, found.host, found.port, {**found.parts, **inner})


def _exasol(url: _Pieces) -> Location | None:
    """exa:host:port;schema=s, or exa+websocket://host:port/schema."""
    if url.hosts:
        return _schema_in_path(url)
    hosts = re.split(r"[;/]", url.rest, maxsplit=1)[0]
    return _schema_in_path(replace(url, hosts=hosts)) if hosts else None


def _bigquery(url: _Pieces) -> Location:
    """bigquery://project/dataset, or bigquery://https://…:443;ProjectId=p;DefaultDataset=d."""
    plain = not url.hosts.startswith(("http:", "https:"))
    dataset = url.path[0] if plain and url.path else url.first(_SCHEMA)
    parts = {"project": url.first("projectid project") or (url.hosts if plain else ""), "dataset": dataset}
    return Location("bigquery", None, None, {key: value for key, value in parts.items() if value})


def _athena(url: _Pieces) -> Location:
    """athena://Region=r;Catalog=c, or awsathena+rest://athena.r.amazonaws.com/schema."""
    settings = {**url.settings, **_settings(url.rest.lstrip("/:"))}
    place = re.search(r"athena\.([a-z0-9\-]+)\.amazonaws", url.hosts.lower())
    region = (
        place[1]
        if place
        else settings.get("region") or settings.get("awsregion") or settings.get("region_name", "")
    )
    schema = (
        url.path[0]
        if url.path and "=" not in url.path[0]
        else settings.get("schema") or settings.get("database", "")
    )
    parts = {
        "region": region,
        "catalog": settings.get("catalog") or settings.get("catalog_name", ""),
        "database": schema,
    }
    return Location("athena", None, None, {key: value for key, value in parts.items() if value})


def _spanner(url: _Pieces) -> Location | None:
    found = re.search(r"projects/([^/?;]+)/instances/([^/?;]+)(?:/databases/([^/?;]+))?", url.rest)
    if not found:
        return None
    return Location(
        "spanner",
        None,
        None,
        {"project": found[1], "instance": found[2], **({"database": found[3]} if found[3] else {})},
    )


def _file(url: _Pieces) -> Location | None:
    """H2, Derby, SQLite, DuckDB: a path where others have a host; with one, h2:tcp://host:port/path."""
    platform = platform_key(url.scheme) or url.scheme
    text = re.split(r"[?;]", url.rest, maxsplit=1)[0]
    if text.startswith("///"):  # SQLAlchemy: three slashes and a path, relative or not
        text = text[3:]
    elif text.startswith("//") and platform == "derby":
        return _network(_Pieces("derby_server", url.hosts, url.path, "", url.settings, url.rest))
    elif text.startswith("//"):
        text = text[2:]
    text = re.sub(r"^(?:file|directory|split|nio|zip):(?!//)", "", text.lstrip(":"))
    if platform == "duckdb" and re.match(r"/{0,3}(?:md|motherduck):", text):
        database = text.partition(":")[2].strip("/")
        return Location("motherduck", None, None, {"database": database} if database else {})
    if server := re.match(r"(?:tcp|ssl)://([^/]+)/(.*)", text):
        text = f"{server[1].rpartition('@')[2].lower()}/{server[2]}"
    text = text or url.settings.get("databasename", "")
    if platform == "derby":
        text = text or "metastore_db"
    if not text:
        text = ":memory:"
    return Location(platform, None, None, {"path": text})


def _phoenix(url: _Pieces) -> Location | None:
    """phoenix:zk1,zk2:2181:/hbase, phoenix:thin:url=http://host:8765."""
    text = re.sub(r"^(?:thin:url=|zk:|\+zk:|:)*", "", url.rest)
    if thin := re.match(r"https?://([^/;?]+)", text):
        return Location("phoenix", thin[1], None, {})
    found = re.match(r"([\w.,\-]+)(?::([0-9]+))?", text.lstrip("/"))
    return Location("phoenix", found[1], found[2], {}) if found else None


def _dremio(url: _Pieces) -> Location | None:
    """dremio:direct=host:31010;schema=s."""
    found = re.search(r"(?:direct|zk)=([^;/?]+)", url.rest)
    return _network(_Pieces("dremio", found[1] if found else url.hosts, (), url.user, url.settings, url.rest))


def _cassandra(url: _Pieces) -> Location | None:
    """cassandra://h1--h2:9042/keyspace."""
    return _network(
        _Pieces(url.scheme, re.sub(r"(?<!xn)--", ",", url.hosts), url.path, url.user, url.settings, url.rest)
    )


READERS: dict[str, Callable[[_Pieces], Location | None]] = {
    "sqlserver": _sqlserver,
    "mssql": _sqlserver,
    "jtds": _sqlserver,
    "microsoft": _sqlserver,
    "oracle": _oracle,
    "teradata": _teradata,
    "teradatasql": _teradata,
    "snowflake": _snowflake,
    "databricks": _schema_in_path,
    "spark": _schema_in_path,
    "ignite": _schema_in_path,
    "exa": _exasol,
    "redshift": _redshift,
    "bigquery": _bigquery,
    "athena": _athena,
    "awsathena": _athena,
    "spanner": _spanner,
    "cloudspanner": _spanner,
    "h2": _file,
    "derby": _file,
    "sqlite": _file,
    "duckdb": _file,
    "phoenix": _phoenix,
    "dremio": _dremio,
    "cassandra": _cassandra,
}
"""url scheme -> its reader, where the form is not scheme://hosts/database"""
