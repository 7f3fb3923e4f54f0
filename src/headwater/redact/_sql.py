"""redact._sql: the text of a statement -> the same with `?` for every literal, whatever the dialect.

Where it is unclear whether something is a literal, it is one: a name in double quotes that was hidden can be looked
up, a customer's name that was kept cannot be called back.
"""

from __future__ import annotations

import re

_NAMES = frozenset(
    [
        "ansi",
        "postgres",
        "postgresql",
        "redshift",
        "snowflake",
        "oracle",
        "trino",
        "presto",
        "duckdb",
        "sqlite",
        "db2",
        "teradata",
        "vertica",
        "exasol",
    ]
)
"""Dialects in which double quotes enclose names; in the others they may enclose texts."""
_ESCAPES = frozenset(
    [
        "spark",
        "spark2",
        "databricks",
        "hive",
        "mysql",
        "mariadb",
        "bigquery",
        "clickhouse",
        "doris",
        "starrocks",
    ]
)
"""Dialects in which a backslash in a text escapes a quote; in those of `_NAMES` it does not."""

_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)
    | (?P<dollar>\$(?P<tag>[A-Za-z_]\w*|)\$.*?(?:\$(?P=tag)\$|\Z))
    | (?:(?<![\w$])(?P<prefix>[A-Za-z]{1,2}&?))?(?P<quote>'|")
    | (?P<back>`(?:[^`]|``)*`?|\[[^\[\]'"0-9]+\])
    | (?P<number>(?<![\w$@:.#])(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


def hide_literals(text: str, dialect: str | None = None) -> str:
    """The statement with `?` for its texts and numbers, and without its comments.

    >>> hide_literals("SELECT * FROM t2 WHERE email = 'fred@example.org' AND n > 1.5 -- for Fred")
    'SELECT * FROM t2 WHERE email = ? AND n > ?  '
    """
    known = (dialect or "").lower()
    out: list[str] = []
    position = 0
    while found := _TOKEN.search(text, position):
        out.append(text[position : found.start()])
        position = found.end()
        if found["comment"]:
            out.append(" ")
        elif found["quote"]:
            names = found["quote"] == '"' and known in _NAMES
            end = _end(text, position, found["quote"], found["prefix"] or "", known)
            if names and end is not None:
                out.append(text[found.start() : end])
            else:
                out.append("?")
            if end is None:  # nobody can tell where it ends
                return "".join(out)
            position = end
        elif found["back"]:
            out.append(found[0])
        else:
            out.append("?")
    return "".join(out) + text[position:]


def _end(text: str, start: int, quote: str, prefix: str, dialect: str) -> int | None:
    """Where a quoted text ends; None where that hangs on a dialect that was not told."""
    escapes = dialect in _ESCAPES or prefix.lower() in ("e", "b", "r")
    position = start
    while (at := text.find(quote, position)) >= 0:
        slashes = 0
        while at - slashes > start and text[at - slashes - 1] == "\\":
            slashes += 1
        if text[at + 1 : at + 2] == quote:
            if slashes % 2 and escapes:
                position = at + 1
                continue
            position = at + 2
        elif slashes % 2 and escapes:
            position = at + 1
        elif slashes % 2 and dialect not in _NAMES:
            return None
        else:
            return at + 1
    return None
