"""capture.spark._properties: the text of a spark-defaults.conf -> its settings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_PAIR = re.compile(r"((?:\\.|[^\\\s=:])+)(?:\s*[=:]\s*|\s+|$)(.*)", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties(text: str) -> dict[str, str]:
    r"""As Java reads a properties file: `key value`, `key=value` or `key: value`; `#` and `!` begin a comment.

    >>> properties("# defaults\nspark.master   local[2]\nspark.jars=a.jar,\\\n  b.jar\n")
    {'spark.master': 'local[2]', 'spark.jars': 'a.jar,b.jar'}
    """
    out: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        line = line.lstrip()
        if not line or line[0] in "#!":
            continue
        while _open(line):
            line = line[:-1] + next(lines, "").lstrip()
        if found := _PAIR.match(line):
            out[_plain(found[1])] = _plain(found[2]).strip()
    return out


def _open(line: str) -> bool:
    """Whether it goes on: an odd number of backslashes at its end."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _plain(text: str) -> str:
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text)


def defaults(environ: Mapping[str, str], home: str, named: str | None = None) -> dict[str, str]:
    """What spark-submit reads before its arguments: the file that `--properties-file` names, else its spark-defaults.conf."""
    folder = environ.get("SPARK_CONF_DIR") or os.path.join(environ.get("SPARK_HOME") or home, "conf")
    try:
        return properties(Path(named or os.path.join(folder, "spark-defaults.conf")).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):  # spark-submit itself will say so
        return {}
