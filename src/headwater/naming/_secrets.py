"""naming._secrets: a text, a configuration -> the same without passwords, tokens, keys and signatures.

Where it is unclear whether something is a secret, it is one: a value lost from a facet can be looked up, a
password that left cannot be called back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from headwater.errors import ConfigError

HIDDEN = "***"

# fmt: off
_WORDS = frozenset({
    "password", "passwd", "pwd", "passphrase", "passwort", "secret", "secrets", "token", "credential",
    "credentials", "cred", "creds", "sig", "signature", "sas", "apikey", "authorization", "bearer",
    "cookie", "jaas", "userinfo", "privatekey", "accesskey", "secretkey", "accountkey", "keyfile",
})
# fmt: on
# fmt: off
_PAIRS = frozenset({
    "api key", "access key", "account key", "private key", "secret key", "shared key", "master key", "storage key",
    "session key", "signing key", "encryption key", "user info", "service json", "account json", "odbc connect",
})
# fmt: on
_INSIDE = re.compile(
    r"password|passwd|passphrase|secret|credential|apikey|accesskey|accountkey|privatekey|pvtkey|secretkey|signature|odbcconnect"
)
_AT_END = re.compile(r"(?:token|pwd|^pass)$")
# fmt: off
_ABOUT = frozenset({  # settings that speak of a secret without holding one
    "url", "uri", "endpoint", "mode", "type", "class", "enabled", "enable", "location", "provider",
    "providers", "strategy", "format", "ttl", "expiry", "expires", "path", "length", "size",
})
# fmt: on
_SPLIT_WORDS = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

_VALUE = re.compile(
    r"""(?P<quote>\\?["'])(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\\])|(?P=quote){2})*)(?:(?P=quote))?"""
    r"""|\{(?:[^}]|\}\})*\}?|(?:(?!,\s*[\w.\-]+=|%3B|%26)[^;&\s"'<>])*""",
    re.IGNORECASE | re.DOTALL,
)
_KEY = re.compile(
    r"""(?<![\w.\-])([\w.\-]+)(?:\\?["'`])?(?:\s{0,9}(?:=>|=|:(?!//)|%3D)\s{0,9}|(?P<spaced>\s{1,9})(?=\\?["']))""",
    re.IGNORECASE,
)
_SAID = frozenset({"token", "signature", "cookie"})
"""Words that messages put before what they quote (`Unrecognized token 'x'`)."""
_IN_BRACKETS = re.compile(r"(\(\s{0,9}([\w.\-]+)\s{0,9}=\s{0,9})([^()]+)")
_ARGUMENT = re.compile(r"(?<!\S)(--?([\w.\-]+)\s{1,9})(\S+)")
_IDENTIFIED = re.compile(  # a password of SQL in quotes
    r"""(\bidentified\s{1,9}(?:(?:with|via)\s{1,9}\S{1,64}\s{1,9}(?:by|as|using)|by)\s{1,9}(?:(?:values|password)\s{1,9})?"""
    r"""(?P<quote>\\?["']))(?:(?!(?P=quote))(?:\\.|[^\\])|(?P=quote){2})*""",
    re.IGNORECASE | re.DOTALL,
)
_IDENTIFIED_BARE = re.compile(  # one without, where a statement leads to it: `rows identified by id` holds none
    r"""(\b(?:(?:create|alter)\s{1,9}(?:user|role)(?:\s{1,9}if\s{1,9}(?:not\s{1,9})?exists)?|connect\s{1,9}to"""
    r"""|grant\s[^;]{1,200}?\sto)\s{1,9}\S{1,128}\s{1,9}identified\s{1,9}by\s{1,9})(?!values\s)[^\s"'`\\;,()]+""",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = re.compile(  # `-u` is curl's, and the user and group of other commands
    r"""(?<![^\s"'])((?P<short>-[A-Za-z#]{0,8}[uU](?:["'],?)?\s{1,9}|-[uU])|--(?:proxy-)?user(?:=|(?:["'],?)?\s{1,9}))"""
    r"""(?P<user>(?P<quote>\\?["'])[^:"'\\\n]{0,256}:|[^\s:/"'\\]{0,256}:)(?!//)(?P<password>(?(quote)(?:(?!(?P=quote)).)+|[^\s"'\\]+))""",
)
# the lengths are bounded so that no text, however made, costs more than linear time
_USERINFO = re.compile(
    r"(?<![\w+.\-])(?P<scheme>[A-Za-z][\w+.\-]{0,40}):(?P<slashes>/{2,4})(?P<info>[^\s/?#\"'<>]{0,2048})@"
)
_SLASHED = re.compile(
    r"(?P<before>://)(?![\w.\-]{0,255}:[0-9]{1,5}(?:[/,;?\s]|$))[^\s/:@\"'<>]{0,255}:[^\s\"'<>?;]{0,512}@"
)
_ORACLE = re.compile(r"(oracle:(?:thin|oci[0-9]?|kprb):)\S{0,512}@", re.IGNORECASE)
_HEADER = re.compile(
    r"""(authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|digest|negotiate|token|apikey)\s+)?[^\s"',;&]+""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer\s+)[^\s\"',;&]+", re.IGNORECASE)
_SHAPED = re.compile(  # secrets that are known by their own shape
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    re.DOTALL,
)
_HINTS = re.compile(r"[@=:'\"]|%3D|--|-----BEGIN|bearer|identified|eyJ|AKIA|ASIA", re.IGNORECASE)
_DEPTH = 64


@lru_cache(maxsize=4096)
def is_secret(key: str) -> bool:
    """Whether a setting of that name holds a secret.

    >>> is_secret("database.password"), is_secret("awsSecretAccessKey"), is_secret("key.converter")
    (True, True, False)
    """
    words = [word.lower() for word in _SPLIT_WORDS.split(key) if word]
    if not words or (len(words) > 1 and words[-1] in _ABOUT):
        return False
    if not _WORDS.isdisjoint(words) or any(f"{a} {b}" in _PAIRS for a, b in pairwise(words)):
        return True
    return bool(_INSIDE.search("".join(words)) or _AT_END.search(words[-1]))


def scrub(text: str, patterns: Iterable[str] = ()) -> str:
    """Take the secrets out of a url, or of a text that holds urls, settings or headers.

    Args:
        text: anything; a text without secrets comes back as it was.
        patterns: more regular expressions; a setting whose name one of them finds is hidden too.

    >>> scrub("jdbc:postgresql://fred:pw@db/shop?password=pw&ssl=true")
    'jdbc:postgresql://db/shop?password=***&ssl=true'
    """
    return _scrub(text, _compile(patterns))


def scrub_mapping(mapping: Mapping[str, Any], patterns: Iterable[str] = ()) -> dict[str, Any]:
    """Copy a configuration without its secrets: values under telling keys are hidden, texts elsewhere scrubbed.

    >>> scrub_mapping({"user": "fred", "password": "pw", "url": "http://fred:pw@h/", "n": [{"token": 1}]})
    {'user': 'fred', 'password': '***', 'url': 'http://h/', 'n': [{'token': '***'}]}
    """
    more = _compile(patterns)
    return {str(key): _scrub_value(str(key), value, more, _DEPTH) for key, value in mapping.items()}


def _compile(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    compiled = []
    for pattern in patterns:
        try:
            compiled.append(re.compile(pattern, re.IGNORECASE))
        except re.error as fault:
            raise ConfigError(f"secret pattern {pattern!r} is no regular expression: {fault}") from None
    return tuple(compiled)


def _hides(key: str, more: tuple[re.Pattern[str], ...]) -> bool:
    return is_secret(key) or any(pattern.search(key) for pattern in more)


def _scrub_value(key: str, value: Any, more: tuple[re.Pattern[str], ...], depth: int) -> Any:
    if value is None or value == "":
        return value
    if _hides(key, more) or depth == 0:
        return HIDDEN
    if isinstance(value, str):
        return _scrub(value, more)
    if isinstance(value, (bytes, bytearray)):
        return HIDDEN
    if isinstance(value, Mapping):
        return {str(k): _scrub_value(str(k), v, more, depth - 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_scrub_value("", item, more, depth - 1) for item in value]
    return value


def _scrub(text: str, more: tuple[re.Pattern[str], ...]) -> str:
    if not _HINTS.search(text):
        return text
    text = _SHAPED.sub(HIDDEN, text)
    text = _ORACLE.sub(r"\1@", text)
    text = _USERINFO.sub(_without_user, text)
    text = _SLASHED.sub(r"\g<before>", text)
    text = _HEADER.sub(rf"\1{HIDDEN}", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    text = _IDENTIFIED.sub(rf"\1{HIDDEN}", text)
    text = _IDENTIFIED_BARE.sub(rf"\1{HIDDEN}", text)
    text = _without_curls(text)
    text = _IN_BRACKETS.sub(lambda m: f"{m[1]}{HIDDEN}" if _hides(m[2], more) else m[0], text)
    text = _ARGUMENT.sub(lambda m: f"{m[1]}{HIDDEN}" if _hides(m[2], more) else m[0], text)
    kept, position = [], 0
    while found := _KEY.search(text, position):
        kept.append(text[position : found.end()])
        position = found.end()
        if text.startswith(f"{HIDDEN})", position):  # hidden above, and what follows the bracket is no value
            continue
        # a lone `key` is Google's in a query, but a column's or a message's anywhere else
        lone = found[1].lower() == "key" and text[found.start() - 1 : found.start()] in ("?", "&")
        if found["spaced"] and not _is_option(text, found):
            continue
        if (lone or _hides(found[1], more)) and (value := _VALUE.match(text, position)) and value[0]:
            quote = value["quote"] or ""
            kept.append(f"{quote}{HIDDEN}{quote}")
            position = value.end()
    return "".join(kept) + text[position:]


def _is_option(text: str, found: re.Match[str]) -> bool:
    """Whether a word before a quoted text is a setting of SQL, which needs no `=`: `OPTIONS (user 'fred', password 'x')`."""
    before = text[max(0, found.start() - 32) : found.start()].rstrip(" \t\r\n\\'\"`")
    return found[1].lower() not in _SAID or before.endswith(("(", ","))


def _without_curls(text: str) -> str:
    """A text without the passwords that commands take with a user: `-u fred:x`."""
    first = text.find("curl")

    def one(found: re.Match[str]) -> str:
        of_curl = 0 <= first < found.start()
        if not of_curl and (found["short"] or found["password"].isdigit()):
            return found[0]  # a user and a group
        return f"{found[1]}{found['user']}{HIDDEN}"

    return _USER_AND_PASSWORD.sub(one, text)


def _without_user(found: re.Match[str]) -> str:
    scheme, info = found["scheme"].lower(), found["info"]
    start = f"{found['scheme']}:{found['slashes']}"
    if scheme in ("abfs", "abfss", "wasb", "wasbs"):  # container@account
        return f"{start}{info.partition(':')[0]}@"
    return start
