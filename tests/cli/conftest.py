"""What the tests of commands share: a command line run in this process, in a folder of its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from headwater.cli import main


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Done]:
    """`run("graph", "orders")`: as the shell would, on a wide terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["headwater", *arguments])
        with pytest.raises(SystemExit) as done:
            main()
        out, err = capsys.readouterr()
        return Done(int(done.value.code or 0), out, err)

    return call
