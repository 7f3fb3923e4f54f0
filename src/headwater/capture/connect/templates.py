"""capture.connect.templates: a template over a connector's settings -> text; or what is missing, said once.

    {s3.bucket.name}               a setting
    {topics.dir|topics}            with a default
    {hdfs.url,store.url}           the first that is set
    {topic:lower}                  through a function

A value that a configuration provider would fill in (`${file:…}`, `${vault:…}`) is not there for us: Connect shows the
placeholder. It counts as missing unless the user has said what it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from headwater.errors import ConfigError

PLACEHOLDER = re.compile(r"\$\{[\w.\-]+:[^}]*\}")
_FIELD = re.compile(r"\{([^{}|:]+)(?:\|([^{}:]*))?(?::(\w+))?\}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """The template with its settings in it.

    >>> fill("s3://{bucket}/{topics.dir|topics}/{topic:upper}", {"bucket": "b", "topic": "orders"})
    's3://b/topics/ORDERS'

    Raises:
        ConfigError: one has no value and no default, or only a placeholder.

    """

    def one(found: re.Match[str]) -> str:
        names, default, function = found[1].split(","), found[2], found[3]
        text = next((values[name.strip()] for name in names if values.get(name.strip())), default)
        if text is None:
            raise ConfigError(f"{found[1]} is not set")
        if function and function not in FUNCTIONS:
            raise ConfigError(f"no function {function!r} for templates: {', '.join(sorted(FUNCTIONS))}")
        told = FUNCTIONS[function](text) if function else text
        refuse_placeholder(found[1], told)
        return told

    return _FIELD.sub(one, template)


def refuse_placeholder(name: str, text: str) -> None:
    """Raise ConfigError where a text holds a placeholder; the message names the provider, never what it is asked for."""
    if found := PLACEHOLDER.search(text):
        raise ConfigError(f"{name} is given by the configuration provider {found[0][2:].partition(':')[0]!r}")


def resolved(config: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """A configuration with the placeholders that the user has explained.

    >>> resolved({"url": "jdbc:${env:DB}/x"}, {"${env:DB}": "postgresql://db"})
    {'url': 'jdbc:postgresql://db/x'}
    """
    if not known:
        return dict(config)
    return {
        key: PLACEHOLDER.sub(lambda found: known.get(found[0], found[0]), value) if "${" in value else value
        for key, value in config.items()
    }


def listed(text: str) -> list[str]:
    """Values with commas between them."""
    return [each.strip() for each in text.split(",") if each.strip()]


def mapping(text: str, between: str = ":") -> dict[str, str]:
    """`a:b,c:d`.

    >>> mapping("orders=o, items=i", "=")
    {'orders': 'o', 'items': 'i'}
    """
    pairs = (each.rpartition(between) for each in listed(text))
    return {before.strip(): after.strip() for before, mark, after in pairs if mark}


def java_hash(text: str) -> int:
    """String.hashCode()."""
    number = 0
    for unit in text.encode("utf-16-be")[1::2] if text.isascii() else _units(text):
        number = (31 * number + unit) & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def _units(text: str) -> list[int]:
    raw = text.encode("utf-16-be")
    return [raw[at] << 8 | raw[at + 1] for at in range(0, len(raw), 2)]


def snowflake(topic: str) -> str:
    """A table's name as Snowflake's connector makes it from a topic.

    >>> snowflake("orders"), snowflake("a.b")
    ('ORDERS', 'A_B_94741')
    """
    if re.fullmatch(r"[_a-zA-Z][_$a-zA-Z0-9]*", topic):
        return topic.upper()
    plain = re.sub(r"[^_$a-zA-Z0-9]", "_", topic)
    first = plain if re.match(r"[_a-zA-Z]", plain) else f"_{plain}"
    return f"{first}_{abs(java_hash(topic))}".upper()


FUNCTIONS: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "first": lambda text: text.split(",")[0].strip(),
    "host": lambda text: re.sub(r"^[\w+.\-]+://", "", text.split(",")[0].strip()).split("/")[0],
    "underscored": lambda text: text.replace(".", "_"),
    "sanitised": lambda text: re.sub(r"[^a-zA-Z0-9_]", "_", text),
    "snowflake": snowflake,
    "directory": lambda text: text.rpartition("/")[0] if "{{" in text else text,
}
"""What a template may do to a value."""
