"""Every package we ship with has a licence that is known and allowed; the list fits the locks; the bill is CycloneDX."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from importlib import metadata

import pytest
import sbom

import headwater
from test_dist import UNREACHED, program

HOME = os.environ["HOME"]

Need = Callable[[str, str], None]


def test_the_list_fits_the_locks_and_every_licence_is_allowed() -> None:
    assert sbom.check() == []


@pytest.mark.parametrize(
    ("licence", "said"),
    [
        ("GPL-3.0-only", "not among"),
        ("AGPL-3.0-or-later", "not among"),
        ("MIT AND GPL-2.0-only", "not among"),
        ("LGPL-3.0-only", "not among"),  # allowed for psycopg, and for nobody else
        ("", "unknown"),
        ("Proprietary", "unknown"),
        ("BSD License", "unknown"),
        ("MIT AND", "unknown"),
    ],
)
def test_a_licence_that_is_not_allowed_is_found(licence: str, said: str) -> None:
    wanted = sbom.locked()
    listed = {**sbom.read_page(sbom.PAGE.read_text()), ("planted", "1.0"): licence}
    (found,) = sbom.problems(listed, [*wanted, ("planted", "1.0")])
    assert found.startswith("planted: ")
    assert said in found


@pytest.mark.parametrize("licence", ["MIT", "MIT OR GPL-3.0-only", "(MIT OR GPL-2.0-only) AND Apache-2.0"])
def test_one_side_of_a_choice_is_enough(licence: str) -> None:
    assert sbom.refused("planted", licence) is None


def test_a_stale_list_is_found() -> None:
    listed = sbom.read_page(sbom.PAGE.read_text())
    first, *rest = sbom.locked()
    assert [f"docs/licences.md lists {first[0]} {first[1]}, which is not locked: run make sbom"] == list(
        sbom.problems(listed, rest)
    )
    newer = (first[0], "999")
    assert len(list(sbom.problems(listed, [newer, *rest]))) == 2


def test_packages_are_listed_as_they_speak_of_themselves() -> None:
    """What a package here declares as its SPDX expression is what the list says: read without the tool that made it."""
    compared = 0
    for (name, version), licence in sbom.read_page(sbom.PAGE.read_text()).items():
        if name in sbom.KNOWN:
            continue
        try:
            told = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        if told["Version"] == version and told["License-Expression"]:
            assert licence == told["License-Expression"], name
            compared += 1
    assert compared > 30


def test_no_table_names_what_is_not_locked() -> None:
    names = {name for name, _ in sbom.locked()}
    assert {*sbom.KNOWN, *sbom.ELSEWHERE, *sbom.ALLOWED_FOR} <= names


def test_the_bill_is_cyclonedx_and_holds_every_package(need: Need, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("npm") is None:
        need("npm", "apt install npm")
    uv = program(need)
    monkeypatch.setenv("HOME", HOME)  # uv's cache, and its settings where it has any
    try:
        bom, licences = sbom.make(uv)
    except SystemExit as fault:
        if UNREACHED.search(str(fault)):
            need("an index of packages that answers", "see to the network, or to uv's settings")
        raise
    assert sbom.validate(uv, bom) == ""
    assert sbom.validate(uv, {**bom, "components": [{}]}) != "", "the judge can say no"
    assert sorted(licences) == sbom.locked()
    assert licences == sbom.read_page(sbom.PAGE.read_text()), "run make sbom"
    refs = [each["bom-ref"] for each in bom["components"]]
    assert len(refs) == len(set(refs)) == len(licences)
    known = {*refs, bom["metadata"]["component"]["bom-ref"]}
    for each in bom["dependencies"]:
        assert {each["ref"], *each.get("dependsOn", ())} <= known
    assert bom["metadata"]["component"]["version"] == headwater.__version__
    python = [each for each in bom["components"] if each["purl"].startswith("pkg:pypi/")]
    assert all("sha" in json.dumps(each).lower() for each in python), "with the hashes of the lock"
    text = json.dumps(bom)
    assert str(sbom.ROOT) not in text, "no path of a machine is told"
    assert HOME not in text
