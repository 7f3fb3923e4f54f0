"""docs/story.md shows the very files that the story runs."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "story.md"
SHOWN = re.compile(r"<!-- file: (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_shows_every_file_as_it_is_run() -> None:
    shown = dict(SHOWN.findall(PAGE.read_text()))
    files = [*HERE.glob("programs/*.py"), *HERE.glob("config/*"), *HERE.glob("dags/*.py")]
    assert {each.relative_to(HERE).as_posix() for each in files} == shown.keys()
    for each in files:
        assert shown[each.relative_to(HERE).as_posix()] == each.read_text(), each
