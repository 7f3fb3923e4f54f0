"""dlt: pipelines of dlt -> their lineage, captured from dlt's own trace and handed to the emitter.

    import headwater.dlt
    headwater.dlt.install(url="http://localhost:5000")

Without any code: install Headwater beside dlt and configure it (`HEADWATER_TRANSPORT`, `OPENLINEAGE_URL`, headwater.toml), or start
the program with `headwater run`. For one pipeline only: `dlt.pipeline(…, progress=headwater.dlt.tracker())`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headwater import config
from headwater.errors import ConfigError, NotInstalled

if TYPE_CHECKING:
    from headwater.dlt._tracking import Tracker

__all__ = ["Capturing", "install", "tracker", "uninstall"]


@dataclass(frozen=True, slots=True)
class Capturing:
    """The settings of room `dlt`."""

    naming: Literal["openlineage", "dlt-openlineage"] = "openlineage"
    """How datasets are named: by where they physically are, or as the package dlt-openlineage documents it."""
    sample: int = 1_000
    """How many items of each extracted file are looked at for column lineage; 0: all of them."""
    columns: bool = True
    """Whether columns are followed through dlt's normaliser at all."""

    def __post_init__(self) -> None:
        if self.naming not in ("openlineage", "dlt-openlineage"):
            raise ConfigError(f"dlt.naming is {self.naming!r}, not openlineage or dlt-openlineage")
        if int(self.sample) < 0:
            raise ConfigError(f"dlt.sample is {self.sample}: a number of items, or 0 for all")


def install(
    url: str | None = None, namespace: str | None = None, api_key: str | None = None, **options: Any
) -> Tracker:
    """Capture every pipeline that this process runs from now on; the same tracker where it is installed already.

    Args:
        url: the server's; other transports by `transport=…`.
        namespace: of the jobs, and of resources whose source nobody tells; `dlt` unless set.
        api_key: for the server.
        options: settings as in headwater.toml (`transport`, `spool`, …) and those of room `dlt` (`naming`, `sample`).

    Raises:
        ConfigError: a setting is wrong.

    """
    from headwater.dlt import _tracking

    _needs_dlt()
    return _tracking.install(_settings(url, namespace, api_key, options))


def uninstall() -> None:
    """Stop capturing; runs under way are told to their end."""
    from headwater.dlt import _tracking

    _tracking.uninstall()


def tracker(
    url: str | None = None, namespace: str | None = None, api_key: str | None = None, **options: Any
) -> Any:
    """What captures one pipeline: `dlt.pipeline(…, progress=headwater.dlt.tracker())`. Takes what `install` takes."""
    from headwater.dlt import _tracking

    _needs_dlt()
    return _tracking.collector(_settings(url, namespace, api_key, options))


def _settings(
    url: str | None, namespace: str | None, api_key: str | None, options: dict[str, Any]
) -> config.Settings:
    room = {name: options.pop(name) for name in ("naming", "sample", "columns") if name in options}
    given: dict[str, Any] = {"namespace": namespace, "api_key": api_key, **options}
    if url is not None:
        if options.get("transport") is not None:
            raise ConfigError("give url or transport, not both: url is where the transport sends to")
        given["transport"] = url  # the setting `url` is whom read commands ask
    if room:
        given["dlt"] = room
    return config.load(given)


def _needs_dlt() -> None:
    try:
        import dlt  # noqa: F401
    except ImportError as fault:
        raise NotInstalled("dlt", "dlt") from fault
