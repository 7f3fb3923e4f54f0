import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headwater.errors import ConfigError
from headwater.naming import FILESYSTEMS, Dataset, Trimmers, from_path

CASES = {
    # local
    "/data/orders": ("file", "/data/orders"),
    "/data/orders/": ("file", "/data/orders"),
    "/data//orders///": ("file", "/data/orders"),
    "/data/./x/../orders": ("file", "/data/orders"),
    "/": ("file", "/"),
    "file:/data/orders": ("file", "/data/orders"),
    "file:///data/orders/": ("file", "/data/orders"),
    "file://localhost/data": ("file", "/data"),
    "file://Nas.Corp/data": ("file://nas.corp", "/data"),
    "FILE:///data": ("file", "/data"),
    "data/orders": ("file", "data/orders"),
    "./data/orders": ("file", "data/orders"),
    r"C:\data\orders" + "\\": ("file", "/C:/data/orders"),
    "c:/data/orders": ("file", "/C:/data/orders"),
    "file:/C:/data": ("file", "/C:/data"),
    "file:///C:/data": ("file", "/C:/data"),
    "file://C:/data": ("file", "/C:/data"),
    r"\\nas\share\x": ("file://nas", "/share/x"),
    "/data/*.csv": ("file", "/data/*.csv"),
    "/data/part-?.csv": ("file", "/data/part-?.csv"),
    "/data/{a,b}/[0-9]": ("file", "/data/{a,b}/[0-9]"),
    # object stores: no leading slash, the root is one
    "s3://lake/orders": ("s3://lake", "orders"),
    "s3a://lake/orders/": ("s3://lake", "orders"),
    "s3n://lake//a//b": ("s3://lake", "a/b"),
    "S3A://Lake/A": ("s3://Lake", "A"),
    "s3://lake": ("s3://lake", "/"),
    "s3://lake/": ("s3://lake", "/"),
    "s3a://lake/day=1/part-?.parquet": ("s3://lake", "day=1/part-?.parquet"),
    "gs://lake/a": ("gs://lake", "a"),
    "gcs://lake/a": ("gs://lake", "a"),
    "abfs://c@acc.dfs.core.windows.net/a/": ("abfss://c@acc.dfs.core.windows.net", "a"),
    "abfss://c@ACC.dfs.core.windows.net/a": ("abfss://c@acc.dfs.core.windows.net", "a"),
    "wasb://c@acc.blob.core.windows.net/a": ("wasbs://c@acc.blob.core.windows.net", "a"),
    "wasbs://c@acc.blob.core.windows.net": ("wasbs://c@acc.blob.core.windows.net", "/"),
    # everything else: as given, with a leading slash
    "hdfs://NameNode:8020/a/b/": ("hdfs://namenode:8020", "/a/b"),
    "hdfs://nn/a": ("hdfs://nn", "/a"),
    "hdfs:///a": ("hdfs", "/a"),
    "hdfs://nn:8020": ("hdfs://nn:8020", "/"),
    "webhdfs://NN:9870/a": ("webhdfs://nn:9870", "/a"),
    "viewfs://ClusterX/a": ("viewfs://ClusterX", "/a"),
    "dbfs:/mnt/a": ("dbfs", "/mnt/a"),
    "dbfs://Workspace/mnt/a": ("dbfs://workspace", "/mnt/a"),
    "adl://Acc.azuredatalakestore.net/a": ("adl://acc.azuredatalakestore.net", "/a"),
    "local:/opt/a": ("file", "/opt/a"),
    "http://Host:8080/a.csv": ("http://host:8080", "/a.csv"),
    "https://host/a.csv?token=x": ("https://host", "/a.csv"),
    "ftp://u:pw@host/a": ("ftp://host", "/a"),
    "sftp://host/a": ("sftp://host", "/a"),
    "oss://bucket/a": ("oss://bucket", "/a"),
    "cosn://bucket/a/": ("cosn://bucket", "/a"),
    "obs://bucket/a": ("obs://bucket", "/a"),
    "lakefs://Repo/main/a": ("lakefs://Repo", "/main/a"),
    # the web address of an object is the object
    "https://lake.s3.amazonaws.com/a/b": ("s3://lake", "a/b"),
    "https://lake.s3.eu-west-1.amazonaws.com/a/b?X-Amz-Signature=s": ("s3://lake", "a/b"),
    "https://s3.eu-west-1.amazonaws.com/lake/a/b": ("s3://lake", "a/b"),
    "https://lake.s3.dualstack.eu-west-1.amazonaws.com/a/b": ("s3://lake", "a/b"),
    "https://s3.dualstack.eu-west-1.amazonaws.com/lake/a/b": ("s3://lake", "a/b"),
    "https://lake.s3.cn-north-1.amazonaws.com.cn/a/b": ("s3://lake", "a/b"),
    "https://storage.googleapis.com/lake/a": ("gs://lake", "a"),
    "https://my_lake.storage.googleapis.com/a?X-Goog-Signature=s": ("gs://my_lake", "a"),
    "https://storage.cloud.google.com/lake/a": ("gs://lake", "a"),
    "https://acc.blob.core.windows.net/c/a?sv=1&sig=s": ("wasbs://c@acc.blob.core.windows.net", "a"),
    "https://acc.dfs.core.windows.net/c/a": ("abfss://c@acc.dfs.core.windows.net", "a"),
    # keys in a url are nobody's business
    "s3a://AKIA:pw@lake/a": ("s3://lake", "a"),
    "s3://lake/a?X-Amz-Signature=s": ("s3://lake", "a"),
}


@pytest.mark.parametrize("path", CASES)
def test_a_path_has_one_name(path):
    assert from_path(path) == Dataset(*CASES[path])


def test_every_file_system_has_a_case():
    seen = {path.partition(":")[0].lower() for path in CASES}
    assert set(FILESYSTEMS) <= seen


@pytest.mark.parametrize(
    ("encoded", "name"), [(False, "/a%20b/t=10%3A00"), (True, "/a b/t=10:00")], ids=["hadoop path", "uri"]
)
def test_percent_signs_are_decoded_only_in_uris(encoded, name):
    assert from_path("file:/a%20b/t=10%3A00", encoded=encoded).name == name


def test_relative_paths_stand_under_the_base():
    assert from_path("x/y", base="/home/me").name == "/home/me/x/y"
    assert from_path("../y", base="/home/me").name == "/home/y"
    assert from_path("/x", base="/home/me").name == "/x"
    assert from_path("s3://b/x", base="/home/me") == Dataset("s3://b", "x")


TRIMMED = {
    "/tmp/20250721": "/tmp",
    "/tmp/20250722T0901Z": "/tmp",
    "/tmp/20250722T901Z": "/tmp",
    "/tmp/2025-07-22": "/tmp",
    "/tmp/2025-07-22T09:01:00.000Z": "/tmp",
    "/tmp/22.07.2025": "/tmp",
    "/tmp/20122321": "/tmp/20122321",  # no such month
    "/tmp/dataset_20250721": "/tmp/dataset_20250721",
    "/20250721": "/20250721",  # never the whole name
    "/tmp/day=2024-01-01": "/tmp",
    "/tmp/a=b=c": "/tmp/a=b=c",
    "/day=1": "/day=1",
    "/tmp/202507": "/tmp",
    "/tmp/2025-07": "/tmp",
    "/tmp/202514": "/tmp/202514",
    "/tmp/2025/07": "/tmp",
    "/tmp/2025/07/21": "/tmp",
    "/tmp/2025/14": "/tmp/2025/14",
    "/tmp/2025/07/50": "/tmp/2025/07/50",
    "/2025/07": "/2025/07",
    "/tmp/t/day=1/hour=2/20250721": "/tmp/t",
    "/tmp/t/day=1/part-0.parquet": "/tmp/t/day=1/part-0.parquet",
}


@pytest.mark.parametrize("name", TRIMMED)
def test_partitions_and_dates_are_trimmed(name):
    assert from_path(name, trim=True).name == TRIMMED[name]
    assert from_path(f"s3a://b{name}", trim=True).name == TRIMMED[name].strip("/")
    assert from_path(name).name == name


@pytest.mark.parametrize(
    ("switch", "name"),
    [
        ("date", "/t/20250721"),
        ("key_value", "/t/a=b"),
        ("multi_dir_date", "/t/2025/07"),
        ("year_month", "/t/202507"),
    ],
)
def test_each_trimmer_can_be_switched_off(switch, name):
    assert Trimmers().trim(name) == "/t"
    assert Trimmers(**{switch: False}).trim(name) == name


def test_remove_path_cuts_the_named_group_out():
    for pattern in (r"(?<remove>/run_[0-9]+)", r"(?P<remove>/run_[0-9]+)"):
        assert from_path("/lake/run_7/orders", trim=Trimmers(remove_path=pattern)).name == "/lake/orders"
    assert Trimmers(remove_path="(?<remove>.*)").trim("/a/b") == "/"


@pytest.mark.parametrize(
    ("pattern", "says"), [("(", "no regular expression"), ("/x", "group named 'remove'")]
)
def test_a_wrong_remove_path_is_refused(pattern, says):
    with pytest.raises(ConfigError, match=says):
        Trimmers(remove_path=pattern)


def written(found: Dataset) -> str:
    """A dataset of files as the path it is."""
    if found.namespace == "file":
        return found.name
    slash = "" if found.name.startswith("/") else "/"
    return f"{found.namespace}{'' if '://' in found.namespace else '://'}{slash}{found.name}"


segments = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="?\\\n\r\t :@#"), min_size=1, max_size=8
)
heads = st.sampled_from(
    ["/", "s3a://b/", "gs://b/", "hdfs://NN:1/", "abfs://c@h/", "file:///", "dbfs:/", "oss://b/", "file://h/"]
)


@settings(deadline=None)
@given(heads, st.lists(segments, max_size=5), st.booleans())
@example("s3a://b/", [], False)
def test_a_name_names_itself(head, parts, trim):
    once = from_path(head + "/".join(parts), trim=trim)
    assert from_path(written(once), trim=trim) == once


@settings(deadline=None)
@given(st.text(max_size=60), st.booleans(), st.booleans())
@example("s3:", True, True)
@example("://", True, True)
@example("C:", True, True)
def test_no_text_is_refused(text, trim, encoded):
    found = from_path(text, trim=trim, encoded=encoded)
    assert found.namespace
    assert found.name
