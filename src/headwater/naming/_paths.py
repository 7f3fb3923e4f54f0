"""naming._paths: a path or url of a file or directory -> its Dataset, the same from Hadoop, fsspec, dlt or a plain open().

The rules are those of the JVM agent's filesystem extractors, so that both give one identity.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import unquote

from headwater.naming._hosts import authority
from headwater.naming._identity import Dataset
from headwater.naming._secrets import scrub
from headwater.naming._trim import Trimmers


@dataclass(frozen=True, slots=True)
class Filesystem:
    """How one url scheme is written: the scheme it becomes, whether names start with a slash, what its host is."""

    scheme: str
    slash: bool = True
    lower_host: bool = True
    container: bool = False  # "x@host" names a container, not a user


_S3 = Filesystem("s3", slash=False, lower_host=False)
_GS = Filesystem("gs", slash=False, lower_host=False)
_ABFSS = Filesystem("abfss", slash=False, container=True)
_WASBS = Filesystem("wasbs", slash=False, container=True)

FILESYSTEMS = {
    "s3": _S3,
    "s3a": _S3,
    "s3n": _S3,
    "gs": _GS,
    "gcs": _GS,
    "abfs": _ABFSS,
    "abfss": _ABFSS,
    "wasb": _WASBS,
    "wasbs": _WASBS,
    "adl": Filesystem("adl"),
    "hdfs": Filesystem("hdfs"),
    "webhdfs": Filesystem("webhdfs"),
    "viewfs": Filesystem("viewfs", lower_host=False),
    "dbfs": Filesystem("dbfs"),
    "file": Filesystem("file"),
    "local": Filesystem("file"),
    "http": Filesystem("http"),
    "https": Filesystem("https"),
    "ftp": Filesystem("ftp"),
    "sftp": Filesystem("sftp"),
}
"""scheme -> how it is written; any other scheme keeps its own name, its authority as given and a leading slash"""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(.*)", re.DOTALL)
_DRIVE = re.compile(r"/?([A-Za-z]):(?=[/\\]|$)")
_QUERY = re.compile(r"\?[A-Za-z_][\w.\-]*=.*$", re.DOTALL)  # a lone `?` is a glob
_AWS = r"s3(?:\.dualstack)?(?:[.\-][a-z0-9\-]+)?\.amazonaws\.com(?:\.cn)?(?::443)?"
_WEB_STORES = (  # the web address of an object is the object
    (re.compile(rf"([a-z0-9.\-]+)\.{_AWS}/(.*)", re.DOTALL), "s3://{}/{}"),
    (re.compile(rf"{_AWS}/([^/]+)/?(.*)", re.DOTALL), "s3://{}/{}"),
    (re.compile(r"storage\.(?:googleapis|cloud\.google)\.com/([^/]+)/?(.*)", re.DOTALL), "gs://{}/{}"),
    (re.compile(r"([a-z0-9._\-]+)\.storage\.googleapis\.com/(.*)", re.DOTALL), "gs://{}/{}"),
    (re.compile(r"([a-z0-9]+\.blob\.core\.windows\.net)/([^/]+)/?(.*)", re.DOTALL), "wasbs://{1}@{0}/{2}"),
    (re.compile(r"([a-z0-9]+\.dfs\.core\.windows\.net)/([^/]+)/?(.*)", re.DOTALL), "abfss://{1}@{0}/{2}"),
)


def from_path(
    path: str, *, trim: bool | Trimmers = False, encoded: bool = False, base: str | None = None
) -> Dataset:
    """Name a file, a directory or a glob.

    Args:
        path: a local path, a Windows path or a url of any file system.
        trim: True or Trimmers to name the dataset above its partition and date directories.
        encoded: the text is a URI (a CatalogTable's location), whose `%20` is a space. A Hadoop path is
            not: there `%3A` is how Hive really spells a colon in a directory's name, so it stays by default.
        base: the working directory, for relative local paths; without it they stay relative.

    >>> from_path("s3a://lake/orders//day=1/", trim=True).identity
    Identity(namespace='s3://lake', name='orders')
    >>> from_path("file:///data/orders").identity
    Identity(namespace='file', name='/data/orders')
    """
    text = path  # not stripped: a file's name may end in a space
    if text[:5].lower() == "jdbc:" or ("://" in text and text.partition(":")[0].lower() not in FILESYSTEMS):
        text = scrub(text)  # a database's url, perhaps: its password goes while it can still be seen
    scheme, host, rest = _split(text)
    if scheme in ("http", "https"):
        for pattern, target in _WEB_STORES:
            if found := pattern.fullmatch(f"{host.lower()}{_QUERY.sub('', rest)}"):
                scheme, host, rest = _split(target.format(*found.groups()))
                break
    known = FILESYSTEMS.get(scheme)
    fs = known or Filesystem(scheme, lower_host=False)
    if scheme not in ("", "file", "local"):
        rest = _QUERY.sub("", rest)
    if encoded:
        rest = unquote(rest)
    if base and fs.scheme == "file" and not host and not rest.startswith("/"):
        rest = f"{_split(base)[2]}/{rest}"
    name = _clean(rest)
    if known is None or "://" in name:  # not a path at all, perhaps: then nothing in it is trusted
        name = scrub(name)
    if trim:
        name = (trim if isinstance(trim, Trimmers) else Trimmers()).trim(name)
    namespace = _namespace(fs, host)
    if not fs.slash:
        return Dataset(namespace, name.strip("/") or "/")
    return Dataset(namespace, name if name.startswith("/") or namespace == "file" else f"/{name}")


def _split(text: str) -> tuple[str, str, str]:
    """Scheme (file when there is none), authority, path."""
    if _DRIVE.match(text):
        return "file", "", _drive(text)
    if text.startswith("\\\\"):  # \\host\share
        text = "file:" + text.replace("\\", "/")
    found = _SCHEME.fullmatch(text)
    if not found:
        return "file", "", text
    scheme, rest = found[1].lower(), found[2]
    host = ""
    if rest.startswith("//"):
        host, slash, after = rest[2:].partition("/")
        rest = slash + after
        if scheme in ("file", "local") and _DRIVE.match(host):  # file://C:/x, written so by many
            host, rest = "", f"/{host}{rest}"
    if scheme in ("file", "local") and _DRIVE.match(rest):
        rest = _drive(rest)
    host, query, _ = host.partition("?")
    return scheme, host, "" if query else rest


def _drive(text: str) -> str:
    """C:\\x, c:/x and /C:/x are /C:/x, as a JVM's File.toURI writes it."""
    slashed = text.replace("\\", "/").lstrip("/")
    return f"/{slashed[0].upper()}{slashed[1:]}"


def _clean(path: str) -> str:
    """Slashes once, no dots, none at the end: what Hadoop's Path does with it."""
    if not path:
        return "/"
    cleaned = posixpath.normpath(re.sub(r"/{2,}", "/", path)).rstrip("/")
    return "/" if cleaned in ("", ".") and path.startswith(("/", ".")) else cleaned or "/"


def _namespace(fs: Filesystem, host: str) -> str:
    user, at, place = host.rpartition("@")
    if at and fs.container:
        host = f"{user.partition(':')[0]}@{place}"
    elif at:
        host = place
    if fs.lower_host and not fs.container:
        host = authority(host) if host else ""
    elif fs.lower_host:
        host = host.lower()
    if fs.scheme == "file" and host in ("", "localhost", "127.0.0.1"):
        return "file"
    return f"{fs.scheme}://{host}" if host else fs.scheme
