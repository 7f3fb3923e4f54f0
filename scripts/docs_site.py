"""docs_site: docs/ and what it links to -> the site in site/, by Zensical, in strict mode.

Pages are copied into build/site first: a link that leads out of docs/ (to CONTRIBUTING.md, to a file of the source) leads to a copy
there, so the Markdown itself reads the same on a forge. The navigation is docs/index.md: its headings and the pages that each
links to; what only other pages link to stands below its folder's name.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HERE = ROOT / "scripts" / "site"
BUILD = ROOT / "build" / "site"
SITE = ROOT / "site"
NAMES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "bench/RESULTS.md": "results.md",
}
"""Pages outside of docs/ -> what they are called in the site."""
ELSEWHERE = "https://unpkg.com/iframe-worker/shim"
SHIM = "assets/javascripts/iframe-worker.js"
"""What Zensical would load from a CDN for its search in pages that nobody serves, and our copy of it."""
LINK = re.compile(r"(?P<head>\]\()(?P<target>[^)\s]+)(?=\))")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Every page of docs/."""
    return sorted(DOCS.rglob("*.md"))


def title(file: Path) -> str:
    """The page's first heading; the README is called so, its heading is that of the site."""
    if file == ROOT / "README.md":
        return "README"
    found = re.search(r"^# (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].replace("`", "") if found else file.stem


def links(text: str) -> list[str]:
    """Where the links of a page lead, those in code left out."""
    return [found["target"] for found in LINK.finditer(FENCE.sub("", text))]


def navigation() -> list[dict[str, object]]:
    """Sections by the headings of docs/index.md, each with the pages that it links to first."""
    told: list[dict[str, object]] = [{"Headwater": "index.md"}]
    seen = {DOCS / "index.md"}
    for part in re.split(r"^## ", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        inner: list[dict[str, str]] = []
        for target in links(body):
            file = (DOCS / target.partition("#")[0]).resolve()
            if file.suffix == ".md" and file not in seen and file.exists():
                seen.add(file)
                inner.append({title(file): staged_name(file)})
        if inner:
            told.append({heading.strip(): inner})
    rest: dict[str, list[dict[str, str]]] = {}
    for file in pages():
        if file not in seen:
            folder = file.parent.name if file.parent != DOCS else "More"
            rest.setdefault(folder.capitalize(), []).append({title(file): staged_name(file)})
    return [*told, *({name: inner} for name, inner in rest.items())]


def staged_name(file: Path) -> str:
    """What a file is called in the site: pages of docs/ as they are, others by NAMES, any other file under files/."""
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS).as_posix()
    inside = file.relative_to(ROOT).as_posix()
    return NAMES.get(inside, f"files/{inside}")


def staged_text(file: Path, extra: set[Path]) -> str:
    """A page with links that lead to the copies; what must be copied besides is added to `extra`."""
    here = PurePosixPath(staged_name(file)).parent

    def one(found: re.Match[str]) -> str:
        target = found["target"]
        path, mark, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return found[0]
        there = (file.parent / path).resolve()
        if not there.is_file():
            return found[0]  # strict mode tells
        if not there.is_relative_to(DOCS):
            extra.add(there)
        up = "../" * len([part for part in here.parts if part != "."])
        return f"{found['head']}{up}{staged_name(there)}{mark}{anchor}"

    parts, last, text = [], 0, file.read_text(encoding="utf-8")
    for fence in FENCE.finditer(text):  # code stays as it is
        parts += [LINK.sub(one, text[last : fence.start()]), fence[0]]
        last = fence.end()
    return "".join([*parts, LINK.sub(one, text[last:])])


def stage(folder: Path) -> None:
    """Copy what the site is made of."""
    waiting = {*pages(), *(file for file in DOCS.rglob("*") if file.is_file())}
    done: set[Path] = set()
    while waiting - done:
        for file in sorted(waiting - done):
            done.add(file)
            target = folder / staged_name(file)
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix == ".md":
                target.write_text(staged_text(file, waiting), encoding="utf-8")
            else:
                shutil.copyfile(file, target)


def configure(folder: Path) -> Path:
    """The settings of Zensical, with the navigation."""
    head, _, rest = (HERE / "zensical.toml").read_text(encoding="utf-8").partition("\n")
    file = folder / "zensical.toml"
    file.write_text(f"{head}\nnav = {_toml(navigation())}\n{rest}", encoding="utf-8")
    return file


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(inner)}' for key, inner in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)


def build(work: Path = BUILD, site: Path = SITE) -> Path:
    """Build the site; a link that leads nowhere ends it."""
    if sys.version_info < (3, 11):
        raise SystemExit(
            "the site is built by zensical, which needs Python 3.11: make docs PYTHON=python3.11"
        )
    shutil.rmtree(work, ignore_errors=True)
    stage(work / "docs")
    (work / "docs" / "assets").mkdir(exist_ok=True)
    shutil.copyfile(HERE / "site.css", work / "docs" / "assets" / "site.css")
    done = subprocess.run(
        [
            Path(sys.executable).with_name("zensical"),
            "build",
            "--strict",
            "--clean",
            "--config-file",
            configure(work),
        ],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}".replace(f"{work}/", ""))
    made = work / "site"
    shutil.copyfile(HERE / "iframe-worker.js", made / SHIM)
    for file in made.rglob("*.html"):
        up = "../" * (len(file.relative_to(made).parts) - 1)
        text = file.read_text(encoding="utf-8").replace(ELSEWHERE, f"{up}{SHIM}")
        file.write_text(text, encoding="utf-8")
    shutil.rmtree(site, ignore_errors=True)
    shutil.move(made, site)
    return site
