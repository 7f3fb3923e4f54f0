import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.naming import PLATFORMS, Dataset, from_jdbc, split_name

TNS = (
    "jdbc:oracle:thin:@(DESCRIPTION=(ADDRESS_LIST=(LOAD_BALANCE=ON)(ADDRESS=(PROTOCOL=tcp)(HOST=H1)(PORT=1521))"
    "(ADDRESS=(PROTOCOL=tcp)(HOST=h2)(PORT=1522)))(CONNECT_DATA=(SERVICE_NAME=sales.us)))"
)
REDSHIFT = "c1.abc.us-west-2.redshift.amazonaws.com"
ODBC = "DRIVER%3D%7BODBC+Driver+18%7D%3BSERVER%3Dtcp%3Ah%2C1434%3BDATABASE%3Dd%3BUID%3Du%3BPWD%3Dpw"

CASES = [
    # postgres and what speaks its wire
    ("jdbc:postgresql://DB/shop", "orders", "postgres://db:5432", "shop.public.orders"),
    ("jdbc:postgresql://db:5433/shop?ssl=true", "Sales.Orders", "postgres://db:5433", "shop.sales.orders"),
    ("jdbc:postgresql://db/Shop", '"Sales"."Orders"', "postgres://db:5432", "Shop.Sales.Orders"),
    ("jdbc:postgresql://db/shop?currentSchema=sales,public", "t", "postgres://db:5432", "shop.sales.t"),
    ("jdbc:postgresql://db/shop", "other.s.t", "postgres://db:5432", "other.s.t"),
    ("jdbc:postgresql://db", "s.t", "postgres://db:5432", "s.t"),
    ("jdbc:postgresql://h1,h2:5433/d", "s.t", "postgres://h1:5432,h2:5433", "d.s.t"),
    ("jdbc:postgresql://[3ffe::9]/d", "s.t", "postgres://[3ffe::9]:5432", "d.s.t"),
    ("jdbc:postgresql:shop", "t", "postgres://localhost:5432", "shop.public.t"),
    ("jdbc:postgresql:///shop", "t", "postgres://localhost:5432", "shop.public.t"),
    ("postgresql+psycopg://u:p%40w@db/shop", "t", "postgres://db:5432", "shop.public.t"),
    ("postgres://u:pw@db/shop", "t", "postgres://db:5432", "shop.public.t"),
    ("JDBC:PostgreSQL://db/shop", "t", "postgres://db:5432", "shop.public.t"),
    ("jdbc:aws-wrapper:postgresql://db/shop", "t", "postgres://db:5432", "shop.public.t"),
    ("jdbc:pivotal:greenplum://h/d", "t", "postgres://h:5432", "d.public.t"),
    ("cockroachdb://u:pw@h/d", "t", "postgres://h:26257", "d.public.t"),
    (f"jdbc:redshift:iam://{REDSHIFT}:5439/dev", "t", "redshift://c1.us-west-2:5439", "dev.public.t"),
    (f"redshift+redshift_connector://u:pw@{REDSHIFT}/dev", "S.T", "redshift://c1.us-west-2:5439", "dev.s.t"),
    (f"jdbc:postgresql://{REDSHIFT}:5439/dev", "t", "redshift://c1.us-west-2:5439", "dev.public.t"),
    ("jdbc:redshift:iam://C1:us-west-2/dev", "t", "redshift://c1.us-west-2:5439", "dev.public.t"),
    ("jdbc:redshift:iam://c1:5439/dev", "t", "redshift://c1:5439", "dev.public.t"),
    # instances of Cloud SQL, which stand where no host does
    ("jdbc:postgresql:///d?cloudSqlInstance=p:r:i&socketFactory=x", "t", "postgres://p.r.i:5432", "d.public.t"),
    ("jdbc:mysql://google/d?cloudSqlInstance=p:r:i", "t", "mysql://p.r.i:3306", "d.t"),
    ("postgresql+psycopg2://u:pw@/d?host=/cloudsql/p:r:i", "t", "postgres://p.r.i:5432", "d.public.t"),
    ("postgresql+pg8000://u:pw@/d?unix_sock=/cloudsql/p:r:i/.s.PGSQL.5432", "t", "postgres://p.r.i:5432", "d.public.t"),
    ("mysql+pymysql://u:pw@/d?unix_socket=/cloudsql/p:r:i", "t", "mysql://p.r.i:3306", "d.t"),
    ("jdbc:crate://h/", "t", "crate://h:5432", "doc.t"),
    # mysql and what speaks its wire
    ("jdbc:mysql://H/shop?useSSL=false", "Orders", "mysql://h:3306", "shop.Orders"),
    ("jdbc:mysql://app:pw@db:3307/shop", "`a`.`b`", "mysql://db:3307", "a.b"),
    ("jdbc:mysql:loadbalance://u:pw@h1,u:pw@h2:3307/d", "t", "mysql://h1:3306,h2:3307", "d.t"),
    ("jdbc:mysql:replication://h1,h2/d", "t", "mysql://h1:3306,h2:3306", "d.t"),
    ("jdbc:mysql:aurora://h/d", "t", "mysql://h:3306", "d.t"),
    ("jdbc:mysql+srv://h/d", "t", "mysql://h:3306", "d.t"),
    ("jdbc:mysql://address=(host=h)(port=3307)(user=u)(password=pw)/d", "t", "mysql://h:3307", "d.t"),
    ("jdbc:mysql://(host=h,port=3307,password=pw)/d", "t", "mysql://h:3307", "d.t"),
    ("mysql+pymysql://u:p/w@h/d", "t", "mysql://h:3306", "d.t"),
    ("jdbc:mariadb://h/d", "t", "mysql://h:3306", "d.t"),
    ("jdbc:singlestore://h/d", "t", "mysql://h:3306", "d.t"),
    ("jdbc:oceanbase://h/d", "t", "oceanbase://h:2881", "d.t"),
    # sql server
    ("jdbc:sqlserver://h", "s.t", "mssql://h:1433", "s.t"),
    ("jdbc:sqlserver://h;databaseName=D;user=u;password=pw", "t", "mssql://h:1433", "D.dbo.t"),
    ("jdbc:sqlserver://h;portNumber=1434;database=D", "[a b].[T]", "mssql://h:1434", "D.a b.T"),
    ("jdbc:sqlserver://h\\inst;databaseName=D", "t", "mssql://h/inst", "D.dbo.t"),
    ("jdbc:sqlserver://h\\inst:1444", "s.t", "mssql://h:1444/inst", "s.t"),
    ("jdbc:sqlserver://h;instanceName=inst", "s.t", "mssql://h/inst", "s.t"),
    ("jdbc:sqlserver://;serverName=3ffe:8311::9", "s.t", "mssql://[3ffe:8311::9]:1433", "s.t"),
    ("jdbc:sqlserver://;servername=SomeServer", "s.t", "mssql://someserver:1433", "s.t"),
    ("jdbc:sqlserver://h;databaseName=D", "Other..t", "mssql://h:1433", "Other.dbo.t"),
    ("jdbc:sqlserver://h;databaseName=D", "[O t]..[t]", "mssql://h:1433", "O t.dbo.t"),
    ("jdbc:sqlserver://h;databaseName=D", "srv.Other..t", "mssql://h:1433", "srv.Other.t"),
    ("jdbc:jtds:sqlserver://h:1444/D;instance=i", "t", "mssql://h:1444/i", "D.dbo.t"),
    ("jdbc:microsoft:sqlserver://h;database=D", "t", "mssql://h:1433", "D.dbo.t"),
    (f"mssql+pyodbc:///?odbc_connect={ODBC}", "t", "mssql://h:1434", "d.dbo.t"),
    ("mssql+pyodbc://u:pw@h/d?driver=x", "t", "mssql://h:1433", "d.dbo.t"),
    ("jdbc:sqlserver://w.sql.azuresynapse.net;database=d", "t", "sqlserver://w.sql.azuresynapse.net:1433", "dbo.t"),
    ("jdbc:sqlserver://w.datawarehouse.fabric.microsoft.com:1433;database=d", "t", "fabric-warehouse://w.datawarehouse.fabric.microsoft.com", "d.dbo.t"),
    # oracle
    ("jdbc:oracle:thin:@//H:1521/orcl", "s.t", "oracle://h:1521", "ORCL.S.T"),
    ("jdbc:oracle:thin:@h", '"s".t', "oracle://h:1521", "s.T"),
    ("jdbc:oracle:thin:@h:1522:sid", "s.t", "oracle://h:1522", "SID.S.T"),
    ("jdbc:oracle:thin:@h:sid", "s.t", "oracle://h:1521", "SID.S.T"),
    ("jdbc:oracle:thin:scott/tiger@//h/svc", "t", "oracle://h:1521", "SVC.SCOTT.T"),
    ("jdbc:oracle:oci:@h/svc:dedicated", "s.t", "oracle://h:1521", "SVC.S.T"),
    ("jdbc:oracle:thin:@tcps://h:2484/svc?retry_count=3", "s.t", "oracle://h:2484", "SVC.S.T"),
    ("jdbc:oracle:thin:@h1:1521,h2:1521/svc", "s.t", "oracle://h1:1521,h2:1521", "SVC.S.T"),
    ("jdbc:oracle:thin:@[3ffe::9]:1521/svc", "s.t", "oracle://[3ffe::9]:1521", "SVC.S.T"),
    (TNS, "s.t", "oracle://h1:1521,h2:1522", "SALES.US.S.T"),
    ("jdbc:oracle:thin:@ldap://l:7777/sales,cn=Ctx", "s.t", "oracle://l:7777", "SALES.S.T"),
    ("oracle+oracledb://scott:tiger@h:1521/?service_name=svc", "t", "oracle://h:1521", "SVC.SCOTT.T"),
    ("oracle://scott:tiger@h/svc", "s.t", "oracle://h:1521", "SVC.S.T"),
    # warehouses
    ("jdbc:snowflake://Org-Acc.snowflakecomputing.com/?db=d&schema=s", "t", "snowflake://org-acc", "D.S.T"),
    ("jdbc:snowflake://xy1.us-east-1.snowflakecomputing.com:443/?db=d", "t", "snowflake://xy1.us-east-1.aws", "D.PUBLIC.T"),
    ("snowflake://u:pw@xy1.us-central1.gcp/d/s", '"t"', "snowflake://xy1.us-central1.gcp", "D.S.t"),
    ("snowflake://u:pw@org-my_acc/d/s", "t", "snowflake://org-my-acc", "D.S.T"),
    ("jdbc:bigquery://https://www.googleapis.com/bigquery/v2:443;ProjectId=p;DefaultDataset=d", "t", "bigquery", "p.d.t"),
    ("bigquery://p/d", "t", "bigquery", "p.d.t"),
    ("bigquery://p", "`p2.d.t$20240101`", "bigquery", "p2.d.t"),
    ("bigquery://p", "p2:d.t", "bigquery", "p2.d.t"),
    ("jdbc:databricks://H:443/sales;ConnCatalog=Main;PWD=dapi", "T", "unitycatalog://h", "main.sales.t"),
    ("jdbc:databricks://h:443;ConnCatalog=main;ConnSchema=s", "t", "unitycatalog://h", "main.s.t"),
    ("databricks://token:dapi@h:8443?catalog=main", "s.t", "unitycatalog://h:8443", "main.s.t"),
    ("jdbc:spark://h:443/default;httpPath=x", "main.s.t", "unitycatalog://h", "main.s.t"),
    ("jdbc:hive2://h:10000/db;auth=noSasl?hive.x=1#y=2", "T", "hive://h:10000", "db.t"),
    ("jdbc:hive2://zk1:2181,zk2:2181/;serviceDiscoveryMode=zooKeeper", "t", "hive://zk1:2181,zk2:2181", "default.t"),
    ("jdbc:trino://h/c/s", "t", "trino://h:443", "c.s.t"),
    ("trino://u:pw@h:8080/c", "s.t", "trino://h:8080", "c.s.t"),
    ("jdbc:presto://h/c/s", "t", "presto://h:8080", "c.s.t"),
    ("jdbc:impala://h/d", "t", "impala://h:21050", "d.t"),
    ("jdbc:athena://Region=us-east-1;Catalog=c;Database=d", "t", "awsathena://athena.us-east-1.amazonaws.com", "c.d.t"),
    ("jdbc:awsathena://AwsRegion=eu-west-1;UID=k;PWD=pw", "d.t", "awsathena://athena.eu-west-1.amazonaws.com", "AwsDataCatalog.d.t"),
    ("awsathena+rest://k:pw@athena.us-east-1.amazonaws.com:443/d?s3_staging_dir=s3://x", "t", "awsathena://athena.us-east-1.amazonaws.com", "AwsDataCatalog.d.t"),
    ("jdbc:cloudspanner:/projects/p/instances/i/databases/d?credentials=/x", "t", "spanner://p:i", "d.t"),
    ("spanner+spanner:///projects/p/instances/i/databases/d", "s.t", "spanner://p:i", "d.s.t"),
    # others
    ("jdbc:clickhouse://h/d", "t", "clickhouse://h:8123", "d.t"),
    ("jdbc:clickhouse:http://h:8124/d", "x.t", "clickhouse://h:8124", "x.t"),
    ("jdbc:ch:https://h/", "t", "clickhouse://h:8123", "default.t"),
    ("clickhouse+native://u:pw@h/d", "t", "clickhouse://h:8123", "d.t"),
    ("jdbc:cassandra://h1--h2:9043/ks?localdatacenter=dc", "T", "cassandra://h1:9042,h2:9043", "ks.t"),
    ("jdbc:teradata://h/DATABASE=d,DBS_PORT=1026,PASSWORD=pw", "t", "teradata://h:1026", "d.t"),
    ("jdbc:teradata://h", "d.t", "teradata://h:1025", "d.t"),
    ("jdbc:db2://h:50000/d:user=u;password=pw;", "s.t", "db2://h:50000", "d.S.T"),
    ("jdbc:db2://h:50000/d:currentSchema=S;user=u;", "t", "db2://h:50000", "d.S.T"),
    ("jdbc:db2://h:50000/d:sslTrustStoreLocation=/opt/x.jks;", "t", "db2://h:50000", "d.T"),
    ("jdbc:db2://h/d", "s.t", "db2://h:6789", "d.S.T"),
    ("jdbc:informix-sqli://h/d:INFORMIXSERVER=s;password=pw", "t", "informix://h:9088", "d.t"),
    ("jdbc:sap://h/?databaseName=d", "s.t", "hana://h:30015", "d.S.T"),
    ("jdbc:vertica://h/d", "t", "vertica://h:5433", "d.public.t"),
    ("jdbc:phoenix:zk1,zk2:2181:/hbase", "s.t", "phoenix://zk1:2181,zk2:2181", "S.T"),
    ("jdbc:phoenix:thin:url=http://h:8765;serialization=x", "s.t", "phoenix://h:8765", "S.T"),
    ("jdbc:dremio:direct=h:31010;schema=s", "t", "dremio://h:31010", "s.t"),
    ("jdbc:ignite:thin://h1,h2:10801/s", "t", "ignite://h1:10800,h2:10801", "s.T"),
    ("jdbc:exa:H:8564;schema=S;password=pw", "t", "exasol://h:8564", "S.T"),
    ("jdbc:exa:h1,h2:8563", "s.t", "exasol://h1:8563,h2:8563", "S.T"),
    ("exa+websocket://u:pw@h/S", "t", "exasol://h:8563", "S.T"),
    ("jdbc:derby:", "s.t", "file:metastore_db", "S.T"),
    ("jdbc:derby:;databaseName=/some/db", "s.t", "file:/some/db", "S.T"),
    ("jdbc:derby:/some/db;create=true", "s.t", "file:/some/db", "S.T"),
    ("jdbc:derby://h/db;user=u", "s.t", "derby://h:1527", "db.S.T"),
    ("jdbc:h2:/some/db;USER=sa;PASSWORD=pw", "t", "h2:///some/db", "PUBLIC.T"),
    ("jdbc:h2:file:/some/db", "t", "h2:///some/db", "PUBLIC.T"),
    ("jdbc:h2:tcp://H:9092/~/db", "t", "h2://h:9092/~/db", "PUBLIC.T"),
    ("jdbc:h2:mem:x", "t", "h2://mem:x", "PUBLIC.T"),
    ("sqlite:////some/x.db", "t", "sqlite:///some/x.db", "t"),
    ("jdbc:sqlite:/some/x.db", "t", "sqlite:///some/x.db", "t"),
    ("sqlite:///x.db", "t", "sqlite://x.db", "t"),
    ("sqlite://", "t", "sqlite://:memory:", "t"),
    ("duckdb:////some/x.db", "t", "duckdb:///some/x.db", "main.t"),
    ("jdbc:duckdb:/some/x.db", "s.t", "duckdb:///some/x.db", "s.t"),
    ("jdbc:duckdb:", "t", "duckdb://:memory:", "main.t"),
    ("duckdb:///md:my_db?motherduck_token=x", "t", "motherduck://md", "my_db.main.t"),
    ("mongodb+srv://u:pw@c.x.net/d?authSource=admin", "c", "mongodb://c.x.net:27017", "d.c"),
    ("redis://:pw@h/0", "k", "redis://h:6379", "k"),
    # no driver of ours, or none at all
    ("jdbc:foo://u:pw@H:1/d?x=y", "t", "foo://h:1", "d.t"),
    ("jdbc:foo:bar;password=pw", "s.t", "foo:bar", "s.t"),
    ("nonsense", "t", "nonsense", "t"),
    ("", "t", "jdbc", "t"),
]  # fmt: skip


@pytest.mark.parametrize(("url", "table", "namespace", "name"), CASES)
def test_a_table_behind_a_url_has_one_name(url, table, namespace, name):
    assert from_jdbc(url, table) == Dataset(namespace, name)


PROPERTIES = [
    ("jdbc:sqlserver://h", {"database": "D"}, "mssql://h:1433", "D.dbo.t"),
    ("jdbc:sqlserver://h", {"databaseName": "D", "portNumber": 1444}, "mssql://h:1444", "D.dbo.t"),
    ("jdbc:sqlserver://h;databaseName=U", {"databaseName": "P"}, "mssql://h:1433", "U.dbo.t"),
    ("jdbc:sqlserver://", {"serverName": "S", "instanceName": "i"}, "mssql://s/i", "dbo.t"),
    ("jdbc:oracle:thin:@//h/svc", {"user": "scott", "password": "pw"}, "oracle://h:1521", "SVC.SCOTT.T"),
    ("jdbc:postgresql://h/d", {"currentSchema": "s", "user": None}, "postgres://h:5432", "d.s.t"),
    ("jdbc:snowflake://a-b.snowflakecomputing.com", {"db": "d", "schema": "s"}, "snowflake://a-b", "D.S.T"),
    ("jdbc:mysql://h", {"database": "d"}, "mysql://h:3306", "d.t"),
]


@pytest.mark.parametrize(("url", "properties", "namespace", "name"), PROPERTIES)
def test_properties_say_what_the_url_does_not(url, properties, namespace, name):
    assert from_jdbc(url, "t", properties) == Dataset(namespace, name)


def test_the_callers_schema_stands_before_the_stores_own():
    assert from_jdbc("jdbc:postgresql://h/d", "t", default_schema="s").name == "d.s.t"
    assert from_jdbc("jdbc:postgresql://h/d", "x.t", default_schema="s").name == "d.x.t"


def test_a_query_is_no_qualified_name():
    assert from_jdbc("jdbc:mysql://h/d", "(select a.b from a) x").name == "d.(select a.b from a) x"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.b", [("a", False), ("b", False)]),
        ('"a.b".c', [("a.b", True), ("c", False)]),
        ('"a""b"', [('a"b', True)]),
        ("[a]]b].`c`", [("a]b", True), ("c", True)]),
        ('"open', [("open", True)]),
        ("a..b", [("a", False), ("", False), ("b", False)]),
        ("", [("", False)]),
    ],
)
def test_names_are_split_at_unquoted_dots(text, parts):
    assert split_name(text) == parts


schemes = st.sampled_from(
    ["", "jdbc:", *(f"jdbc:{key}:" for key in PLATFORMS), "jdbc:oracle:thin:@", "jdbc:jtds:", "mssql+pyodbc:"]
)
garbage = st.text(
    st.sampled_from("ab1/:;@?&=#,.()[]{}\\\"'`% -") | st.characters(blacklist_categories=["Cs"]), max_size=40
)


@settings(deadline=None)
@given(schemes, st.sampled_from(["", "//", "///", "@"]), garbage, garbage)
def test_no_url_is_refused(scheme, slashes, rest, table):
    found = from_jdbc(scheme + slashes + rest, table)
    assert found.namespace
    assert not found.symlinks
