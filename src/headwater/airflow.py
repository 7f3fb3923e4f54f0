"""airflow: events of Airflow's OpenLineage provider -> our transports, by the dotted type that the provider loads.

    AIRFLOW__OPENLINEAGE__TRANSPORT='{"type": "headwater.airflow.Transport", "url": "http://lineage:5000"}'

Airflow emits each event in a process of its own that it kills after some seconds, and never closes a transport. So an event
is written to the spool, which needs no thread and no server, and a drainer outside of Airflow delivers it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from uuid import uuid4

from headwater import __version__
from headwater.errors import ConfigError, TransportError
from headwater.guard import guard
from headwater.transport import Transport as Ours
from headwater.transport import open_transport
from headwater.transport._answers import named
from headwater.transport.fanout import FanoutTransport
from headwater.transport.http import ENDPOINT
from headwater.transport.openlineage import HeadwaterConfig, HeadwaterTransport, encoded
from headwater.transport.spool import SpoolTransport, drainer
from headwater.transport.spool.news import news

__all__ = ["Transport", "TransportConfig", "check", "configured", "versions"]

TYPE = "headwater.airflow.Transport"
LEAST = {
    "apache-airflow": ("airflow", (2, 11)),
    "apache-airflow-providers-openlineage": ("airflow.providers.openlineage", (2, 0)),
}
"""Package -> its module, and the oldest that this works with."""
PACKAGES = (*LEAST, "openlineage-python")
MASKERS = (
    "airflow.sdk.log",
    "airflow.sdk.execution_time.secrets_masker",
    "airflow._shared.secrets_masker",
    "airflow.utils.log.secrets_masker",
)
"""What takes, in Airflows of different ages and in different processes of one, what logs must not show."""
TEST_JOB = ("headwater", "headwater airflow check")
"""Namespace and name of the job that a test event tells of."""

_log = logging.getLogger("headwater")


class TransportConfig(HeadwaterConfig):
    """The table as the provider read it, and what it needs to hand the transport on to Spark."""

    @property
    def auth(self) -> _Key:
        """The key; the provider asks for it when it puts transport information into Spark's properties."""
        return _Key(str((self.to or {}).get("api_key") or ""))

    @property
    def custom_headers(self) -> dict[str, str]:
        """Further headers, for the same."""
        from headwater.naming import is_secret  # only now: every event would pay for it

        headers = dict((self.to or {}).get("headers") or {})
        _mask(str(value) for name, value in headers.items() if is_secret(name))
        return headers

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> TransportConfig:
        """Read the table; in Airflow what is wrong with it is told by the transport, which then sends nothing."""
        try:
            refuse_old()
            made = super().from_dict(params)
            return cls(made.to, made.given)
        except ConfigError as fault:
            if not _in_airflow():
                raise
            broken = cls(None, {})
            broken.fault = fault
            return broken

    fault: ConfigError | None = None
    """Why this cannot be used."""


class _Key:
    def __init__(self, api_key: str) -> None:
        self.api_key = api_key

    def get_bearer(self) -> str:
        """The key itself: Spark's agent puts `Bearer` before what the provider hands on."""
        _mask([self.api_key])
        return self.api_key


def _mask(secrets: Iterable[str]) -> None:
    """Let Airflow hide them: it logs the command that submits a Spark job, with the properties that hold them."""
    maskers = [found for name in MASKERS if (found := sys.modules.get(name))]
    with guard("hiding a key from Airflow's log"):
        for secret in filter(None, secrets):
            for masker in maskers:
                masker.mask_secret(secret)


class Transport(HeadwaterTransport):
    """What `AIRFLOW__OPENLINEAGE__TRANSPORT`, `config_path` or a connection names by `headwater.airflow.Transport`.

    No error reaches a task. Inside Airflow, a wrong setting is logged as an error and nothing is sent; elsewhere, as in
    `headwater airflow check`, it is raised. `kind` is `http` where events go to a server: only then does the
    provider hand url and key on to the Spark jobs that it submits.
    """

    kind = "headwater"
    config_class = TransportConfig
    config: TransportConfig

    def __init__(self, config: TransportConfig) -> None:
        self.transport = None
        self.config = config
        try:
            if config.fault is not None:
                raise config.fault
            super().__init__(config)
        except ConfigError as fault:
            if not _in_airflow():
                raise
            _log.error(
                "lineage is not sent: %s; set it right in Airflow's [openlineage] settings, then try `headwater airflow check`",
                fault,
            )
            return
        if self.transport is None:  # disabled: then nothing is handed on to Spark either
            return
        to = config.to or {}
        self.url = str(to.get("url", ""))
        self.endpoint = str(to.get("endpoint", ENDPOINT)).strip("/")
        self.timeout = float(to.get("timeout", 5.0))
        self.compression = to.get("compression")
        if self.url.startswith(("http://", "https://")):
            self.kind = "http"

    def emit(self, event: Any) -> None:
        """Hand one event on; what hinders is logged once per cause and never raised."""
        if self.transport is None:
            return
        with guard("sending an event of Airflow"):
            data = encoded(event)
            try:
                _send(self.transport, data)
            finally:
                for spool in _spools(self.transport):
                    spool.deliver()  # where that is asked for: Airflow will not close it
                    for text in news(spool.place):
                        _log.warning("%s", text)

    def close(self, timeout: float = -1) -> bool:
        """Close the transport behind it."""
        with guard("closing Airflow's transport"):
            return super().close(timeout)
        return False


def _targets(transport: Ours) -> list[Ours]:
    """The transport itself, or those of a fanout."""
    return transport.targets if isinstance(transport, FanoutTransport) else [transport]


def _spools(transport: Ours) -> list[SpoolTransport]:
    return [each for each in _targets(transport) if isinstance(each, SpoolTransport)]


def _send(transport: Ours, data: bytes) -> None:
    """Send; where there is no spool, the answer is known at once."""
    try:
        transport.send([data])
    except TransportError as fault:
        for reason in fault.refused.values():
            _log.warning("%s refused %s: %s", transport, named(data), reason)
        if not fault.refused:
            raise
    else:
        for each in _targets(transport):
            if isinstance(each, SpoolTransport):
                _log.info("%s is kept for %s", named(data), each.place.shown())
            else:
                _log.info("%s was taken by %s", named(data), each)


def refuse_old() -> None:
    """Refuse an Airflow, or a provider, that this does not work with.

    Raises:
        ConfigError: it is too old; the message names its version.

    """
    for package, (module, least) in LEAST.items():
        # asked of what is loaded: to read it from the package's metadata costs an event some milliseconds
        found = getattr(sys.modules.get(module), "__version__", None) or versions(package).get(package)
        parts = re.match(r"(\d+)\.(\d+)", found or "")
        if parts and (int(parts[1]), int(parts[2])) < least:  # one that somebody built himself is his to know
            needed = ".".join(map(str, least))
            raise ConfigError(f"{package} {found} is too old: headwater.airflow needs {needed} or newer")


def versions(*packages: str) -> dict[str, str]:
    """What is installed here of these, or of all that take part: package -> version."""
    found = {}
    for package in packages or PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def configured(environ: Mapping[str, str] | None = None) -> tuple[dict[str, Any], str]:
    """The transport that Airflow would use here, and where that is said.

    With Airflow at hand its provider is asked, so connections and `airflow.cfg` count; without it, the variables are read.

    Raises:
        ConfigError: none is set, or it cannot be read.

    """
    given = os.environ if environ is None else environ
    if environ is None and "apache-airflow-providers-openlineage" in versions():
        from airflow.providers.openlineage.plugins.adapter import (  # type: ignore[import-not-found]
            OpenLineageAdapter,
        )

        with guard("asking Airflow for its transport"):
            found = OpenLineageAdapter().get_openlineage_config()
            if found and isinstance(found.get("transport"), dict):
                return dict(found["transport"]), "Airflow's [openlineage] settings"
    if text := given.get("AIRFLOW__OPENLINEAGE__TRANSPORT"):
        try:
            table = json.loads(text)
        except ValueError:
            raise ConfigError("AIRFLOW__OPENLINEAGE__TRANSPORT: is no JSON") from None
        return _table(table, "AIRFLOW__OPENLINEAGE__TRANSPORT"), "AIRFLOW__OPENLINEAGE__TRANSPORT"
    if path := given.get("AIRFLOW__OPENLINEAGE__CONFIG_PATH"):
        return _of_file(Path(path)), path
    raise ConfigError(
        f'no transport is set: AIRFLOW__OPENLINEAGE__TRANSPORT=\'{{"type": "{TYPE}", "url": "http://localhost:5000"}}\''
    )


def _of_file(path: Path) -> dict[str, Any]:
    import yaml

    try:
        told = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as fault:
        raise ConfigError(f"{path}: cannot be read: {type(fault).__name__}") from None
    return _table(told.get("transport") if isinstance(told, dict) else None, str(path))


def _table(value: object, origin: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise ConfigError(f"{origin}: names no transport: it must be a table with a `type`")
    return value


def of_ours(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parts of a transport table that are ours; those in a composite too.

    Raises:
        ConfigError: it cannot be loaded by an OpenLineage client.

    """
    if table.get("type") == "composite":
        members = table.get("transports") or []
        listed = list(members.values() if isinstance(members, Mapping) else members)
        if not all(isinstance(member, Mapping) for member in listed):
            raise ConfigError("transports: a composite lists tables, each with a `type`")
        return [each for member in listed for each in of_ours(member)]
    if table.get("type") == "correlator":
        raise ConfigError(
            f'type: OpenLineage\'s client knows no "correlator": it loads a transport by its dotted name; write "type": "{TYPE}"'
        )
    return [dict(table)] if table.get("type") == TYPE else []


def check(table: Mapping[str, Any]) -> str:
    """Send a test event with the transport of a table, past the spool, and say what happened.

    Raises:
        ConfigError: the table cannot be used as it stands; the spool cannot be written.
        TransportError: the event was not taken.

    """
    made = opened(table)
    behind = made.transport
    if behind is None:
        return "Headwater is disabled (HEADWATER_DISABLED): nothing is sent"
    try:
        return "; ".join(_tried(each) for each in _targets(behind))
    finally:
        made.close()


def _tried(hosted: Ours) -> str:
    """Send a test event, past the spool where there is one."""
    if not isinstance(hosted, SpoolTransport):
        hosted.send([_test_event()])
        return f"{hosted} took a test event"
    direct = open_transport(drainer.sending(hosted.place.target().to))
    try:
        direct.send([_test_event()])
        return f"{direct} took a test event, after the spool {hosted.place.folder}"
    finally:
        direct.close()


def opened(table: Mapping[str, Any]) -> HeadwaterTransport:
    """The transport of a table, its spool included, where what is wrong rises: also in a process of Airflow's."""
    refuse_old()
    return HeadwaterTransport(HeadwaterConfig.from_dict(dict(table)))


def _test_event() -> bytes:
    now = datetime.now(timezone.utc).isoformat()
    namespace, name = TEST_JOB
    event = {
        "eventType": "COMPLETE",
        "eventTime": now,
        "run": {"runId": str(uuid4())},
        "job": {"namespace": namespace, "name": name},
        "producer": f"https://github.com/headwater-lineage/headwater/{__version__}",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }
    return json.dumps(event).encode()


def _in_airflow() -> bool:
    """Whether this process is one of Airflow's; there a fault of ours must not become one of a task."""
    return "airflow" in sys.modules
