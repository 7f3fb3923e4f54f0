"""capture.spark.trimming: an event and what settings say of names -> the event with its datasets so named.

Directories of dates and partitions at the end of a path belong to a dataset and are none: `…/orders/2024-01-01` is read
as `…/orders`, and where it was read in the facet `subset`. Hosts that are one cluster get one name. What thereby becomes
one dataset is told once. The rules are those of the OpenLineage agent, so that both give one identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headwater.capture.spark.settings import TRIMMERS, SparkSettings
from headwater.errors import ConfigError
from headwater.naming import FILESYSTEMS, Identity, Trimmers

Dataset = dict[str, Any]
_REMEMBERED = 10_000
_PATHS = frozenset(each.scheme for each in FILESYSTEMS.values())
_SUBSET = "https://openlineage.io/spec/facets/1-0-0/BaseSubsetDatasetFacet.json"


class DatasetNames:
    """What settings make of the names of datasets."""

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings
        off = {TRIMMERS[each] for each in settings.disabled_trimmers}
        on = {name: name not in off for name in TRIMMERS.values()}
        self.partitions = on["key_value"]
        self._paths = Trimmers(**on, remove_path=settings.remove_path)
        none = dict.fromkeys(TRIMMERS.values(), False)
        self._others = Trimmers(**none, remove_path=settings.remove_path)
        self._resolvers = [_resolver(name, how) for name, how in settings.namespace_resolvers.items()]
        self._known: dict[Identity, Identity] = {}

    def of(self, identity: Identity) -> Identity:
        """What a dataset is called."""
        found = self._known.get(identity)
        if found is None:
            namespace = identity.namespace
            trimmers = self._paths if namespace.partition(":")[0] in _PATHS else self._others
            for resolve in self._resolvers:  # the first that changes it
                if (other := resolve(namespace)) != namespace:
                    namespace = other
                    break
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            found = self._known[identity] = Identity(namespace, trimmers.trim(identity.name))
        return found

    def told(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event with these names; what has become one dataset is told once."""
        for side, key in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
            if event[side]:
                event[side] = self._merged(event[side], side, key, event["producer"])
        return event

    def _merged(self, datasets: Iterable[Dataset], side: str, key: str, producer: str) -> list[Dataset]:
        out: dict[Identity, Dataset] = {}
        places: dict[Identity, list[str]] = {}
        for each in datasets:
            before = Identity(each["namespace"], each["name"])
            now = self.of(before)
            self._rename(each, now)
            if now.name != before.name:
                places.setdefault(now, []).append(_place(before))
            if now in out:
                _merge(out[now], each)
            else:
                out[now] = each
        for identity, locations in places.items():
            condition = {"type": "location", "locations": locations}
            out[identity].setdefault(key, {})["subset"] = {
                "_producer": producer,
                "_schemaURL": f"{_SUBSET}#/$defs/{_KINDS[side]}",
                _CONDITIONS[side]: condition,
            }
        return list(out.values())

    def _rename(self, dataset: Dataset, now: Identity) -> None:
        facets = dataset["facets"]
        if dataset["namespace"] != now.namespace and "dataSource" in facets:
            facets["dataSource"] = {**facets["dataSource"], "name": now.namespace, "uri": now.namespace}
        dataset["namespace"], dataset["name"] = now.namespace, now.name
        if lineage := facets.get("columnLineage"):
            for field in lineage["fields"].values():
                field["inputFields"] = self._sources(field["inputFields"])
            if "dataset" in lineage:
                lineage["dataset"] = self._sources(lineage["dataset"])
        previous = (facets.get("lifecycleStateChange") or {}).get("previousIdentifier")
        if previous:
            told = self.of(Identity(previous["namespace"], previous["name"]))
            previous["namespace"], previous["name"] = told.namespace, told.name

    def _sources(self, listed: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        told = ((each, self.of(Identity(each["namespace"], each["name"]))) for each in listed)
        return _united({**each, "namespace": now.namespace, "name": now.name} for each, now in told)


def _united(listed: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each column once, with all that was told of how it got there."""
    out: dict[tuple[str, str, str], dict[str, Any]] = {}
    for each in listed:
        have = out.setdefault((each["namespace"], each["name"], each["field"]), each)
        if have is not each:
            more = [how for how in each["transformations"] if how not in have["transformations"]]
            have["transformations"] = [*have["transformations"], *more]
    return list(out.values())


_CONDITIONS = {"inputs": "inputCondition", "outputs": "outputCondition"}
_KINDS = {"inputs": "InputSubsetInputDatasetFacet", "outputs": "OutputSubsetOutputDatasetFacet"}


def _place(identity: Identity) -> str:
    """Where a path lies, as one text."""
    if identity.namespace == "file":
        return identity.name
    return f"{identity.namespace}/{identity.name.lstrip('/')}"


def _merge(into: Dataset, other: Dataset) -> None:
    """Two parts of one dataset: the columns of both, their counts together."""
    mine, theirs = into["facets"], other["facets"]
    for name, facet in theirs.items():
        if name not in mine:
            mine[name] = facet
    if "schema" in theirs and mine["schema"] is not theirs["schema"]:
        known = {each["name"] for each in mine["schema"]["fields"]}
        mine["schema"]["fields"] += [each for each in theirs["schema"]["fields"] if each["name"] not in known]
    if "columnLineage" in theirs and mine["columnLineage"] is not theirs["columnLineage"]:
        ours, more = mine["columnLineage"], theirs["columnLineage"]
        for name, field in more["fields"].items():
            have = ours["fields"].setdefault(name, field)
            if have is not field:
                have["inputFields"] = _united([*have["inputFields"], *field["inputFields"]])
        if "dataset" in more:
            ours["dataset"] = _united([*ours.get("dataset", []), *more["dataset"]])
    for key, name in (("inputFacets", "inputStatistics"), ("outputFacets", "outputStatistics")):
        ours, more = into.get(key, {}).get(name), other.get(key, {}).get(name)
        if more and not ours:
            into.setdefault(key, {})[name] = more
        elif more and ours is not more:
            for count in ("rowCount", "size", "fileCount"):
                if count in more:
                    ours[count] = ours.get(count, 0) + more[count]


def _resolver(name: str, how: Mapping[str, str]) -> Callable[[str], str]:
    """What one of `dataset.namespaceResolvers` does to a namespace."""
    key, kind = f"dataset.namespaceResolvers.{name}", how.get("type")
    scheme = f"{how['schema']}://" if how.get("schema") else ""

    def only(resolve: Callable[[str], str]) -> Callable[[str], str]:
        return lambda namespace: resolve(namespace) if namespace.startswith(scheme) else namespace

    if kind == "hostList":
        hosts = [
            each.strip() for each in re.split(r"[;,]", how.get("hosts", "").strip("[] ")) if each.strip()
        ]
        if not hosts:
            raise ConfigError(f"{key}.hosts: is missing; write [host1;host2]")
        every = re.compile("|".join(map(re.escape, sorted(hosts, key=len, reverse=True))), re.IGNORECASE)
        return only(lambda namespace: every.sub(lambda _: name, namespace))
    if kind not in ("pattern", "patternGroup"):
        raise ConfigError(f"{key}.type: {kind!r} is not offered: hostList, pattern or patternGroup")
    try:
        pattern = re.compile(re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", how.get("regex", "")))
    except re.error as fault:
        raise ConfigError(f"{key}.regex: {how['regex']!r} is no regular expression: {fault}") from None
    if not pattern.pattern:
        raise ConfigError(f"{key}.regex: is missing")
    if kind == "pattern":
        return only(lambda namespace: pattern.sub(lambda _: name, namespace))
    group = how.get("matchingGroup", "")
    if group not in pattern.groupindex:
        raise ConfigError(
            f"{key}.matchingGroup: {group!r} is no group of {how['regex']!r}, as in (?<{group}>…)"
        )
    return only(lambda namespace: pattern.sub(lambda found: found[group] or found[0], namespace))
