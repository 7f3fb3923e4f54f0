"""deliver.datahub.urns: names -> DataHub's urns, with reserved characters encoded or, as the Java converter does, not."""

from __future__ import annotations

import re

from headwater.errors import EventError

ACTOR = "urn:li:corpuser:datahub"
UNKNOWN_ACTOR = "urn:li:corpuser:UNKNOWN"
_IS_RESERVED = re.compile("[,()␟]").search
_RESERVED = str.maketrans({",": "%2C", "(": "%28", ")": "%29", "␟": "%E2%90%9F"})


def encoded(text: str) -> str:
    """As DataHub's SDK encodes a part of an urn.

    >>> encoded("sum(a, b)")
    'sum%28a%2C b%29'
    """
    return text.translate(_RESERVED)


class Urns:
    """Makes urns; `encode` says whether names are encoded or must be balanced."""

    def __init__(self, *, encode: bool) -> None:
        self._encode = encode

    def part(self, text: str) -> str:
        """A name as it stands inside an urn."""
        return text.translate(_RESERVED) if self._encode and _IS_RESERVED(text) else text

    def dataset(self, platform: str, name: str, fabric: str) -> str:
        """A dataset; its name may be encoded already."""
        return f"urn:li:dataset:(urn:li:dataPlatform:{self.part(platform)},{self.part(name)},{fabric})"

    def flow(self, orchestrator: str, name: str, cluster: str) -> str:
        """A flow."""
        parts = (self.part(orchestrator), self.part(name), self.part(cluster))
        self._check("job.name", *parts)
        return f"urn:li:dataFlow:({','.join(parts)})"

    def job(self, flow: str, name: str) -> str:
        """A job of a flow."""
        part = self.part(name)
        self._check("job.name", part)
        return f"urn:li:dataJob:({flow},{part})"

    def field(self, dataset: str, name: str) -> str:
        """A column of a dataset."""
        part = self.part(name)
        if not self._encode:
            if not name:
                raise EventError("columnLineage", "an empty field name is no urn")
            self._check("columnLineage", part)
        return f"urn:li:schemaField:({dataset},{part})"

    def tag(self, name: str) -> str:
        """A tag; one that is an urn stays as it is, where names are encoded."""
        if self._encode:
            return name if name.startswith("urn:li:tag:") else f"urn:li:tag:{self.part(name)}"
        return f"urn:li:tag:{name}"

    def _check(self, path: str, *parts: str) -> None:
        if self._encode:
            return
        for part in parts:
            if not _balanced(part):
                raise EventError(
                    path, f"{part[:200]!r} has parentheses that do not match: no urn can hold it"
                )


def instance(run_id: str) -> str:
    """A run."""
    return f"urn:li:dataProcessInstance:{run_id}"


def platform(name: str) -> str:
    """A platform."""
    return f"urn:li:dataPlatform:{name}"


def platform_instance(of: str, name: str) -> str:
    """An instance of a platform."""
    return f"urn:li:dataPlatformInstance:({platform(of)},{name})"


def platform_of(dataset: str) -> str:
    """The urn of a dataset's platform.

    >>> platform_of("urn:li:dataset:(urn:li:dataPlatform:s3,b/k,PROD)")
    'urn:li:dataPlatform:s3'
    """
    return dataset.removeprefix("urn:li:dataset:(").partition(",")[0]


def key_of(dataset: str) -> dict[str, str]:
    """The parts of a dataset's urn, as its key holds them."""
    of, _, rest = dataset.removeprefix("urn:li:dataset:(").removesuffix(")").partition(",")
    name, _, fabric = rest.rpartition(",")
    return {"platform": of, "name": name, "origin": fabric}


def owner(name: str) -> str:
    """A user, or a group where the name says so.

    >>> owner("team:data"), owner("ada")
    ('urn:li:corpGroup:data', 'urn:li:corpuser:ada')
    """
    if name.startswith(("urn:li:corpuser:", "urn:li:corpGroup:")):
        return name
    kind, colon, rest = name.partition(":")
    if colon and rest and kind.lower() in ("team", "group"):
        return f"urn:li:corpGroup:{rest}"
    return f"urn:li:corpuser:{rest if colon and rest and kind.lower() == 'user' else name}"


def _balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0
