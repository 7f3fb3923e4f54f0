"""dlt.plugin: dlt looks for plugins -> Headwater's capture, where Headwater is configured; nothing otherwise.

dlt loads this by its entry point when the first pipeline is made, so that no code has to change.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from dlt.common.configuration import plugins

from headwater import config
from headwater.errors import ConfigError
from headwater.guard import guard

_ASKED: list[bool] = []


@plugins.hookimpl(tryfirst=True)
def plug_run_context(run_dir: str | None, runtime_kwargs: dict[str, Any] | None) -> None:
    """Asked for a run context: there is none here, but now is the time to listen."""
    begin()


def begin() -> None:
    """Listen, where that is asked for: once in a process."""
    if not _ASKED:
        _ASKED.append(True)
        with guard("capturing dlt"):
            _listen()


def _listen() -> None:
    try:
        settings = config.load()
        asked = "_HEADWATER_RUN" in os.environ or settings.origins.get("transport", "default") != "default"
        if settings.disabled or not asked:
            return
        from headwater.dlt import _tracking

        _tracking.install(settings)
    except ConfigError as fault:  # nobody called us: it is told, and the pipeline runs without
        logging.getLogger("headwater").warning("dlt is not captured: %s", fault)
