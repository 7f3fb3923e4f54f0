"""Which tests share what takes longest to make, and so must run in one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plain_formats  # noqa: F401 - its programs enrol themselves
import pytest
from formats import FORMATS

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling


@pytest.hookimpl(optionalhook=True)  # without xdist there is one worker
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """For --dist loadgroup: xdist 3.8 knows groups by ids that pytest 9.2 no longer lets it write, and ran each group in both workers."""
    if config.getoption("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Shared(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared(nodeid)

    return Shared(config, log)


def shared(nodeid: str) -> str:
    """A test -> what is made once for it and others: the session of test_live, the services of a group of formats, or nothing."""
    file, _, name = nodeid.partition("::")
    if file.endswith("/test_live_formats.py"):
        return FORMATS[name.partition("[")[2].removesuffix("]")].group
    if file.endswith(("/test_live.py", "/test_live_settings.py")):
        return file  # a session, or a program, for all that it holds
    return nodeid
