"""The archive of classes that tests start JVMs with: used where it is, and never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import class_archive
import pytest


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "classes.jsa"
    monkeypatch.setattr(class_archive, "path", lambda: found)
    return found


def test_it_is_used_only_where_it_is(archive: Path) -> None:
    assert "SharedArchiveFile" not in class_archive.options()
    archive.write_bytes(b"")
    assert f"-XX:SharedArchiveFile={archive}" in class_archive.options()


def test_one_that_does_not_fit_is_left_aside_without_a_word(archive: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("needs Java")

    def java(options: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            ["java", "-version"],
            env={**os.environ, "JDK_JAVA_OPTIONS": options},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # what is left but for the launcher's note of the options, and whether the JVM's own archive is shared
        return done.returncode, [
            line.split(",")[0] for line in done.stdout.splitlines() if not line.startswith("NOTE")
        ]

    plain = java(class_archive.options())
    archive.write_bytes(b"no archive at all" * 1000)
    assert java(class_archive.options()) == plain


def test_the_archive_is_that_of_one_spark_and_one_java(monkeypatch: pytest.MonkeyPatch) -> None:
    found = class_archive.path()
    if found is None:
        pytest.skip("needs Java and pyspark")
    monkeypatch.setattr(class_archive, "version", lambda name: "0.0")
    assert class_archive.path() != found
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    assert class_archive.path() is None
