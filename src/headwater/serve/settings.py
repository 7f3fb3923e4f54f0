"""serve.settings: the options of room `serve` -> one frozen Serving, checked."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from headwater.errors import ConfigError, UnknownName


@dataclass(frozen=True, slots=True)
class Serving:
    """The settings of room `serve`."""

    host: str = "127.0.0.1"
    port: int = 5000
    base_path: str = ""
    read_only: bool = False
    lineage_status: int = 201
    """What a single `POST /api/v1/lineage` answers: 201 as Marquez does, 200 as Correlator."""
    correlator_strict: bool = False
    """Whether the batch paths refuse all that Correlator does: events without producer, a wrong sequence …"""
    work: bool = True
    """Whether this server does what must happen by itself; of several, one at a time does."""
    max_request_bytes: int = 64 << 20
    max_header_bytes: int = 64 << 10
    auth: str = "auto"
    """`on`: every request needs a key; `off`: none does; `auto`: off where only this machine can reach the server."""
    rate_limit: float = 0
    """Requests a second of one key, or of one address where no key is needed; 0: any number."""
    rate_burst: int = 0
    """How many may come at once; 0: twice the rate."""
    anonymous_rate_limit: float = 20
    """Requests a second of one address that come without a valid key where one is needed; 0: any number."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the server: `https://ui.example.org`, or `*`."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed."""
    request_seconds: float = 60
    """How long a request may take to arrive."""
    drain_seconds: float = 0
    """How long `/ready` says no before a stopping server takes no more connections."""
    shutdown_seconds: float = 30
    """How long a stopping server waits for the requests that it has."""
    log_format: str = "text"
    """`text`, or `json`: one object a line."""

    def __post_init__(self) -> None:
        if self.lineage_status not in (200, 201):
            raise ConfigError(f"serve.lineage_status is {self.lineage_status}, not 200 or 201")
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"serve.port is {self.port}: it must be between 0 (any that is free) and 65535")
        if self.base_path and not self.base_path.startswith("/"):
            raise ConfigError(f"serve.base_path is {self.base_path!r}: it must start with a slash")
        for name, known in (("auth", ("auto", "on", "off")), ("log_format", ("text", "json"))):
            if getattr(self, name) not in known:
                raise UnknownName(f"value of serve.{name}", getattr(self, name), known)
        for name in ("rate_limit", "anonymous_rate_limit", "rate_burst", "drain_seconds", "shutdown_seconds"):
            if getattr(self, name) < 0:
                raise ConfigError(f"serve.{name} is {getattr(self, name)}: it cannot be less than 0")
        for name in ("request_seconds", "max_request_bytes", "max_header_bytes"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"serve.{name} is {getattr(self, name)}: it must be more than 0")
        for origin in self.cors_origins:
            if origin != "*" and "://" not in origin:
                raise ConfigError(f"serve.cors_origins: {origin!r} is no origin: write https://host, or *")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.trusted_proxies:
            return False  # it stands behind something that others reach
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def needs_keys(self) -> bool:
        """Whether every request needs a key."""
        return self.auth == "on" or (self.auth == "auto" and not self.local)
