import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.errors import ConfigError
from headwater.naming import (
    HIDDEN,
    broker_aliases,
    database,
    from_catalog,
    from_endpoint,
    from_jdbc,
    from_path,
    from_topic,
    in_memory,
    is_secret,
    scrub,
    scrub_mapping,
    unknown,
)

# where a password may stand; S is put in
URLS = [
    "jdbc:postgresql://fred:S@db:5432/shop",
    "jdbc:postgresql://db/shop?user=fred&password=S&ssl=true",
    "jdbc:postgresql://db/shop?sslpassword=S",
    "postgresql+psycopg://fred:S@db/shop",
    "postgresql://fred:S@h1,fred:S@h2/shop",
    "jdbc:mysql://fred:S@db/shop",
    "jdbc:mysql:loadbalance://fred:S@h1,fred:S@h2/shop",
    "jdbc:mysql://address=(host=db)(user=fred)(password=S)/shop",
    "jdbc:mysql://(host=db,user=fred,password=S)/shop",
    "mysql+pymysql://fred:S@db/shop?charset=utf8",
    "jdbc:sqlserver://db;databaseName=shop;user=fred;password=S",
    "jdbc:sqlserver://db;databaseName=shop;password={S};encrypt=true",
    "jdbc:jtds:sqlserver://db/shop;user=fred;password=S",
    "mssql+pyodbc://fred:S@db/shop?driver=x",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3D%7BX%7D%3BSERVER%3Ddb%3BUID%3Dfred%3BPWD%3DS%3BDATABASE%3Dd",
    "jdbc:oracle:thin:scott/S@//db:1521/svc",
    "jdbc:oracle:thin:scott/S@db:1521:sid",
    'jdbc:oracle:thin:scott/"S"@db',
    "jdbc:oracle:oci:scott/S@(DESCRIPTION=(ADDRESS=(HOST=db)(PORT=1521))(CONNECT_DATA=(SID=x)))",
    "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS=(HOST=db))(SECURITY=(PASSWORD=S)))",
    "oracle+oracledb://scott:S@db/?service_name=svc",
    "jdbc:db2://db:50000/shop:user=fred;password=S;",
    "jdbc:informix-sqli://db/shop:INFORMIXSERVER=x;user=fred;password=S",
    "jdbc:teradata://db/USER=fred,PASSWORD=S,DATABASE=shop",
    "jdbc:redshift:iam://db/shop?AccessKeyID=x&SecretAccessKey=S",
    "jdbc:snowflake://a-b.snowflakecomputing.com/?user=fred&password=S&db=d",
    "snowflake://fred:S@a-b/d/s",
    "jdbc:bigquery://https://www.googleapis.com/bigquery/v2:443;ProjectId=p;OAuthPvtKey=S",
    "jdbc:databricks://db:443/default;AuthMech=3;UID=token;PWD=S",
    "databricks://token:S@db?catalog=main",
    "jdbc:hive2://db:10000/d;user=fred;password=S",
    "jdbc:athena://Region=r;User=k;Password=S",
    "awsathena+rest://key:S@athena.us-east-1.amazonaws.com/d",
    "jdbc:h2:/some/db;USER=sa;PASSWORD=S",
    "jdbc:h2:tcp://sa:S@db/~/x",
    "jdbc:derby:/some/db;user=a;password=S",
    "jdbc:derby://db/x;password=S",
    "jdbc:duckdb:md:d?motherduck_token=S",
    "jdbc:phoenix:thin:url=http://fred:S@db:8765;authentication=BASIC",
    "jdbc:dremio:direct=db:31010;user=fred;password=S",
    "jdbc:clickhouse:http://fred:S@db/d?ssl=true&password=S",
    "jdbc:cassandra://db/ks?user=fred&password=S",
    "jdbc:cloudspanner:/projects/p/instances/i/databases/d?oauthToken=S",
    "mongodb+srv://fred:S@c.x.net/d?authSource=admin",
    "mongodb://fred:S@h1,h2/d",
    "redis://:S@db/0",
    "amqp://fred:S@db:5672/vhost",
    "jdbc:foo://fred:S@db/d",
    "jdbc:foo:bar;password=S",
    "https://fred:S@api.x.org/v1/orders?access_token=S",
    "https://api.x.org/v1/orders?api_key=S&page=1",
    "https://api.x.org/v1/orders?key=S",
    "https://b.s3.amazonaws.com/k?X-Amz-Credential=S&X-Amz-Signature=S&X-Amz-Security-Token=S",
    "https://acc.blob.core.windows.net/c/x?sv=2020&sig=S",
    "wasbs://c@acc.blob.core.windows.net/x?sig=S",
    "s3a://AKIAKEY:S@bucket/x",
    "ftp://fred:S@host/x",
    "SASL_SSL://fred:S@b1:9092,b2:9092",
]
TEXTS = [
    "Authorization: Bearer S",
    "authorization: Basic S",
    "-H 'Authorization: Bearer S'",
    '{"password": "S", "user": "fred"}',
    "{'db_password': 'S'}",
    '{\\"token\\": \\"S\\"}',
    "password: S",
    "curl --password S http://h",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=S;EndpointSuffix=x",
    'org.apache.kafka.ScramLoginModule required username="fred" password="S";',
    "spark.hadoop.fs.s3a.secret.key=S",
    "url=jdbc:postgresql://fred:S@db/x",
    "see http://fred:S@h/ and mysql://fred:S@h/",
    "COPY t FROM 's3://b' CREDENTIALS 'aws_access_key_id=x;aws_secret_access_key=S'",
    "CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:postgresql://db/shop', user 'fred', password 'S')",
    'OPTIONS (dbtable "t",\n  `sfPassword` "S"\n)',
    "OPTIONS ('token' 'S', a 'b')",
    "CREATE USER fred PASSWORD 'S'",
    "CREATE USER 'fred'@'%' IDENTIFIED WITH caching_sha2_password BY 'S' REQUIRE SSL",
    "alter user fred identified by S;",
    "CREATE DATABASE LINK l CONNECT TO scott IDENTIFIED BY S USING 'db'",
    "GRANT CONNECT, RESOURCE TO scott IDENTIFIED BY S",
    '{"sql": "ALTER USER fred IDENTIFIED BY \\"S\\""}',
    "curl -su fred:S http://h",
    "curl \\\n -X POST -u 'fred:S' http://h",
    "curl -ufred:S --proxy-user carl:S http://h",
    '["curl", "-u", "fred:S", "http://h"]',
    "tool --user=fred:S",
    "-----BEGIN PRIVATE KEY-----\nS\n-----END PRIVATE KEY-----",
]

# characters a driver takes as they are wherever a password may stand
passwords = st.text(string.ascii_letters + string.digits + "!$*_~-.", max_size=6).map(
    lambda around: f"{around}hunter2{around}"
)


def identities(text):
    yield from_jdbc(text, "t")
    yield from_jdbc(text, "t", {"password": "hunter2", "user": "fred"})
    yield from_path(text)
    yield from_path(text, encoded=True, trim=True)
    yield from_topic(text, "t")
    yield from_endpoint(text)
    yield from_endpoint(text, "/x")
    yield in_memory(text)
    yield unknown(text)
    for kind in ("hive", "rest", "nessie", "jdbc", "unity", "hadoop"):
        yield from_catalog(kind, "d.t", uri=text)
        yield from_catalog(kind, "d.t", warehouse=text, uri=text)
        yield from_catalog(kind, "d.t", location=text, warehouse=text)
    for platform in ("postgres", "mongodb", "elasticsearch", "snowflake", "cosmos"):
        yield database(platform, "t", host=text)
    for platform in ("duckdb", "ducklake", "lancedb"):
        yield database(platform, "t", path=text)


@pytest.mark.parametrize("form", URLS)
@settings(deadline=None, max_examples=25)
@given(password=passwords)
@example(password="hunter2")
def test_no_identity_holds_a_secret(form, password):
    url = form.replace("S@", f"{password}@").replace("=S", f"={password}").replace("{S}", f"{{{password}}}")
    url = url.replace("%3DS", f"%3D{password}").replace('"S"', f'"{password}"')
    assert "hunter2" in url
    for found in identities(url):
        assert "hunter2" not in repr(found), found
    for rule in broker_aliases(f"{url},b2"):
        assert "hunter2" not in repr(rule)


@pytest.mark.parametrize("form", [*URLS, *TEXTS])
@settings(deadline=None, max_examples=25)
@given(password=passwords)
@example(password="hunter2")
def test_scrubbing_takes_every_secret_and_is_done_once(form, password):
    text = form.replace("S@", f"{password}@").replace("=S", f"={password}").replace("{S}", f"{{{password}}}")
    text = (
        text.replace("%3DS", f"%3D{password}")
        .replace("\nS\n", f"\n{password}\n")
        .replace(": S", f": {password}")
    )
    for quote in ("'", '"', '\\"'):
        text = text.replace(f"{quote}S{quote}", f"{quote}{password}{quote}")
    for word in ("Bearer ", "Basic ", "--password ", "BY ", "by ", "fred:", "carl:"):
        text = text.replace(f"{word}S", f"{word}{password}")
    assert "hunter2" in text
    once = scrub(text)
    assert "hunter2" not in once
    assert scrub(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:postgresql://db:5432/shop?ssl=true",
        "s3://bucket/day=1/key=2/part-0.parquet",
        "abfss://container@account.dfs.core.windows.net/x",
        "primary.key.mode=record_key, key.converter: org.apache.X",
        "http://host:8080/a@b",
        "kafka://b1:9092,b2:9092",
        "sasl.oauthbearer.token.endpoint.url=https://idp/token",
        "select a.token_count from t where x = 1",
        "Unrecognized token 'x': was expecting 'null'",
        "OPTIONS (url 'jdbc:postgresql://db/shop', dbtable \"t\")",
        "rows: each is identified by id; a user is identified by mail",
        "docker run -u app:app --user=1000:1000 image; pip install --user http://h/x",
        "curl -u fred -o a:b http://h:80",
        "",
    ],
)
def test_what_is_no_secret_stays(text):
    assert scrub(text) == text


def test_what_scrubbing_leaves():
    assert scrub("curl --user fred:123 -u 'a:b c' h") == f"curl --user fred:{HIDDEN} -u 'a:{HIDDEN}' h"
    assert scrub("create user a identified by b; x") == f"create user a identified by {HIDDEN}; x"
    assert (
        scrub("jdbc:sqlserver://h;user=a;password=x;db=d")
        == f"jdbc:sqlserver://h;user=a;password={HIDDEN};db=d"
    )
    assert scrub("(user=u)(password=p)(port=1)") == f"(user=u)(password={HIDDEN})(port=1)"
    assert scrub("(password 'it''s', port '1')") == f"(password '{HIDDEN}', port '1')"
    assert scrub('{"a": 1, "password": "p", "b": 2}') == f'{{"a": 1, "password": "{HIDDEN}", "b": 2}}'


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "PWD",
        "passwd",
        "db.password",
        "connection.password",
        "sslKeyPassphrase",
        "token",
        "motherduck_token",
        "accessToken",
        "api_key",
        "apiKey",
        "apikey",
        "aws_secret_access_key",
        "fs.s3a.access.key",
        "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net",
        "sig",
        "X-Amz-Signature",
        "sas_token",
        "credentials",
        "gcp.credentials.json",
        "sasl.jaas.config",
        "basic.auth.user.info",
        "private_key",
        "snowflake.private.key",
        "Authorization",
        "Cookie",
        "clientSecret",
        "keyfile",
        "pass",
    ],
)
def test_keys_that_hold_secrets(key):
    assert is_secret(key)


@pytest.mark.parametrize(
    "key",
    [
        "user",
        "key.converter",
        "primary.key.mode",
        "pk.fields",
        "topics",
        "tasks.max",
        "key",
        "tokenizer",
        "max.tokens",
        "partition_key",
        "compass",
        "bypass",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.keystore.location",
        "credentials.provider",
        "database",
        "signal.data.collection",
        "message.key.columns",
        "passthrough",
        "authMech",
    ],
)
def test_keys_that_hold_none(key):
    assert not is_secret(key)


def test_a_configuration_is_copied_without_its_secrets():
    config = {
        "connection.url": "jdbc:mysql://fred:pw@h/d?password=pw",
        "connection.password": "pw",
        "nested": {"list": [{"token": 7, "x": "a"}, "http://u:pw@h"], "secret": {"deep": "pw"}, "none": None},
        "tuple": ("password=pw", 1),
        "port": 5432,
        "blob": b"pw",
        "empty": {"password": ""},
        3: "x",
    }
    before = repr(config)
    assert scrub_mapping(config) == {
        "connection.url": "jdbc:mysql://h/d?password=***",
        "connection.password": "***",
        "nested": {"list": [{"token": "***", "x": "a"}, "http://h"], "secret": "***", "none": None},
        "tuple": ["password=***", 1],
        "port": 5432,
        "blob": "***",
        "empty": {"password": ""},
        "3": "x",
    }
    assert repr(config) == before


def test_users_add_patterns():
    assert scrub_mapping({"iban": "x", "my_iban_no": "y", "other": "iban=z"}, ["iban"]) == {
        "iban": "***",
        "my_iban_no": "***",
        "other": "iban=***",
    }
    assert scrub("iban=x;a=b", ["^iban$"]) == "iban=***;a=b"
    with pytest.raises(ConfigError, match="secret pattern '\\('"):
        scrub("x", ["("])


def test_a_mapping_that_holds_itself_ends():
    loop: dict[str, object] = {"password": "pw"}
    loop["self"] = loop
    assert "pw" not in repr(scrub_mapping(loop))


@settings(deadline=None)
@given(st.text(max_size=80))
def test_no_text_is_refused(text):
    assert isinstance(scrub(text), str)


UNITS = [
    "identified by '",
    "grant a to ",
    "curl -u ",
    "-u a:b ",
    "--user '",
    "a=",
    "(a=",
    "http://",
    "eyJ",
    "://a:",
    "authorization:",
    "oracle:thin:",
    "bearer ",
    "x.x:",
    "--a ",
    '"a": "',
    'token "',
    "password '",
    "a@",
    "{",
]


@pytest.mark.parametrize("unit", UNITS)
def test_long_texts_end(unit):
    """Each of these once took a pattern quadratic time: minutes, at this length."""
    assert scrub(f"{unit * 50_000} password=hunter2").count("hunter2") == 0
