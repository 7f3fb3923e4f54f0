"""naming._hosts: a host, a list of hosts, a broker list -> one spelling of it: lower case, port present, nobody's password."""

from __future__ import annotations

import re

_LISTENER = re.compile(r"^[A-Za-z][\w+.\-]*://")
_END = re.compile(r"[/?#;\\\s]")

_SETTING = frozenset("()=")


def authority(hosts: str, port: str | int | None = None, default: int | None = None) -> str:
    """Write a comma-separated list of hosts in one way; the order stays, as the JVM agent keeps it.

    >>> authority("PLAINTEXT://B1,user:pw@b2:9093", default=9092)
    'b1:9092,b2:9093'
    """
    return ",".join(split_hosts(hosts, port, default))


def split_hosts(hosts: str, port: str | int | None = None, default: int | None = None) -> tuple[str, ...]:
    """Each host of a list as `host:port`, repeats left out, in the order given."""
    written = (_one(host, port, default) for host in hosts.split(","))
    return tuple(dict.fromkeys(host for host in written if host))


def _one(text: str, port: str | int | None, default: int | None) -> str:
    bare = _LISTENER.sub("", text.strip()).rsplit("@", 1)[-1]
    bare = _END.split(bare, maxsplit=1)[0].lower()
    own = ""
    if bare.startswith("["):  # an IPv6 address in brackets
        inner, _, after = bare[1:].partition("]")
        host, own = f"[{inner}]", after.removeprefix(":")
    elif bare.count(":") > 1:  # an IPv6 address that forgot them
        host = f"[{bare}]"
    else:
        host, _, own = bare.partition(":")
    if not host or host == "[]" or not _SETTING.isdisjoint(bare):  # a setting that strayed here is no host
        return ""
    if not own.isdigit():  # what stands where a port should is dropped: it might be a password
        own = str(port).strip() if port is not None and str(port).strip().isdigit() else ""
    if not own and default is not None:
        own = str(default)
    return f"{host}:{own}" if own else host
