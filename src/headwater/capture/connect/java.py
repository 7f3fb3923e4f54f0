"""capture.connect.java: a regular expression of java.util.regex -> the same matches, without a JVM; or a ConfigError saying why not.

Java's word letters are ASCII, its `.` stops at five line ends, `[a-z&&[^x]]` is an intersection and `{` is never a letter. What is known
to mean another thing here is translated, what cannot be is refused: a wrong topic is worse than an unknown one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from headwater.errors import ConfigError, NotInstalled

TIMEOUT = 1.0
"""Seconds after which a pattern counts as one that never ends."""

_LINE_ENDS = r"\n\r\x85\u2028\u2029"
_DOT = f"[^{_LINE_ENDS}]"
_END = rf"(?=(?:\r\n|[{_LINE_ENDS}])?\Z)"
_BLANKS = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_VERTICAL = r"\n\x0b\f\r\x85\u2028\u2029"
_POSIX = {
    "Lower": "a-z", "Upper": "A-Z", "ASCII": r"\x00-\x7f", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~", "Graph": "!-~", "Print": r"\x20-~", "Blank": r" \t", "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F", "Space": r" \t\n\x0b\f\r",
}  # fmt: skip
_SHORT = {"w": "a-zA-Z0-9_", "d": "0-9", "s": _POSIX["Space"]}
_CATEGORY = re.compile(r"(?:L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfosn]?)")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")


class JavaRegex:
    r"""A pattern as Java reads it.

    >>> JavaRegex(r"(?<db>\w+)\.(.*)").replace_first("shop.orders", "${db}-$2")
    'shop-orders'
    >>> JavaRegex("raw").matches("raw.orders")
    False
    """

    def __init__(self, pattern: str) -> None:
        try:
            import regex
        except ImportError as fault:
            raise NotInstalled("kafka connect", "connect") from fault
        self.pattern = pattern
        made = _Translation(pattern).text()
        try:
            self._compiled: Any = regex.compile(made, regex.V1)
        except (regex.error, RecursionError, OverflowError) as fault:
            raise ConfigError(
                f"{pattern!r} is no regular expression that is understood here: {fault}"
            ) from None

    def matches(self, text: str) -> bool:
        """Whether it matches the whole text, as Matcher.matches()."""
        return self._match(text) is not None

    def replace_first(self, text: str, replacement: str) -> str | None:
        """The text with its first match replaced, as Matcher.replaceFirst(); None where the whole does not match.

        The topic routers do so: `if (matcher.matches()) topic = matcher.replaceFirst(replacement)`.
        """
        if self._match(text) is None:
            return None
        found = self._search(text)
        if found is None:  # pragma: no cover - what matches is found
            return None
        return text[: found.start()] + self._expand(found, replacement) + text[found.end() :]

    def _match(self, text: str) -> Any:
        return self._timed(self._compiled.fullmatch, text)

    def _search(self, text: str) -> Any:
        return self._timed(self._compiled.search, text)

    def _timed(self, function: Any, text: str) -> Any:
        try:
            return function(text, timeout=TIMEOUT)
        except TimeoutError:
            raise ConfigError(f"{self.pattern!r} takes too long to match") from None

    def _expand(self, found: Any, replacement: str) -> str:
        made: list[str] = []
        at = 0
        while at < len(replacement):
            char = replacement[at]
            if char == "\\":
                if at + 1 == len(replacement):
                    raise ConfigError(f"the replacement {replacement!r} ends in a backslash")
                made.append(replacement[at + 1])
                at += 2
            elif char == "$":
                group, at = self._group(replacement, at + 1)
                made.append(found[group] or "")
            else:
                made.append(char)
                at += 1
        return "".join(made)

    def _group(self, replacement: str, at: int) -> tuple[int | str, int]:
        """Which group is meant at a position, and where the text goes on: as many digits as make a group that exists."""
        if named := re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}").match(replacement, at):
            if named[1] not in self._compiled.groupindex:
                raise ConfigError(f"the replacement {replacement!r} names no group of {self.pattern!r}")
            return named[1], named.end()
        if at >= len(replacement) or replacement[at] not in "0123456789":
            raise ConfigError(f"the replacement {replacement!r} has a $ that names no group")
        number = int(replacement[at])
        at += 1
        while at < len(replacement) and replacement[at] in "0123456789":
            more = number * 10 + int(replacement[at])
            if more > self._compiled.groups:
                break
            number, at = more, at + 1
        if number > self._compiled.groups:
            raise ConfigError(f"the replacement {replacement!r} names no group of {self.pattern!r}")
        return number, at


@lru_cache(maxsize=1024)
def java_regex(pattern: str) -> JavaRegex:
    """The pattern, compiled once.

    Raises:
        ConfigError: it means something here that cannot be told for sure.

    """
    return JavaRegex(pattern)


class _Translation:
    """A pattern read from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0
        self.groups = len(re.findall(r"(?<!\\)\((?!\?)|\(\?<[A-Za-z]", pattern))
        self.dot = _DOT
        self.names: set[str] = set()

    def text(self) -> str:
        made: list[str] = []
        while self.at < len(self.pattern):
            made.append(self._next())
        return "".join(made)

    def refuse(self, what: str) -> ConfigError:
        return ConfigError(f"{self.pattern!r}: {what} is not understood here")

    def _next(self) -> str:
        char = self.pattern[self.at]
        if char == "\\":
            return self._escape(inside=False)
        if char == "[":
            return self._class()
        if char == "(":
            return self._open()
        if char == "{":
            found = _REPEAT.match(self.pattern, self.at)
            if not found:
                raise self.refuse("a brace that repeats nothing")
            self.at = found.end()
            return found[0]
        self.at += 1
        if char == ".":
            return self.dot
        return _END if char == "$" else char

    def _open(self) -> str:
        start, pattern = self.at, self.pattern
        if not pattern.startswith("(?", start):
            self.at += 1
            return "("
        for opening in ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"):
            if pattern.startswith(opening, start):
                self.at += len(opening)
                return opening
        if named := re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>").match(pattern, start):
            self.at = named.end()
            if named[1] in self.names:
                raise self.refuse(f"two groups called {named[1]}")
            self.names.add(named[1])
            return f"(?P<{named[1]}>"
        if flags := re.compile(r"\(\?([is]+)([:)])").match(pattern, start):
            if "s" in flags[1]:
                if start or flags[2] == ":":
                    raise self.refuse("(?s) for a part of a pattern")
                self.dot = r"(?s:.)"
            self.at = flags.end()
            own = flags[1].replace("s", "")
            if own and not pattern.isascii():
                raise self.refuse("(?i) with letters beyond ASCII")
            return f"(?{own}{flags[2]}" if own else "(?:" if flags[2] == ":" else ""
        raise self.refuse(pattern[start : start + 4])

    def _class(self) -> str:
        """`[…]`, with classes inside and `&&` between them."""
        pattern, made = self.pattern, ["["]
        self.at += 1
        negated = pattern.startswith("^", self.at)
        if negated:
            made.append("^")
            self.at += 1
        first, crossed = True, False
        while True:
            if self.at >= len(pattern):
                raise self.refuse("a class without its end")
            char, pair = pattern[self.at], pattern[self.at : self.at + 2]
            if char == "]" and not first:
                self.at += 1
                if crossed and negated:
                    raise self.refuse("a negated intersection")
                return "".join([*made, "]"])
            if pair == "&&":
                crossed = True
                made.append("&&")
                self.at += 2
                continue
            if pair in ("--", "~~", "||", "[:"):
                raise self.refuse(f"{pair!r} in a class")
            if char == "[":
                made.append(self._class())
            elif char == "\\":
                made.append(self._escape(inside=True))
            else:
                made.append(rf"\{char}" if char in "]^~|&#" else char)
                self.at += 1
            first = False

    def _escape(self, *, inside: bool) -> str:
        pattern, start = self.pattern, self.at
        char = pattern[start + 1 : start + 2]
        self.at += 2
        if char == "":
            raise self.refuse("a backslash at the end")
        if char == "Q":
            end = pattern.find("\\E", self.at)
            quoted = pattern[self.at : end if end >= 0 else len(pattern)]
            self.at = end + 2 if end >= 0 else len(pattern)
            if inside and not quoted:
                raise self.refuse("an empty quotation in a class")
            return "".join(_literal(each) for each in quoted)
        if char in "pP":
            return self._property(char == "P", inside)
        if char in "hHvV":
            told = _BLANKS if char in "hH" else _VERTICAL
            return f"[{'^' if char in 'HV' else ''}{told}]"
        if char in "wWdDsS":
            return f"[{'^' if char.isupper() else ''}{_SHORT[char.lower()]}]"
        if char in "bBA" and not inside:
            return f"\\{char}"
        if char in "zZ" and not inside:
            return r"\Z" if char == "z" else _END
        if char == "k" and not inside:
            return self._reference(r"<([A-Za-z][A-Za-z0-9]*)>", "(?P={})")
        if char in "123456789" and not inside:
            return self._numbered(start)
        return self._character(char)

    def _character(self, char: str) -> str:
        """An escape that stands for one character."""
        for letter, form, radix in (
            ("0", r"([0-3]?[0-7]{1,2})", 8),
            ("x", r"([0-9a-fA-F]{2})", 16),
            ("x", r"\{([0-9a-fA-F]{1,6})\}", 16),
            ("u", r"([0-9a-fA-F]{4})", 16),
        ):
            if char == letter and (found := re.compile(form).match(self.pattern, self.at)):
                self.at = found.end()
                number = int(found[1], radix)
                if number > 0x10FFFF:
                    raise self.refuse(f"\\x{{{found[1]}}}")
                return _literal(chr(number))
        if char == "c" and self.at < len(self.pattern):
            self.at += 1
            return _literal(chr(ord(self.pattern[self.at - 1]) ^ 64))
        simple = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
        if char in simple:
            return _literal(simple[char])
        if char.isascii() and char.isalnum():
            raise self.refuse(f"\\{char}")
        return _literal(char)

    def _property(self, negated: bool, inside: bool) -> str:
        found = re.compile(r"\{(\w+)\}|(\w)").match(self.pattern, self.at)
        name = (found[1] or found[2]) if found else ""
        if found:
            self.at = found.end()
        if name in _POSIX:
            return f"[{'^' if negated else ''}{_POSIX[name]}]"
        plain = name.removeprefix("Is") if name != "Is" else name
        if _CATEGORY.fullmatch(plain):
            return rf"\{'P' if negated else 'p'}{{{plain}}}"
        raise self.refuse(rf"\p{{{name}}}")

    def _reference(self, form: str, made: str) -> str:
        found = re.compile(form).match(self.pattern, self.at)
        if not found:
            raise self.refuse(r"\k")
        self.at = found.end()
        return made.format(found[1])

    def _numbered(self, start: int) -> str:
        """`\\11` is group eleven where there is one, else group one and the letter 1."""
        end = start + 2
        number = int(self.pattern[start + 1])
        if number > self.groups:
            raise self.refuse(f"\\{number} without such a group")
        while end < len(self.pattern) and self.pattern[end] in "0123456789":
            more = number * 10 + int(self.pattern[end])
            if more > self.groups:
                break
            number, end = more, end + 1
        self.at = end
        return rf"(?:\g<{number}>)" if number > 9 else rf"(?:\{number})"


def _literal(char: str) -> str:
    return char if char.isalnum() or char == "_" else re.escape(char)
