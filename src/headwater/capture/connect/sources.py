"""capture.connect.sources: a source's settings and the topics it was seen to write -> where each record came from.

Tables that the settings name are told at once. Those that only a pattern covers are found again in the names of the topics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from headwater.capture.connect.chain import follow
from headwater.capture.connect.java import java_regex
from headwater.capture.connect.kcql import statements
from headwater.capture.connect.places import Ask, Flow, named, stored
from headwater.capture.connect.places import topic as name_topic
from headwater.capture.connect.queries import read
from headwater.capture.connect.records import Node, Origin, Record, Rest, made, open_struct
from headwater.capture.connect.templates import fill, listed, refuse_placeholder
from headwater.errors import ConfigError
from headwater.naming import Dataset, from_jdbc, from_topic

_LITERAL = re.compile(r"(?:[\w$\- ]|\\[.$\-])+(?:\.(?:[\w$\- ]|\\[.$\-])+)*")


def flows(ask: Ask) -> list[Flow]:
    """Where records come from.

    Raises:
        ConfigError: what decides it is missing or not understood.

    """
    if ask.entry.shape:
        return SHAPES[ask.entry.shape](ask)
    if not ask.entry.topic:
        return []
    topic = fill(ask.entry.topic, ask.config)
    dataset = named(ask.entry.dataset, ask.entry.args, ask.config) if ask.entry.dataset else None
    kind = "FILE" if ask.entry.dataset == "path" else "TABLE"
    value = open_struct(dataset.identity if dataset else None)
    return [Flow(dataset, Record(topic, value=value), kind)]


def hidden(ask: Ask) -> frozenset[str]:
    """Topics of the connector's own that hold no data."""
    config = ask.config
    prefix = config.get("topic.prefix") or config.get("database.server.name") or ""
    if ask.entry.shape == "debezium" and prefix:
        beat = (
            config.get("topic.heartbeat.prefix")
            or config.get("heartbeat.topics.prefix")
            or "__debezium-heartbeat"
        )
        return frozenset(
            {
                prefix,
                f"{beat}.{prefix}",
                f"{prefix}.{config.get('topic.transaction') or 'transaction'}",
                config.get("schema.history.internal.kafka.topic", ""),
                config.get("signal.kafka.topic", ""),
            }
        )
    return frozenset({"mm2-offset-syncs.internal"})


def _unrouted(ask: Ask) -> Iterator[str]:
    """The topics seen that the transforms leave as they are named, or of which nobody knows what they do."""
    for topic in sorted(ask.observed - hidden(ask)):
        after = follow(ask.config, Record(topic))
        if any(each.topic == topic for each in after):
            yield topic


# --- Debezium


def _debezium(ask: Ask) -> list[Flow]:
    config, args = ask.config, dict(ask.entry.args)
    levels = args.pop("levels").split(".")
    what = args.pop("list", "table")
    databases = listed(fill(args.pop("databases", ""), config))
    prefix = fill("{topic.prefix,database.server.name}", config)
    delimiter = config.get("topic.delimiter", ".")
    filled = {name: fill(template, config) for name, template in args.items()}
    found: dict[tuple[str, Dataset], Flow] = {}
    renamed = _renaming(config)

    def add(parts: list[str]) -> None:
        own = dict(zip(levels, parts, strict=True))
        table = own.pop(levels[-1])
        dataset = stored({**filled, **own, "table": table})
        topic = renamed(delimiter.join([prefix, *parts]))
        found.setdefault((topic, dataset), Flow(dataset, _change(topic, dataset)))

    for text in listed(config.get(f"{what}.include.list") or config.get(f"{what}.whitelist") or ""):
        if not _LITERAL.fullmatch(text):
            continue
        parts = text.replace("\\", "").split(".")
        if len(parts) == len(levels):
            add(parts)
        elif len(parts) == len(levels) - 1 and databases:
            for each in databases:
                add([each, *parts])
        elif len(parts) == len(levels) + 1:  # Oracle's may begin with the database
            add(parts[1:])
    for topic in (
        _unrouted(ask) if renamed is _usual else ()
    ):  # of another name nobody can tell what it was made of
        rest = topic.removeprefix(f"{prefix}{delimiter}")
        parts = rest.split(delimiter)
        if rest != topic and len(parts) == len(levels) and _included(config, what, ".".join(parts)):
            add(parts)
    return list(found.values())


def _usual(topic: str) -> str:
    return topic


def _renaming(config: Mapping[str, str]) -> Callable[[str], str]:
    """What a strategy makes of the usual name of a topic.

    Raises:
        ConfigError: it is one that only its own code understands.

    """
    named = config.get("topic.naming.strategy", "").rpartition(".")[2]
    if named in ("", "SchemaTopicNamingStrategy", "DefaultTopicNamingStrategy"):
        return _usual
    if named not in ("SchemaRegexTopicNamingStrategy", "DefaultRegexTopicNamingStrategy"):
        raise ConfigError(f"topic.naming.strategy: only {named} knows which topics it writes to")
    regex, replacement = java_regex(config.get("topic.regex", "")), config.get("topic.replacement", "")
    return lambda topic: regex.replace_first(topic, replacement) or topic


def _included(config: Mapping[str, str], what: str, name: str) -> bool:
    """Whether the lists let a table pass: one that they do not was not captured, whatever a topic is called."""
    patterns = listed(config.get(f"{what}.include.list") or config.get(f"{what}.whitelist") or "")
    names = [name, name.partition(".")[2]]  # SQL Server's lists leave out the database
    for pattern in patterns:
        try:
            regex = java_regex(f"(?i){pattern}") if pattern.isascii() else java_regex(pattern)
        except ConfigError:
            return True
        if any(regex.matches(each) for each in names if each):
            return True
    return not patterns


def _change(topic: str, dataset: Dataset) -> Record:
    """A change event: the row before and after, and what Debezium says about it, which comes from no column."""
    row = open_struct(dataset.identity)
    envelope = Node("struct", fields=(("before", row), ("after", row)), rest=Rest())
    return Record(topic, key=row, value=envelope)


# --- JDBC


def _jdbc(ask: Ask) -> list[Flow]:
    config = ask.config
    url, prefix = fill("{connection.url}", config), config.get("topic.prefix", "")
    refuse_placeholder("topic.prefix", prefix)
    schema = config.get("schema.pattern") or None
    if query := config.get("query"):
        return [
            Flow(
                from_jdbc(url, each.table, default_schema=schema),
                _selected(prefix, url, schema, each.columns),
            )
            for each in read(query, url)
        ]
    tables = listed(config.get("table.whitelist", ""))
    tables += [each for each in listed(config.get("table.include.list", "")) if _LITERAL.fullmatch(each)]
    tables += listed(config.get("tables", ""))
    known = [(table.rpartition(".")[2].strip('"`[]'), table) for table in dict.fromkeys(tables)]
    named = {short for short, _ in known}
    for topic in _unrouted(ask):
        if topic.startswith(prefix) and len(topic) > len(prefix) and topic[len(prefix) :] not in named:
            known.append((topic[len(prefix) :], topic[len(prefix) :]))
    found = []
    for short, table in known:
        # the names of a list are those of the database, letter by letter
        quoted = table if re.search(r'["`\[]', table) else ".".join(f'"{part}"' for part in table.split("."))
        dataset = from_jdbc(url, quoted, default_schema=schema)
        found.append(Flow(dataset, Record(f"{prefix}{short}", value=open_struct(dataset.identity))))
    return found


def _selected(topic: str, url: str, schema: str | None, columns: Mapping[str, list[str]] | None) -> Record:
    """A query's row: its columns where the text tells them."""
    if columns is None:
        return Record(topic, value=Node("struct", fields=(), rest=Rest()))
    fields = []
    for name, sources in columns.items():
        origins = []
        for each in sources:
            table, _, column = each.rpartition(".")
            origins.append(Origin(from_jdbc(url, table, default_schema=schema).identity, (column,)))
        fields.append((name, Node(origins=tuple(origins))))
    return Record(topic, value=Node("struct", fields=tuple(fields)))


# --- documents


def _mongodb(ask: Ask) -> list[Flow]:
    config = ask.config
    host = fill("{connection.uri}", config)
    separator = config.get("topic.separator") or "."
    prefix, suffix = config.get("topic.prefix", ""), config.get("topic.suffix", "")
    found: dict[str, Flow] = {}

    def add(topic: str, base: str, collection: str) -> None:
        dataset = stored({"platform": "mongodb", "host": host, "database": base, "table": collection})
        whole = config.get("publish.full.document.only", "").lower() == "true"
        row = open_struct(dataset.identity)
        value = row if whole else Node("struct", fields=(("fullDocument", row),), rest=Rest())
        found.setdefault(topic, Flow(dataset, Record(topic, value=value)))

    base, collection = config.get("database", ""), config.get("collection", "")
    if base and collection:
        add(
            _mapped(config, base, collection)
            or separator.join(p for p in (prefix, base, collection, suffix) if p),
            base,
            collection,
        )
    if not config.get("topic.namespace.map"):
        for topic in _unrouted(ask):
            inner = topic.removeprefix(f"{prefix}{separator}") if prefix else topic
            inner = inner.removesuffix(f"{separator}{suffix}") if suffix else inner
            first, mark, rest = inner.partition(separator)
            if mark and (not base or base == first):
                add(topic, first, rest)
    return list(found.values())


def _mapped(config: Mapping[str, str], base: str, collection: str) -> str:
    try:
        table = msgspec.json.decode(config.get("topic.namespace.map") or "{}", type=dict[str, str])
    except (ValueError, RecursionError):
        raise ConfigError("topic.namespace.map is not understood") from None
    return table.get(f"{base}.{collection}") or table.get("*", "")


# --- generators


def _generator(ask: Ask) -> list[Flow]:
    """MSK's generator: `genv.<topic>.<field>.with` names the topics and their fields, `.matching` another topic's field."""
    keys: dict[str, dict[str, Node]] = {}
    values: dict[str, dict[str, Node]] = {}
    for setting in sorted(ask.config):
        head, _, rest = setting.partition(".")
        if head not in ("genk", "genkp", "genv", "genvp"):
            continue
        parts = rest.split(".")
        while parts and parts[-1] in ("with", "matching", "sometimes"):
            parts.pop()
        if not parts:
            continue
        topic, field = parts[0], ".".join(parts[1:])
        node = made("string")
        if setting.endswith(".matching"):
            node = Node("string", origins=_match(ask, ask.config[setting]))
        (keys if head.startswith("genk") else values).setdefault(topic, {})[field] = node
    return [
        Flow(None, Record(topic, key=_shaped(keys.get(topic, {})), value=_shaped(values.get(topic, {}))))
        for topic in sorted({*keys, *values})
    ]


def _shaped(fields: Mapping[str, Node]) -> Node:
    if list(fields) == [""]:
        return fields[""]
    return Node("struct", fields=tuple((name, node) for name, node in fields.items() if name))


def _match(ask: Ask, text: str) -> tuple[Origin, ...]:
    """`customers.key` or `customers.value.id`: a field of another topic."""
    topic, _, path = text.partition(".")
    part, _, field = path.partition(".")
    if part not in ("key", "value"):
        return ()
    dataset = name_topic(ask.site, topic, ask.config, "source")
    above = ("__key",) if part == "key" else ()
    return (Origin(dataset.identity, (*above, *([field] if field else [] if above else ["value"]))),)


# --- Kafka to Kafka


def _mirror(ask: Ask) -> list[Flow]:
    config = ask.config
    separator = config.get("replication.policy.separator", ".")
    same = "Identity" in config.get("replication.policy.class", "")
    prefix = "" if same else f"{config.get('source.cluster.alias', 'source')}{separator}"
    brokers = fill("{source.cluster.bootstrap.servers}", config)
    names = {
        each
        for each in listed(config.get("topics", ""))
        if re.fullmatch(r"[\w.\-]+", each) and "." not in each
    }
    names |= {topic.removeprefix(prefix) for topic in _unrouted(ask) if topic.startswith(prefix)}
    return [_copied(brokers, name, f"{prefix}{name}") for name in sorted(names)]


def _replicator(ask: Ask) -> list[Flow]:
    config = ask.config
    brokers = fill("{src.kafka.bootstrap.servers}", config)
    form = config.get("topic.rename.format") or "${topic}"
    names = set(listed(config.get("topic.whitelist", "")))
    before, _, after = form.partition("${topic}")
    for topic in _unrouted(ask):
        if topic.startswith(before) and topic.endswith(after):
            inner = topic[len(before) : len(topic) - len(after)]
            pattern = config.get("topic.regex")
            if inner and (not pattern or java_regex(pattern).matches(inner)):
                names.add(inner)
    return [_copied(brokers, name, form.replace("${topic}", name)) for name in sorted(names)]


def _copied(brokers: str, name: str, target: str) -> Flow:
    dataset = from_topic(brokers, name)
    key = open_struct(dataset.identity, ("__key",))
    return Flow(dataset, Record(target, key=key, value=open_struct(dataset.identity)), "TOPIC")


# --- others


def _observed(ask: Ask) -> list[Flow]:
    """One place, whatever topics it fills."""
    dataset = named(ask.entry.dataset, ask.entry.args, ask.config)
    value = open_struct(dataset.identity)
    return [Flow(dataset, Record(topic, value=value), "FILE") for topic in _unrouted(ask)]


def _kcql(ask: Ask) -> list[Flow]:
    args = dict(ask.entry.args)
    found = []
    for said in statements(fill(args.pop("kcql"), ask.config)):
        bucket, _, prefix = said.source.partition(":")
        values = {**ask.config, "target": said.source, "bucket": bucket, "prefix": prefix}
        dataset = named(ask.entry.dataset, args, values)
        value = open_struct(dataset.identity)
        if said.fields:
            value = Node(
                "struct", fields=tuple((alias, value.child(name) or Node()) for name, alias in said.fields)
            )
        found.append(
            Flow(
                dataset, Record(said.target, value=value), "FILE" if ask.entry.dataset == "path" else "TABLE"
            )
        )
    return found


def _nothing(ask: Ask) -> list[Flow]:
    return []


SHAPES: dict[str, Callable[[Ask], list[Flow]]] = {
    "debezium": _debezium,
    "jdbc": _jdbc,
    "mongodb": _mongodb,
    "generator": _generator,
    "mirror": _mirror,
    "replicator": _replicator,
    "observed": _observed,
    "kcql": _kcql,
    "nothing": _nothing,
}
"""The sources that an entry alone cannot tell."""
