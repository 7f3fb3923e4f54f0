"""deliver.webhook: a happening and a hook -> a signed message; a message -> delivered, to be tried again, or given up.

Every message has a key of its own in `Idempotency-Key`, the same each time it is tried. `X-Headwater-Signature` is
`v1=` and the HMAC-SHA256 of `TIMESTAMP.BODY` under the hook's secret, `X-Headwater-Timestamp` the seconds of this
try: a receiver that refuses old ones cannot be played back to.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import socket
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from headwater.errors import ConfigError, TransportError
from headwater.naming import scrub
from headwater.transport._answers import retry_after

EVENTS = (
    "incident.opened",
    "incident.acknowledged",
    "incident.resolved",
    "incident.muted",
    "incident.reopened",
    "incident.mute_expired",
    "run.failed",
    "schema.changed",
)
SEVERITIES = ("info", "warn", "error")
TEMPLATE = "[{event}] {what} on {subject}{column}: {message} {link}"
_FIELD = re.compile(r"\{(\w+)\}")
_LIMIT = 1 << 16
_WAITS = (10, 30, 120, 600, 1800, 3600, 7200, 14400)
"""Seconds before each further try; after the last the message is given up."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a hook wants, and how it wants to be told."""

    events: tuple[str, ...] = ()
    """Which events; none: all."""
    datasets: tuple[str, ...] = ()
    """Patterns of `namespace/name` with `*`; none: all."""
    severity: str = "info"
    """The least severity: info, warn, error. What names none counts as error."""
    format: str = "json"
    """`json`: the whole model; `slack`: `{"text": …}` from the template."""
    template: str = TEMPLATE
    link: str = ""
    """A url before the incident's id, for the template's `{link}`."""
    private: bool = False
    """Whether link-local addresses, those of cloud metadata, may be called."""

    def __post_init__(self) -> None:
        for each in self.events:
            if each not in EVENTS:
                raise ConfigError(f"unknown event {each!r}: known: {', '.join(EVENTS)}")
        if self.severity not in SEVERITIES:
            raise ConfigError(f"severity is {self.severity!r}, not one of {', '.join(SEVERITIES)}")
        if self.format not in ("json", "slack"):
            raise ConfigError(f"format is {self.format!r}, not json or slack")
        unknown = sorted(set(_FIELD.findall(self.template)) - set(FIELDS))
        if unknown:
            raise ConfigError(f"the template names {', '.join(unknown)}; known: {', '.join(FIELDS)}")


FIELDS = ("event", "what", "subject", "column", "message", "status", "severity", "by", "at", "id", "link")
"""What a template may name."""


class Happening(NamedTuple):
    """Something that others may want to hear of."""

    event: str
    key: str
    also: tuple[str, ...]
    """Keys under which it may have been told before."""
    at: int
    subject: str
    """`namespace/name` of the dataset or job."""
    severity: str
    model: dict[str, Any]
    names: tuple[str, ...] = ()
    """All names of a dataset that has several."""


def wanted(happening: Happening, options: Options, since: int) -> bool:
    """Whether a hook wants to hear of it."""
    severity = happening.severity if happening.severity in SEVERITIES else "error"
    names = (happening.subject, *happening.names)
    return (
        happening.at >= since
        and (not options.events or happening.event in options.events)
        and SEVERITIES.index(severity) >= SEVERITIES.index(options.severity)
        and (
            not options.datasets
            or any(fnmatchcase(name, each) for name in names for each in options.datasets)
        )
    )


def write(happening: Happening, options: Options) -> bytes:
    """The message's body."""
    model = {"event": happening.event, "key": happening.key, **happening.model}
    if options.format == "json":
        return msgspec.json.encode(model)
    return msgspec.json.encode({"text": render(options.template, happening, options.link)})


def render(template: str, happening: Happening, link: str = "") -> str:
    """A template filled in; values are data, so markup in them is taken away.

    >>> told = Happening("incident.opened", "k", (), 0, "db/orders", "error", {"test": "not_null", "message": "<!here> 3"})
    >>> render("{what} on {subject}: {message}", told)
    'not_null on db/orders: &lt;!here&gt; 3'
    """
    model = happening.model
    column, number = model.get("column"), str(model.get("id") or "")
    fields = {
        "event": happening.event,
        "what": model.get("test") or model.get("kind") or happening.event,
        "subject": happening.subject,
        "column": f".{column}" if column else "",
        "message": model.get("message") or "",
        "status": model.get("status") or "",
        "severity": happening.severity,
        "by": model.get("changedBy") or "",
        "at": model.get("at") or "",
        "id": number,
        "link": f"{link.rstrip('/')}/{number}" if link and number else "",
    }

    def put(found: re.Match[str]) -> str:
        value = str(fields.get(found[1], ""))[:2_000]
        return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    return _FIELD.sub(put, template).strip()


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The signature of a message at a time."""
    return "v1=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, sha256).hexdigest()


def verify(secret: str, headers: Mapping[str, str], body: bytes, *, now: int, tolerance: int = 300) -> bool:
    """What a receiver asks: whether a message is ours, and of now (seconds).

    >>> headers = {"X-Headwater-Timestamp": "100", "X-Headwater-Signature": sign("s", 100, b"{}")}
    >>> verify("s", headers, b"{}", now=110), verify("s", headers, b"{}", now=1000), verify("x", headers, b"{}", now=110)
    (True, False, False)
    """
    given = {name.lower(): value for name, value in headers.items()}
    stamp, signature = given.get("x-headwater-timestamp", ""), given.get("x-headwater-signature", "")
    if not stamp.isdigit() or abs(now - int(stamp)) > tolerance:
        return False
    return hmac.compare_digest(sign(secret, int(stamp), body), signature)


def secret_of(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """A hook's secret; `env:NAME` is the value of that variable where the worker runs."""
    if not text.startswith("env:"):
        return text
    value = environ.get(text.removeprefix("env:"), "")
    if not value:
        raise ConfigError(f"the variable {text.removeprefix('env:')} that holds a hook's secret is not set")
    return value


def check_url(url: str) -> str:
    """A url that can be called, or a refusal that says why not."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise ConfigError(f"{scrub(url)!r} is no url: {fault}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ConfigError(f"{scrub(url)!r} is no http(s) url")
    if parts.username or parts.password:
        raise ConfigError("a hook's url holds no password: whoever receives it checks the signature")
    if any(ord(each) < 32 or ord(each) == 127 for each in url):
        raise ConfigError(f"{scrub(url)!r} is no url: it holds a control character")
    _ascii_of(parts.hostname)
    return url


def _ascii_of(host: str) -> str:
    """A host as DNS and headers have it: `xn--bcher-kva.example` for `bücher.example`."""
    try:
        return host.encode("idna").decode()
    except UnicodeError as fault:
        raise ConfigError(f"{host!r} is no host: {fault}") from None


Resolve = Callable[[str, int], list[str]]


def addresses(host: str, port: int) -> list[str]:
    """The addresses of a host, those first that this machine has a route to."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def reachable(url: str, *, private: bool, resolve: Resolve = addresses) -> str:
    """The one address to call: checked, and then called itself, so that a name cannot change in between."""
    parts = urlsplit(check_url(url))
    host = _ascii_of(parts.hostname or "")
    try:
        found = resolve(host, parts.port or (443 if parts.scheme == "https" else 80))
    except OSError as fault:
        raise TransportError(f"{host} has no address: {fault}", retryable=True, cause="unreachable") from None
    for each in found:
        address = ipaddress.ip_address(each.partition("%")[0])
        address = getattr(address, "ipv4_mapped", None) or address
        if not private and (
            address.is_link_local
            or address.is_multicast
            or address.is_unspecified
            or str(address) in _METADATA
        ):
            raise TransportError(
                f"{host} is {address}: link-local and metadata addresses are not called (--private allows it)",
                retryable=False,
                cause="forbidden",
            )
    if not found:
        raise TransportError(f"{host} has no address", retryable=True, cause="unreachable")
    return found[0]


_METADATA = ("fd00:ec2::254", "100.100.100.200", "168.63.129.16")


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    timeout: float = 10.0,
    private: bool = False,
    resolve: Resolve = addresses,
) -> None:
    """Send one message; anything but a 2xx in time is a fault, which says whether to try again."""
    import httpx

    parts = urlsplit(check_url(url))
    address = reachable(url, private=private, resolve=resolve)
    at = f"[{address}]" if ":" in address else address
    port = f":{parts.port}" if parts.port else ""
    target = parts._replace(netloc=f"{at}{port}").geturl()
    host = _ascii_of(parts.hostname or "")
    named = f"[{host}]{port}" if ":" in host else f"{host}{port}"
    sent = {**headers, "Host": named, "Content-Type": "application/json"}
    try:
        with (
            httpx.Client(timeout=timeout, follow_redirects=False, trust_env=False) as client,
            client.stream(
                "POST", target, content=body, headers=sent, extensions={"sni_hostname": host}
            ) as answer,
        ):
            status, after = answer.status_code, answer.headers.get("retry-after", "")
    except httpx.HTTPError as fault:
        raise TransportError(
            f"{parts.hostname} did not answer: {type(fault).__name__}", retryable=True, cause="unreachable"
        ) from None
    if 200 <= status < 300:
        return
    final = 400 <= status < 500 and status not in (408, 409, 423, 425, 429)
    raise TransportError(
        f"{parts.hostname} answered {status}",
        retryable=not final,
        retry_after=retry_after(after),
        cause=f"http_{status}",
    )


def headers_of(key: str, event: str, secret: str, body: bytes, now: int) -> dict[str, str]:
    """The headers of one try, at `now` seconds."""
    return {
        "Idempotency-Key": key,
        "User-Agent": "headwater",
        "X-Headwater-Event": event,
        "X-Headwater-Timestamp": str(now),
        **({"X-Headwater-Signature": sign(secret, now, body)} if secret else {}),
    }


def wait_after(tries: int, asked: float | None = None) -> float | None:
    """Seconds until the next try, after so many; None: it is given up.

    >>> wait_after(1), wait_after(1, 60.0), wait_after(9)
    (10, 60.0, None)
    """
    if tries > len(_WAITS):
        return None
    return max(_WAITS[tries - 1], min(asked or 0, 86_400))
