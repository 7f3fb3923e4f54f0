"""serve.auth: a request -> whom it is by."""

from __future__ import annotations

from typing import Any

from headwater.serve.journal import call_of

ANONYMOUS = "anonymous"


def who(request: Any) -> str:
    """Whom a command is by: the name of the key, or `anonymous` where no key is needed."""
    return call_of(request.scope).who or ANONYMOUS
