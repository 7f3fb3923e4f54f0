"""naming.endpoints: a web address, something in memory, something nobody can name -> a Dataset."""

from __future__ import annotations

import re

from headwater.naming._hosts import authority
from headwater.naming._identity import Dataset
from headwater.naming._secrets import scrub

_ADDRESS = re.compile(r"([A-Za-z][\w+.\-]*)://([^/?#;]*)([^?#;]*)", re.DOTALL)
_DEFAULT = {"http": ":80", "https": ":443", "ws": ":80", "wss": ":443"}


def from_endpoint(url: str, path: str | None = None) -> Dataset:
    """Name a REST resource: the server is the namespace, the path or its template the name.

    Query, fragment and user are left out: they hold pages and keys, not the resource.

    >>> from_endpoint("https://API.github.com:443/", "/repos/{owner}/issues").identity
    Identity(namespace='https://api.github.com', name='/repos/{owner}/issues')
    """
    found = _ADDRESS.match(url.strip())
    if not found:
        return unknown(url)
    scheme, after = found[1].lower(), found[3]
    hosts = found[2]
    if "@" in after:  # a password with a slash in it
        hosts, _, after = after.rpartition("@")[2].partition("/")
    host = authority(hosts).removesuffix(_DEFAULT.get(scheme, " "))
    tail = f"{after.rstrip('/')}/{path.strip('/')}" if path else after
    name = re.sub(r"/{2,}", "/", re.split(r"[?#;]", tail, maxsplit=1)[0]).rstrip("/") or "/"
    name = scrub(name)
    return Dataset(f"{scheme}://{host}" if host else scheme, name if name.startswith("/") else f"/{name}")


def in_memory(name: str) -> Dataset:
    """Name data that never leaves a process: a local relation, a temporary view."""
    return Dataset("inmemory://", scrub(name) or "unnamed")


def unknown(what: str) -> Dataset:
    """Name what nothing else can: better one odd node than a lost edge."""
    return Dataset("unknown", scrub(what).strip() or "unnamed")
