"""sbom: locks/all.txt, web/package-lock.json -> dist/headwater.cdx.json (CycloneDX) and docs/licences.md; or whether the latter still fits.

    python scripts/sbom.py check    offline: every locked package is listed with its version and a licence we may ship with
    python scripts/sbom.py write    needs npm; licences are read from what is installed

What is locked is what is listed, not what happens to be installed: a package for another system or Python is told too, with its
licence from ELSEWHERE. CycloneDX's own tool reads lock and environment; npm's own reads the web UI's lock.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "locks" / "all.txt"
NPM_LOCK = ROOT / "web" / "package-lock.json"
PAGE = ROOT / "docs" / "licences.md"
BOM = ROOT / "dist" / "headwater.cdx.json"

ALLOWED = {
    "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python",
    "ISC", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
"""Licences that ask for no more than a notice, and MPL-2.0, which asks for the changes to its own files."""

ALLOWED_FOR = {"psycopg": {"LGPL-3.0-only"}, "psycopg-binary": {"LGPL-3.0-only"}}
"""Others, for one package each: Postgres' driver is an extra, used as a library and never changed."""

KNOWN = {
    "aiohappyeyeballs": "PSF-2.0",
    "antlr4-python3-runtime": "BSD-3-Clause",
    "gitdb": "BSD-3-Clause",
    "pandas": "BSD-3-Clause",
    "py4j": "BSD-3-Clause",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "rich-click": "MIT",
    "s3fs": "BSD-3-Clause",
    "scipy": "BSD-3-Clause",
    "simplejson": "MIT OR AFL-2.1",
    "sniffio": "MIT OR Apache-2.0",
    "uvloop": "MIT OR Apache-2.0",
}
"""Where the metadata says less than the licence file: `BSD`, or two licences without saying whether both hold."""

ELSEWHERE = {
    "async-timeout": "Apache-2.0",
    "colorama": "BSD-3-Clause",
    "exceptiongroup": "MIT",
    "greenlet": "MIT AND PSF-2.0",
    "httpx2-jsfetch": "BSD-3-Clause",
    "pywin32": "PSF-2.0",
    "tomli": "MIT",
    "win-precise-time": "MIT",
}
"""Packages for another system or an older Python: nothing here can be asked."""

NAMES = {
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache v2": "Apache-2.0",
    "ISC License (ISCL)": "ISC",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""What people write for what SPDX calls otherwise."""

TOOL = "cyclonedx-bom==7.5.0"
VALIDATE = """
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = sys.stdin.read()
print(JsonStrictValidator(SchemaVersion.from_version(json.loads(text)["specVersion"])).validate_str(text) or "")
"""

Package = tuple[str, str]
"""A name, with `npm:` before it where it is one of npm's, and a version."""


def locked() -> list[Package]:
    """What is shipped with: every package of the lock of all extras, and the web UI's own."""
    pins = re.findall(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", LOCK.read_text(), re.MULTILINE)
    packages = json.loads(NPM_LOCK.read_text())["packages"]
    web = [
        (f"npm:{path.rpartition('node_modules/')[2]}", each["version"])
        for path, each in packages.items()
        if path and not each.get("dev")
    ]
    return sorted({*pins, *web})


@cache
def _spdx() -> Any:
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


def refused(name: str, licence: str) -> str | None:
    """Why a package may not be shipped with, or None; of an OR one side is enough, of an AND both are needed.

    >>> refused("x", "MIT OR GPL-3.0-only"), refused("x", "MIT AND GPL-3.0-only")
    (None, 'x: MIT AND GPL-3.0-only is not among the licences we ship with')
    """
    from license_expression import AND, ExpressionError, LicenseSymbol

    allowed = ALLOWED | ALLOWED_FOR.get(name, set())

    def holds(told: Any) -> bool:
        if isinstance(told, LicenseSymbol):
            return str(told) in allowed
        return (all if isinstance(told, AND) else any)(holds(each) for each in told.args)

    try:
        told = _spdx().parse(licence, validate=True, strict=True)
    except ExpressionError:
        told = None
    if told is None:
        return f"{name}: its licence is unknown ({licence or 'nothing is told'})"
    return None if holds(told) else f"{name}: {licence} is not among the licences we ship with"


def read_page(text: str) -> dict[Package, str]:
    """What docs/licences.md lists."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]*) \|$", text, re.MULTILINE)
    return {(name, version.strip()): licence.strip() for name, version, licence in rows}


def problems(listed: dict[Package, str], wanted: list[Package]) -> Iterator[str]:
    """What is wrong with the list, one line each."""
    for name, version in sorted({*wanted} - listed.keys()):
        yield f"docs/licences.md lacks {name} {version}: run make sbom"
    for name, version in sorted(listed.keys() - {*wanted}):
        yield f"docs/licences.md lists {name} {version}, which is not locked: run make sbom"
    for (name, _), licence in sorted(listed.items()):
        if (fault := refused(name.removeprefix("npm:"), licence)) is not None:
            yield fault


def check() -> list[str]:
    """What is wrong with the list as it stands."""
    return list(problems(read_page(PAGE.read_text() if PAGE.exists() else ""), locked()))


def licence_of(name: str, component: dict[str, Any] | None) -> str:
    """One SPDX expression for what a package says of itself; empty where it says nothing that can be read."""
    if name in KNOWN:
        return KNOWN[name]
    if component is None:
        return ELSEWHERE.get(name, "")
    told = component.get("licenses", ())
    for each in told:
        if "expression" in each:
            return str(each["expression"])
    ids = sorted({each["license"]["id"] for each in told if "id" in each["license"]})
    if not ids:  # only words: classifiers, mostly
        words = (each["license"].get("name", "").rpartition(" :: ")[2] for each in told)
        ids = sorted({NAMES.get(each, each) for each in words})
    return " AND ".join(ids)


def tool(uv: str, *command: str, told: str | None = None) -> str:
    """What a program of CycloneDX's package says. It has an environment of its own: what it brings would change other tests."""
    runs = [uv, "run", "--quiet", "--no-project", "--isolated", "--with", TOOL, *command]
    done = subprocess.run(runs, cwd=ROOT, input=told, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def asked(uv: str, *arguments: str) -> dict[str, Any]:
    """A bill of materials by CycloneDX's tool."""
    form = ("--output-reproducible", "--output-format", "JSON")
    found: dict[str, Any] = json.loads(tool(uv, "cyclonedx-py", *arguments, *form))
    return found


def validate(uv: str, bom: dict[str, Any]) -> str:
    """What the schema of CycloneDX finds wrong; empty where nothing is."""
    return tool(uv, "python", "-c", VALIDATE, told=json.dumps(bom)).strip()


def of_npm(version: str) -> dict[str, Any]:
    """What npm says of the packages that are built into the web UI; npm wants a version of the UI, which has ours."""
    command = ["npm", "sbom", "--sbom-format", "cyclonedx", "--omit", "dev", "--package-lock-only"]
    with TemporaryDirectory() as folder:
        for file in ("package.json", "package-lock.json"):
            told = json.loads((NPM_LOCK.parent / file).read_text())
            for each in (told, told.get("packages", {}).get("")):
                if each is not None:
                    each["version"] = version
            (Path(folder) / file).write_text(json.dumps(told))
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"npm sbom: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def folded(name: str) -> str:
    """A package's name as the lock writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def make(uv: str) -> tuple[dict[str, Any], dict[Package, str]]:
    """The bill of materials, and the licence of each package in it."""
    import headwater

    bom = asked(uv, "requirements", str(LOCK.relative_to(ROOT)), "--pyproject", "pyproject.toml")
    here = asked(uv, "environment", sys.executable)["components"]
    installed = {folded(each["name"]): each for each in here}
    licences: dict[Package, str] = {}
    for each in bom["components"]:
        name = folded(each["name"])
        licences[name, each["version"]] = told = licence_of(name, installed.get(name))
        if told:
            each["licenses"] = [{"expression": told}]
    web = of_npm(headwater.__version__)
    for each in web["components"]:
        name = f"{each['group']}/{each['name']}" if each.get("group") else each["name"]
        licences[f"npm:{name}", each["version"]] = licence_of(name, each)
    root = bom["metadata"]["component"]
    root["version"] = headwater.__version__
    bom["components"] += web["components"]
    own = web["metadata"]["component"]["bom-ref"]
    direct = [ref for each in web["dependencies"] if each["ref"] == own for ref in each.get("dependsOn", ())]
    bom["dependencies"] += [each for each in web["dependencies"] if each["ref"] != own]
    for each in bom["dependencies"]:
        if each["ref"] == root["bom-ref"]:
            each["dependsOn"] = sorted({*each.get("dependsOn", ()), *direct})
    content = json.dumps(bom, sort_keys=True)
    bom["serialNumber"] = uuid.uuid5(uuid.NAMESPACE_URL, content).urn  # the same content, the same number
    return bom, licences


def page(licences: dict[Package, str]) -> str:
    """docs/licences.md."""
    rows = "\n".join(
        f"| `{name}` | {version} | {licence} |" for (name, version), licence in sorted(licences.items())
    )
    return f"{HEAD}\n| package | version | licence |\n|---|---|---|\n{rows}\n"


HEAD = """\
# Licences

Headwater is under the Apache License 2.0. It ships no code of others but what is built into the web UI (`npm:` below); all else
is installed beside it, and only by the extras that are asked for. This is every package that any extra brings, on any
system and Python, as `locks/all.txt` pins it: written by `make sbom`, which writes the same as a CycloneDX bill of
materials into `dist/headwater.cdx.json`; a test holds it to the locks, and fails for a licence that is unknown or not
among those in `scripts/sbom.py`.

Two deserve a word. `psycopg`, the driver of Postgres, is under the LGPL: an extra, used as a library and never changed.
`certifi` and `orjson` are under the MPL, which asks for changes to their own files, and there are none.
"""


def main() -> int:
    """Run one of the two; exit 1 where something is wrong."""
    parser = argparse.ArgumentParser(description="Write or check the list of licences.")
    parser.add_argument("what", choices=("check", "write"))
    parser.add_argument("--uv", default="uv")
    given = parser.parse_args()
    if given.what == "write":
        bom, licences = make(given.uv)
        if fault := validate(given.uv, bom):
            sys.exit(f"no valid bill of materials: {fault}")
        BOM.parent.mkdir(exist_ok=True)
        BOM.write_text(json.dumps(bom, indent=2, ensure_ascii=False) + "\n")
        PAGE.write_text(page(licences))
        print(f"{BOM.relative_to(ROOT)}, {PAGE.relative_to(ROOT)}: {len(licences)} packages")
    found = check()
    print("\n".join(found) or "licences: all known, all allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
