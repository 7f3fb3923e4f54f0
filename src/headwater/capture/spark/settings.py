"""capture.spark.settings: a Spark configuration -> what it says to Headwater, and which keys it says in vain.

Each key may stand under `spark.headwater.` or `spark.openlineage.`; ours goes first. Besides, `spark.headwater.` takes
every setting of headwater.toml. A wrong value raises; a key of the OpenLineage agent that is not offered is listed.

To honour one more key: read it in `read` into a field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from headwater import config
from headwater.capture.spark._datahub import DATAHUB, datahub_layer, delivers, of_datahub
from headwater.capture.spark._destination import (
    OURS,
    THEIRS,
    is_uuid,
    our_layer,
    place_of,
    their_layer,
    under,
)
from headwater.config import parse_bool
from headwater.errors import ConfigError, UnknownName

CAPTURED = ("spark.master", "spark.app.name")
TRIMMERS = {
    "DateTrimmer": "date",
    "KeyValueTrimmer": "key_value",
    "MultiDirDateTrimmer": "multi_dir_date",
    "YearMonthTrimmer": "year_month",
}
"""The agent's trimmers, and which of `naming.Trimmers` each is."""
_SPARK = re.compile(
    r"appName|applicationRunId|(parent|rootParent)(JobName|JobNamespace|RunId)|context|capturedProperties"
    r"|(job|run)\.tags|(job\.owners|facets|columnLineage|dataset|filter|jobName)\..+"
)
OPTIONS = {
    "app_name": "appName",
    "application_run_id": "applicationRunId",
    "parent_job_name": "parentJobName",
    "parent_job_namespace": "parentJobNamespace",
    "parent_run_id": "parentRunId",
    "root_parent_job_name": "rootParentJobName",
    "root_parent_job_namespace": "rootParentJobNamespace",
    "root_parent_run_id": "rootParentRunId",
    "captured_properties": "capturedProperties",
    "job_tags": "job.tags",
    "run_tags": "run.tags",
}
"""Arguments of `install` that are keys of Spark alone."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag of the job or the run."""

    key: str
    value: str = "true"
    source: str = "CONFIG"


@dataclass(frozen=True, slots=True)
class Ancestor:
    """The parent or the root; without a namespace it is the job's own."""

    run: str
    name: str
    namespace: str | None = None

    def told(self, namespace: str) -> dict[str, str]:
        """As State takes it."""
        return {"run": self.run, "namespace": self.namespace or namespace, "name": self.name}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What a Spark configuration says besides the settings that every part of Headwater has."""

    layers: tuple[config.Layer, ...] = ()
    """For `config.load(between=…)`: spark.headwater.*, then spark.openlineage.*, then spark.datahub.*"""
    app_name: str | None = None
    run_id: str | None = None
    parent: Ancestor | None = None
    root: Ancestor | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    """`context` as it was given: it may hold facets of the parent"""
    facets: Mapping[str, bool] = field(default_factory=dict)
    """What was said of a facet: True where it is disabled, False where it is asked for"""
    job_tags: tuple[Tag, ...] = ()
    run_tags: tuple[Tag, ...] = ()
    owners: Mapping[str, str] = field(default_factory=dict)
    """Type -> name"""
    captured_properties: tuple[str, ...] = CAPTURED
    environment_variables: tuple[str, ...] = ()
    dataset_lineage: bool = True
    descriptions: bool = False
    leaves: bool = True
    """Whether a field of a struct is told as a column of its own"""
    schema_limit: int | None = None
    """Columns beyond which a dataset's column lineage is left out; the agent's own default of 1000 is not ours"""
    append_dataset_name: bool = True
    replace_dots: bool = False
    remove_path: str | None = None
    disabled_trimmers: tuple[str, ...] = ()
    namespace_resolvers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    allowed_nodes: tuple[str, ...] = ()
    denied_nodes: tuple[str, ...] = ()
    rdd_events: bool = True
    unsupported: tuple[str, ...] = ()
    """Keys that were given and have no effect"""
    warnings: tuple[str, ...] = ()

    @property
    def disabled_facets(self) -> frozenset[str]:
        """Facets that shall not be told."""
        return frozenset(name for name, disabled in self.facets.items() if disabled)

    @property
    def denied_commands(self) -> frozenset[str]:
        """Root nodes of plans of which nothing is told, by the names of their classes."""
        denied, allowed = (
            {each.rpartition(".")[2] for each in listed} for listed in (self.denied_nodes, self.allowed_nodes)
        )
        return frozenset(denied - allowed)

    def asks_for(self, facet: str) -> bool:
        """Whether a facet that is off by itself was switched on: `facets.<name>.disabled=false`."""
        return self.facets.get(facet) is False


def read(
    conf: Mapping[str, str], options: Mapping[str, Any] | None = None, cwd: Path | None = None
) -> SparkSettings:
    """What a configuration says. `options` are the arguments that go before it; paths start from `cwd`.

    >>> read({"spark.openlineage.facets.debug.disabled": "true"}).disabled_facets
    frozenset({'debug'})
    """
    ours, theirs = under(conf, OURS), under(conf, THEIRS)
    given = {key: value for key, value in theirs.items() if _SPARK.fullmatch(key)}
    given |= {key: ours.pop(key) for key in list(ours) if _SPARK.fullmatch(key)}
    given |= {
        OPTIONS[name]: str(value)
        for name, value in (options or {}).items()
        if name in OPTIONS and value is not None
    }
    warnings: list[str] = []
    mine = our_layer(ours)
    place = place_of(theirs.get("url"), warnings)
    wanted = "transport" not in mine and not (options or {}).get("transport")
    layer, used = their_layer(theirs, place, cwd or Path.cwd(), wanted=wanted)
    datahub = under(conf, DATAHUB)
    given = {**of_datahub(datahub, warnings), **given}
    if delivers(datahub) and (not wanted or "transport" in layer):
        warnings.append(f"nothing is sent to DataHub: another transport goes before {DATAHUB}*")
    seen = _Seen(given)
    context = _context(seen.text("context"))
    parent, root = (
        _ancestor(seen, prefix, place if prefix == "parent" else {}, warnings)
        for prefix in ("parent", "rootParent")
    )
    made = SparkSettings(
        layers=(mine, layer, datahub_layer(datahub, conf.get("spark.app.name"), cwd or Path.cwd())),
        app_name=seen.text("appName"),
        run_id=_uuid("applicationRunId", seen.text("applicationRunId")),
        parent=_of_context(context) or parent,
        root=_of_context(context.get("root")) or root,
        context=context,
        facets=_facets(seen),
        job_tags=_tags(seen.text("job.tags")),
        run_tags=_tags(seen.text("run.tags")),
        owners=seen.under("job.owners."),
        captured_properties=_list(seen.text("capturedProperties")) or CAPTURED,
        environment_variables=_list(
            seen.text("facets.custom_environment_variables") or seen.text("facets.variables")
        ),
        dataset_lineage=seen.flag("columnLineage.datasetLineageEnabled", True),
        descriptions=seen.flag("columnLineage.descriptionsEnabled", False),
        leaves=seen.flag("columnLineage.nestedFieldsEnabled", True),
        schema_limit=seen.whole("columnLineage.schemaSizeLimit"),
        append_dataset_name=seen.flag("jobName.appendDatasetName", True),
        replace_dots=seen.flag("jobName.replaceDotWithUnderscore", False),
        remove_path=seen.pattern("dataset.removePath.pattern"),
        disabled_trimmers=_trimmers(seen.text("dataset.disabledTrimmers")),
        namespace_resolvers=_nested(seen.under("dataset.namespaceResolvers.")),
        allowed_nodes=_list(seen.text("filter.allowedSparkNodes")),
        denied_nodes=_list(seen.text("filter.deniedSparkNodes")),
        rdd_events=not seen.flag("filter.rddEventsDisabled", False),
        warnings=tuple(warnings),
    )
    known = seen.asked | used
    unsupported = {
        f"{THEIRS if key in theirs else OURS}{key}"
        for key in {*theirs, *given}
        if (key in theirs or OURS + key in conf) and key not in known
    }
    return replace(made, unsupported=tuple(sorted(unsupported)))


class _Seen:
    """The keys of Spark alone, read as what they are; it remembers which were asked for."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given
        self.asked: set[str] = set()

    def text(self, key: str) -> str | None:
        self.asked.add(key)
        return self._given.get(key, "").strip() or None

    def flag(self, key: str, default: bool) -> bool:
        text = self.text(key)
        try:
            return default if text is None else parse_bool(text)
        except ConfigError as fault:
            raise ConfigError(f"{key}: {fault}") from None

    def whole(self, key: str) -> int | None:
        text = self.text(key)
        if text is not None and not text.isdecimal():
            raise ConfigError(f"{key}: {text!r} is no whole number")
        return None if text is None else int(text)

    def pattern(self, key: str) -> str | None:
        text = self.text(key)
        try:
            re.compile(_named_groups(text or ""))
        except re.error as fault:
            raise ConfigError(f"{key}: {text!r} is no regular expression: {fault}") from None
        return _named_groups(text) if text else None

    def under(self, prefix: str) -> dict[str, str]:
        found = under(self._given, prefix)
        self.asked.update(prefix + name for name in found)
        return found


def _ancestor(seen: _Seen, prefix: str, place: Mapping[str, Any], warnings: list[str]) -> Ancestor | None:
    run = _uuid(f"{prefix}RunId", seen.text(f"{prefix}RunId")) or place.get("run")
    name = seen.text(f"{prefix}JobName") or place.get("job")
    namespace = seen.text(f"{prefix}JobNamespace") or place.get("namespace")
    if run and name:
        return Ancestor(run, name, namespace)
    if run or name:
        told, lacking = ("RunId", "JobName") if run else ("JobName", "RunId")
        warnings.append(f"{prefix}{told} without {prefix}{lacking}: no {_WHO[prefix]} is told")
    return None


_WHO = {"parent": "parent", "rootParent": "root"}


def _context(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        told = msgspec.json.decode(text)
        parent = told["parent"]
        if not all(isinstance(parent[part], dict) for part in ("run", "job")):
            raise TypeError
    except (msgspec.DecodeError, KeyError, TypeError):
        raise ConfigError(
            'context: must be JSON as in {"parent": {"run": {"runId": …}, "job": {"namespace": …, "name": …}}}'
        ) from None
    return dict(parent)


def _of_context(told: Any) -> Ancestor | None:
    if not told:
        return None
    try:
        run, job = told["run"]["runId"], told["job"]
        return Ancestor(_uuid("context", run) or "", str(job["name"]), job.get("namespace"))
    except (KeyError, TypeError, AttributeError):
        raise ConfigError("context: a parent and a root need run.runId and job.name") from None


def _facets(seen: _Seen) -> dict[str, bool]:
    out = dict.fromkeys(_list(seen.text("facets.disabled")), True)
    for name in seen.under("facets."):
        if name.endswith(".disabled"):
            out[name.removesuffix(".disabled")] = seen.flag(f"facets.{name}", True)
    return out


def _tags(text: str | None) -> tuple[Tag, ...]:
    """`key:value:source`, parted by semicolons; a backslash makes a colon or a semicolon a letter."""
    out = []
    for one in re.split(r"(?<!\\);", (text or "").strip().strip("[]")):
        parts = [re.sub(r"\\([:;])", r"\1", part).strip() for part in re.split(r"(?<!\\):", one)]
        if parts[0] and len(parts) <= 3:
            out.append(Tag(*parts))
        elif any(parts):
            raise ConfigError(f"tags: {one.strip()!r} is not as in key:value:source")
    return tuple(out)


def _list(text: str | None) -> tuple[str, ...]:
    """`[a;b]`, as the OpenLineage agent writes lists, or `a,b`."""
    return tuple(one.strip() for one in re.split(r"[;,]", (text or "").strip().strip("[]")) if one.strip())


def _trimmers(text: str | None) -> tuple[str, ...]:
    listed = tuple(each.rpartition(".")[2] for each in _list(text))
    for each in listed:
        if each not in TRIMMERS:
            raise ConfigError(f"dataset.disabledTrimmers: {UnknownName('trimmer', each, TRIMMERS)}")
    return listed


def _nested(flat: Mapping[str, str]) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for key, value in flat.items():
        name, _, option = key.partition(".")
        out.setdefault(name, {})[option] = value
    return out


def _named_groups(pattern: str) -> str:
    """Java names a group (?<name>…), Python (?P<name>…)."""
    return re.sub(r"\(\?<(?![=!])", "(?P<", pattern)


def _uuid(key: str, text: str | None) -> str | None:
    if text is not None and not is_uuid(text):
        raise ConfigError(f"{key}: {text!r} is no UUID")
    return text
