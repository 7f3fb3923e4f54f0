"""Which Pythons are found: those that answer, once for each version; a shim without its Python is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import pythons

THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"


def program(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return place


def test_what_answers_is_a_python(tmp_path: Path) -> None:
    assert pythons.answers(Path(sys.executable)) == THIS
    assert pythons.answers(program(tmp_path / "shim", "echo 'not installed' >&2; exit 127")) == ""
    assert pythons.answers(program(tmp_path / "other", "echo '3.11 pypy'")) == ""
    assert pythons.answers(tmp_path / "none") == ""


def test_pythons_are_found_on_the_path_of_pyenv_and_of_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims = tmp_path / "shims"
    for version in pythons.PYTHONS:
        program(shims / f"python{version}", "exit 127")
    monkeypatch.setenv("PATH", f"{shims}{os.pathsep}/usr/bin{os.pathsep}/bin")
    real = program(
        tmp_path / "pyenv" / "versions" / f"{THIS}.9" / "bin" / "python3", f'exec "{sys.executable}" "$@"'
    )
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    silent = program(tmp_path / "uv", "exit 1")
    found = pythons.found(str(silent))
    assert found == {THIS: real}
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "none"))
    assert pythons.found(str(silent)) == {}
    told = f'[{{"path": "{real}"}}, {{"path": null}}]'
    assert pythons.found(str(program(tmp_path / "uv2", f"echo '{told}'"))) == {THIS: real}
