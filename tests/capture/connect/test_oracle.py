"""The real transforms, run on records whose every field holds a value of its own, agree with what is told without running them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import live_jars
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
TOPIC = Identity("kafka://b:9092", "t")
NAMES = ("a", "b", "c", "d")

Shape = dict[str, Any]


def chains() -> st.SearchStrategy[list[tuple[str, dict[str, str]]]]:
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
        st.tuples(just(f"{DEBEZIUM}ExtractNewRecordState"), st.sampled_from([{}, {"add.fields": "op,source.ts_ms"}, {"add.fields": "op:what", "add.fields.prefix": "m_"}])),
        st.tuples(just(f"{DEBEZIUM}ByLogicalTableRouter"), st.sampled_from([{"topic.regex": "(.*)", "topic.replacement": "all"}, {"topic.regex": "no", "topic.replacement": "x"}])),
    )  # fmt: skip
    return st.lists(known, min_size=1, max_size=4)


def shapes() -> st.SearchStrategy[Shape]:
    leaf = st.sampled_from(["text", "number"])
    inner = st.dictionaries(st.sampled_from(NAMES), leaf, min_size=1, max_size=3)
    plain = st.dictionaries(st.sampled_from(NAMES), st.one_of(leaf, leaf, inner), min_size=1, max_size=4)
    row = st.dictionaries(st.sampled_from(NAMES), leaf, min_size=1, max_size=3)
    envelope = row.map(
        lambda each: {"$name": "t.Envelope", "before": each, "after": each, "source": {"ts_ms": "number", "table": "text"}, "op": "text", "ts_ms": "number"}
    )  # fmt: skip
    return st.one_of(plain, plain, envelope)


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
            text = str(7_000_000 + count[0])
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
def judge(tmp_path_factory: pytest.TempPathFactory) -> Any:
    jars = live_jars.have("transforms")
    if not jars or shutil.which("java") is None:
        pytest.skip("no java, or no jars: python scripts/live_jars.py transforms")
    path = os.pathsep.join(map(str, jars))

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
    questions, sentinels = [], []
    for chain, key, value in cases:
        seen: dict[str, tuple[str, ...]] = {}
        count = [0]
        questions.append(
            {
                "topic": "t",
                "key": filled(key, count, ("__key",), seen),
                "value": filled(value, count, (), seen),
                "transforms": [{"class": kind, "config": settings} for kind, settings in chain],
            }
        )
        sentinels.append(seen)
    answers = judge(questions)
    tally: Counter[str] = Counter()
    wrong = []
    for (chain, key, value), seen, answer in zip(cases, sentinels, answers, strict=True):
        if "error" in answer or "dropped" in answer:
            tally["refused by the real ones"] += 1
            continue
        config = {"transforms": ",".join(f"t{at}" for at in range(len(chain)))}
        for at, (kind, settings) in enumerate(chain):
            config |= {
                f"transforms.t{at}.type": kind,
                **{f"transforms.t{at}.{k}": v for k, v in settings.items()},
            }
        (after,) = follow(config, Record("t", key=node(key, ("__key",)), value=node(value, ())))
        if after.notes:
            tally["not followed, and said"] += 1
            continue
        told = {part: ours(after.part(part)) for part in ("key", "value")}
        real = {
            part: {
                path: ".".join(seen[text]) if text in seen else None for path, text in answer[part].items()
            }
            for part in ("key", "value")
        }
        if told != real or after.topic != answer["topic"]:
            wrong.append(
                {"chain": chain, "ours": told, "real": real, "topics": (after.topic, answer["topic"])}
            )
        tally["compared"] += 1
        for kind, _ in chain:
            tally[kind] += 1
    assert not wrong, f"{len(wrong)} of {dict(tally)}\n" + json.dumps(wrong[:4], indent=1).replace(
        "\\u0000", "/"
    )
    assert tally["compared"] >= 300, tally
    kinds = {kind.partition("$")[0] for kind in tally if "." in kind}
    assert len(kinds) >= 14, kinds
