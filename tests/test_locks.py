"""The locks fit pyproject.toml, pin everything, and name no place to download from."""

from __future__ import annotations

from pathlib import Path

import locks
import pytest

ROOT = Path(__file__).parents[1]

PROJECT = {
    "project": {
        "requires-python": ">=3.10",
        "dependencies": ["msgspec"],
        "optional-dependencies": {"server": ["litestar"]},
    },
    "dependency-groups": {"dev": ["pytest"]},
}
PINNED = "msgspec==0.20.0 \\\n    --hash=sha256:abc\n    # via headwater\n"


def test_the_locks_are_fresh() -> None:
    assert locks.check() == []


def test_the_oldest_python_is_in_the_resolution() -> None:
    assert "tomli==" in (ROOT / "locks" / "base.txt").read_text()


def test_every_lock_has_its_line_in_the_table() -> None:
    assert {file.stem for file in (ROOT / "locks").glob("*.txt")} == set(locks.LOCKS)


def test_a_sound_lock() -> None:
    first = locks.inputs(PROJECT, ())
    assert list(locks.problems("base", f"{first}\n{PINNED}", first)) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("--index-url https://mirror.example.com\n" + PINNED, "place to download from"),
        (
            "msgspec @ https://files.example.com/msgspec.whl \\\n    --hash=sha256:abc\n",
            "place to download from",
        ),
        ("msgspec==0.20.0\n", "no version or no hash"),
        ("msgspec>=0.20.0 \\\n    --hash=sha256:abc\n", "no version or no hash"),
    ],
)
def test_planted_faults_are_found(text: str, told: str) -> None:
    first = locks.inputs(PROJECT, ())
    assert any(told in each for each in locks.problems("base", f"{first}\n{text}", first))


def test_a_changed_dependency_makes_the_locks_stale_that_hold_it() -> None:
    before = {name: locks.inputs(PROJECT, flags) for name, flags in locks.LOCKS.items()}
    changed = {**PROJECT, "dependency-groups": {"dev": ["pytest>=9"]}}
    after = {name: locks.inputs(changed, flags) for name, flags in locks.LOCKS.items()}
    assert [name for name in before if before[name] != after[name]] == ["dev"]
    first = after["dev"]
    assert any("make lock" in each for each in locks.problems("dev", f"{before['dev']}\n{PINNED}", first))
