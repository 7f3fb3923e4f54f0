"""The real transforms, run on records whose every field holds a value of its own, agree with what is told without running them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from headwater.capture.connect.chain import follow
from headwater.capture.connect.records import Node, Origin, Record
from headwater.naming import Identity

pytestmark = pytest.mark.live

KAFKA = "org.apache.kafka.connect.transforms."
DEBEZIUM = "io.debezium.transforms."
ICEBERG = "org.apache.iceberg.connect.transforms."
PREDICATE = f"{KAFKA}predicates.TopicNameMatches"
TOPIC = Identity("kafka://b:9092", "t")
NAMES = ("a", "b", "c", "d")

Shape = dict[str, Any]


Link = tuple[str, dict[str, str], tuple[str, bool] | None]
"""A transform: its class, its settings, and the predicate over topics that decides whether it applies."""


def chains() -> st.SearchStrategy[list[Link]]:
    name = st.sampled_from([*NAMES, "x", "a.b", "a_b", "after"])
    some = st.lists(name, min_size=1, max_size=3, unique=True).map(",".join)
    renames = st.lists(st.tuples(name, st.sampled_from(["p", "q", "a", "b"])).map(":".join), min_size=1, max_size=2, unique_by=(lambda t: t.split(":")[0], lambda t: t.split(":")[1])).map(",".join)  # fmt: skip
    part = st.sampled_from(["$Key", "$Value", "$Value", "$Value"])

    def transform(
        kind: str, suffixed: bool = True, **config: Any
    ) -> st.SearchStrategy[tuple[str, dict[str, str]]]:
        fixed = st.fixed_dictionaries({key.replace("_", "."): each for key, each in config.items()})
        suffix = part if suffixed else st.just("")
        return st.tuples(suffix.map(lambda text: f"{KAFKA}{kind}{text}"), fixed)

    just = st.just
    known = st.one_of(
        transform("ReplaceField", exclude=some),
        transform("ReplaceField", include=some),
        transform("ReplaceField", renames=renames),
        transform("ReplaceField", renames=renames, exclude=some),
        transform("InsertField", static_field=st.sampled_from(["p", "q?"]), static_value=just("fixed")),
        transform("InsertField", topic_field=st.sampled_from(["p", "tt!"]), offset_field=just("o")),
        transform("HoistField", field=st.sampled_from(["h", "a"])),
        transform("ExtractField", field=name),
        transform("ExtractField", field=st.sampled_from(["a.b", "c.d", "a", "`a`.b"]), field_syntax_version=just("V2")),
        transform("Flatten", delimiter=st.sampled_from([".", "_"])),
        transform("Cast", spec=name.map(lambda each: f"{each}:string")),
        transform("MaskField", fields=some),
        transform("ValueToKey", suffixed=False, fields=some),
        transform("HeaderFrom", fields=name, headers=just("h"), operation=st.sampled_from(["move", "copy"])),
        transform("SetSchemaMetadata", schema_name=just("n")),
        transform("RegexRouter", suffixed=False, regex=st.sampled_from(["(.*)", "t", "x", "(t)(.*)"]), replacement=st.sampled_from(["raw.$1", "y", "$1$1"])),
        transform("DropHeaders", suffixed=False, headers=just("h")),
        transform("InsertHeader", suffixed=False, header=just("h"), value_literal=just("fixed")),
        transform("TimestampConverter", field=name, target_type=st.sampled_from(["Timestamp", "unix"])),
        transform("TimestampRouter", suffixed=False, topic_format=st.sampled_from(["${topic}-${timestamp}", "at-${timestamp}"]), timestamp_format=just("yyyy")),
        transform("Filter", suffixed=False),
        st.tuples(just(f"{DEBEZIUM}ExtractNewRecordState"), st.sampled_from([{}, {"add.fields": "op,source.ts_ms"}, {"add.fields": "op:what", "add.fields.prefix": "m_"}])),
        st.tuples(just(f"{DEBEZIUM}ByLogicalTableRouter"), st.sampled_from([{"topic.regex": "(.*)", "topic.replacement": "all"}, {"topic.regex": "no", "topic.replacement": "x"}, {"topic.regex": "(.*)", "topic.replacement": "$1", "key.enforce.uniqueness": "false"}])),
        st.tuples(just(f"{DEBEZIUM}outbox.EventRouter"), st.sampled_from([
            {"route.topic.replacement": "events"},
            {},
            {"route.topic.replacement": "events", "table.fields.additional.placement": "a:header:h,b:envelope"},
            {"route.topic.replacement": "events", "table.fields.additional.placement": "a:envelope:renamed"},
            {"route.topic.replacement": "events", "table.field.event.payload": "a", "table.field.event.key": "b"},
        ])),
        st.tuples(just(f"{DEBEZIUM}HeaderToValue"), st.fixed_dictionaries({"headers": just("h"), "fields": st.sampled_from(["hv", "a", "after.hv"]), "operation": st.sampled_from(["copy", "move"])})),
        st.tuples(just(f"{DEBEZIUM}ExtractChangedRecordState"), just({"header.changed.name": "changed", "header.unchanged.name": "unchanged"})),
        st.tuples(just(f"{DEBEZIUM}partitions.PartitionRouting"), just({"partition.payload.fields": "change.a", "partition.topic.num": "3"})),
        st.tuples(just(f"{DEBEZIUM}TimezoneConverter"), just({"converted.timezone": "+02:00"})),
        st.tuples(just(f"{DEBEZIUM}SchemaChangeEventFilter"), just({"schema.change.event.exclude.list": "DATABASE"})),
        st.tuples(just(f"{DEBEZIUM}VectorToJsonConverter"), just({})),
        st.tuples(just(f"{DEBEZIUM}SwapGeometryCoordinates"), just({})),
        st.tuples(just("io.debezium.connector.postgresql.transforms.DecodeLogicalDecodingMessageContent"), just({})),
        st.tuples(just(f"{ICEBERG}CopyValue"), st.fixed_dictionaries({"source.field": name, "target.field": st.sampled_from(["copied", "a"])})),
        st.tuples(just(f"{ICEBERG}KafkaMetadataTransform"), st.sampled_from([{}, {"field_name": "m"}, {"nested": "true"}, {"external_field": "ext,fixed"}])),
        st.tuples(just(f"{ICEBERG}DebeziumTransform"), st.sampled_from([{}, {"cdc.target.pattern": "{db}_x.{table}"}])),
        st.tuples(just(f"{ICEBERG}DmsTransform"), just({})),
    )  # fmt: skip
    topics = st.sampled_from(["t", "x", "raw.*", "all|events"])
    predicate = st.one_of(st.none(), st.none(), st.none(), st.tuples(topics, st.booleans()))
    return st.lists(st.tuples(known, predicate).map(lambda pair: (*pair[0], pair[1])), min_size=1, max_size=4)


def shapes() -> st.SearchStrategy[Shape]:
    leaf = st.sampled_from(["text", "number"])
    inner = st.dictionaries(st.sampled_from(NAMES), leaf, min_size=1, max_size=3)
    plain = st.dictionaries(st.sampled_from(NAMES), st.one_of(leaf, leaf, inner), min_size=1, max_size=4)
    row = st.dictionaries(st.sampled_from(NAMES), leaf, min_size=1, max_size=3)
    source = {"ts_ms": "number", "db": "text", "schema": "text", "table": "text"}
    envelope = row.map(
        lambda each: {"$name": "t.Envelope", "before": each, "after": each, "source": source, "op": "text", "ts_ms": "number"}
    )  # fmt: skip
    outbox = row.map(
        lambda each: {"$name": "t.Envelope", "after": {"id": "text", "aggregatetype": "text", "aggregateid": "text", "type": "text", "payload": "text", **each},
                      "source": source, "op": "text", "ts_ms": "number"}
    )  # fmt: skip
    return st.one_of(plain, plain, envelope, outbox)


def seldom() -> list[tuple[list[Link], Shape, Shape]]:
    """What chance puts together too seldom: headers of a kind, and fields for them in structs that are there, and that are not."""
    made: Link = (f"{KAFKA}InsertHeader", {"header": "h", "value.literal": "fixed"}, None)
    taken: Link = (
        f"{KAFKA}HeaderFrom$Value",
        {"fields": "b", "headers": "h", "operation": "copy"},
        None,
    )
    values: list[Shape] = [
        {"b": "text"},
        {"b": "text", "after": {"c": "text"}},
        {"b": "text", "after": "text"},
        {"b": "text", "after": {"after": {"hv": "text"}}},
        {"b": {"c": "text"}, "a": {"hv": "text"}},
    ]
    return [
        ([*headers, (f"{DEBEZIUM}HeaderToValue", {"headers": "h", "fields": field, "operation": how}, None)], {"k": "text"}, value)
        for headers in ([made], [taken])
        for field in ("hv", "after.hv", "after.b.hv", "after.after.hv")
        for how in ("copy", "move")
        for value in values
    ]  # fmt: skip


def filled(shape: Shape, count: list[int], path: tuple[str, ...], seen: dict[str, tuple[str, ...]]) -> Shape:
    """The shape with a value of its own in every field; `seen` tells which is where."""
    made: Shape = {}
    for name, each in shape.items():
        if name == "$name":
            made[name] = each
        elif isinstance(each, dict):
            made[name] = filled(each, count, (*path, name), seen)
        else:
            count[0] += 1
            text = (
                "c" if (name, path) == ("op", ()) else str(7_000_000 + count[0])
            )  # some look whether it is a change
            made[name] = text if each == "text" else int(text)
            seen[text] = (*path, name)
    return made


def node(shape: Shape, path: tuple[str, ...]) -> Node:
    fields = []
    for name, each in shape.items():
        here = (*path, name)
        if name != "$name":
            fields.append(
                (
                    name,
                    node(each, here)
                    if isinstance(each, dict)
                    else Node(each, origins=(Origin(TOPIC, here),)),
                )
            )
    return Node("struct", fields=tuple(fields), name=shape.get("$name", ""))


def ours(made: Node, above: tuple[str, ...] = ()) -> dict[str, str | None]:
    """path -> the field that it came from; None where it is masked or made up."""
    if made.fields is None:
        kept = [each for each in made.origins if "MASK" not in each.ways]
        return {"\0".join(above): ".".join(kept[0].path) if kept else None}
    found: dict[str, str | None] = {}
    for name, each in made.fields:
        found |= ours(each, (*above, name))
    return found


@pytest.fixture(scope="module")
def judge(jars: Callable[[str], list[Path]], need: Callable[[str, str], None]) -> Any:
    if shutil.which("java") is None:
        need("Java", "apt install openjdk-17-jdk-headless")
    profiles = ("transforms", "debezium-postgres", "iceberg-sink")
    path = os.pathsep.join(
        str(jar) for each in profiles for jar in jars(each) if "slf4j-api-2" not in jar.name
    )

    def ask(questions: list[Any]) -> list[Any]:
        done = subprocess.run(
            ["java", "-XX:TieredStopAtLevel=1", "-cp", path, str(Path(__file__).with_name("Oracle.java"))],
            input="\n".join(json.dumps(each) for each in questions),
            capture_output=True,
            text=True,
            check=True,
        )
        return [json.loads(each) for each in done.stdout.splitlines()]

    return ask


def test_the_real_transforms_agree(judge: Any) -> None:
    cases: list[tuple[Any, Any, Any]] = []

    @examples(max_examples=3000, database=None)
    @given(chains(), shapes(), shapes())
    def collect(chain: Any, key: Shape, value: Shape) -> None:
        cases.append((chain, {k: v for k, v in key.items() if k != "$name"}, value))

    collect()
    cases += seldom()
    questions, sentinels = [], []
    for chain, key, value in cases:
        seen: dict[str, tuple[str, ...]] = {}
        count = [0]
        questions.append(
            {
                "topic": "t",
                "key": filled(key, count, ("__key",), seen),
                "value": filled(value, count, (), seen),
                "transforms": [_asked(*each) for each in chain],
            }
        )
        sentinels.append(seen)
    answers = judge(questions)
    tally: Counter[str] = Counter()
    wrong = []
    for (chain, key, value), seen, answer in zip(cases, sentinels, answers, strict=True):
        if "error" in answer:
            tally["refused by the real ones"] += 1
            continue
        found = follow(_config(chain), Record("t", key=node(key, ("__key",)), value=node(value, ())))
        if "dropped" in answer or not found:
            tally["dropped"] += 1
            if ("dropped" in answer) is not (not found) and not any(each.filtered for each in found):
                wrong.append({"chain": chain, "dropped": "dropped" in answer, "ours": len(found)})
            continue
        if not all(each.traced for each in found):
            tally["not followed, and said"] += 1
            continue
        real = {
            part: {
                path: ".".join(seen[text]) if text in seen else None for path, text in answer[part].items()
            }
            for part in ("key", "value")
        }
        told = [{part: ours(after.part(part)) for part in ("key", "value")} for after in found]
        fits = [
            after.topic == answer["topic"]
            if after.fits is None
            else bool(re.fullmatch(after.fits, answer["topic"]))
            for after in found
        ]
        # several outcomes where the data decide: the real one is among them
        if not any(each == real and fit for each, fit in zip(told, fits, strict=True)):
            topics = ([after.topic for after in found], answer["topic"])
            wrong.append({"chain": chain, "ours": told, "real": real, "topics": topics})
        tally["outcomes left open"] += len(found) > 1
        tally["compared"] += 1
        for kind, _, predicate in chain:
            if predicate is None:
                tally[kind] += 1
    assert not wrong, f"{len(wrong)} of {dict(tally)}\n" + "\n".join(
        map(_shown, sorted(wrong, key=_size)[:8])
    )
    assert tally["compared"] >= 300, tally
    kinds = {kind.partition("$")[0] for kind in tally if "." in kind}
    missing = WANTED - kinds
    assert not missing, f"never compared: {missing}"


def _size(case: dict[str, Any]) -> int:
    return len(case["chain"])


def _shown(case: dict[str, Any]) -> str:
    """A chain, and only what differs."""
    if "real" not in case:
        return repr(case)
    differs = []
    for part in ("key", "value"):
        mine, real = case["ours"][0][part], case["real"][part]
        for path in sorted({*mine, *real}):
            if (mine.get(path, "-"), path in mine) != (real.get(path, "-"), path in real):
                pair = f"ours {mine.get(path, 'nothing')}, real {real.get(path, 'nothing')}"
                differs.append(f"{part} {path}: {pair}".replace("\0", "/"))
    return f"{case['chain']}\n    {differs} {case['topics']}"


WANTED = {
    *(f"{KAFKA}{each}" for each in ["Cast", "DropHeaders", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "InsertHeader", "MaskField", "RegexRouter", "ReplaceField", "SetSchemaMetadata", "TimestampConverter", "TimestampRouter", "ValueToKey"]),
    *(f"{DEBEZIUM}{each}" for each in ["ByLogicalTableRouter", "ExtractChangedRecordState", "ExtractNewRecordState", "HeaderToValue", "SchemaChangeEventFilter", "SwapGeometryCoordinates", "TimezoneConverter", "VectorToJsonConverter", "outbox.EventRouter", "partitions.PartitionRouting"]),
    *(f"{ICEBERG}{each}" for each in ["CopyValue", "DebeziumTransform", "KafkaMetadataTransform"]),
    "io.debezium.connector.postgresql.transforms.DecodeLogicalDecodingMessageContent",
}  # fmt: skip
"""What must be among the chains that were compared."""


def _asked(kind: str, settings: dict[str, str], predicate: tuple[str, bool] | None) -> dict[str, Any]:
    asked: dict[str, Any] = {"class": kind, "config": settings}
    if predicate is not None:
        asked["predicate"] = {"class": PREDICATE, "config": {"pattern": predicate[0]}, "negate": predicate[1]}
    return asked


def _config(chain: list[Link]) -> dict[str, str]:
    config = {"transforms": ",".join(f"t{at}" for at in range(len(chain)))}
    for at, (kind, settings, predicate) in enumerate(chain):
        below = f"transforms.t{at}."
        config |= {f"{below}type": kind, **{f"{below}{name}": text for name, text in settings.items()}}
        if predicate is not None:
            config |= {f"{below}predicate": f"p{at}", f"{below}negate": str(predicate[1]).lower(),
                       f"predicates.p{at}.type": PREDICATE, f"predicates.p{at}.pattern": predicate[0]}  # fmt: skip
    return config
