"""Resolve the jars of the live tests with Maven, once, into a cache: tests/jars/pom.xml -> <cache>/<profile>/*.jar.

python scripts/live_jars.py                      every profile
python scripts/live_jars.py spark-4.1 broker     some
python scripts/live_jars.py --where              where they are

The cache is $HEADWATER_LIVE_JARS, else $XDG_CACHE_HOME/headwater/live-jars, else ~/.cache/headwater/live-jars. A profile
that is there in the form the pom gives it now is not asked for again: registries answer many quick requests with 429.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

POM = Path(__file__).resolve().parents[1] / "tests" / "jars" / "pom.xml"
_TRIES = 4
ARCHIVES = {"registry": "io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all"}
"""Programs that come as an archive instead of a tree of jars. Of this one, newer releases need a newer Java."""


def _cache() -> Path:
    named = os.environ.get("HEADWATER_LIVE_JARS")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater" / "live-jars"


CACHE = _cache()
"""The directory of all profiles; found once, because tests get a home of their own."""


def profiles() -> dict[str, str]:
    """Name -> digest of what the pom says of it."""
    found = re.findall(r"<profile>(.*?)</profile>", POM.read_text(encoding="utf-8"), re.S)
    named = {re.search(r"<id>(.*?)</id>", each)[1]: each for each in found}  # type: ignore[index]
    named |= ARCHIVES
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in named.items()}


def have(profile: str) -> list[Path]:
    """The jars of a profile; none where it was never resolved, or the pom has changed since."""
    folder = CACHE / profile
    mark = folder / ".made"
    made = mark.is_file() and mark.read_text() == profiles().get(profile)
    return sorted(folder.glob("*.jar")) if made else []


def resolve(profile: str) -> None:
    """Ask Maven for a profile."""
    folder = CACHE / profile
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = ["mvn", "-B", "-q", "-f", str(POM), "-P", profile, "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    if profile in ARCHIVES:  # plugins since 3.x ask for a parent that no repository has
        plugin = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get"
        command = ["mvn", "-B", "-q", plugin, f"-Dartifact={ARCHIVES[profile]}", "-Dtransitive=false"]
        command += [f"-Ddest={folder}/archive.tar.gz"]
    for attempt in range(_TRIES):
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode == 0:
            if profile in ARCHIVES:
                unpack(folder / "archive.tar.gz")
            (folder / ".made").write_text(profiles()[profile])
            return
        if "429" not in ran.stdout + ran.stderr:
            break
        time.sleep(30 * (attempt + 1))
    raise SystemExit(f"mvn could not resolve {profile}:\n{(ran.stdout + ran.stderr)[-2000:]}")


def unpack(archive: Path) -> None:
    """The files of an archive, beside it."""
    with tarfile.open(archive) as packed:
        packed.extractall(archive.parent, filter="data")
    archive.unlink()


def main() -> int:
    """Resolve what is missing."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("profiles", nargs="*", help="names of profiles; all unless given")
    options.add_argument("--where", action="store_true", help="print the cache's directory and do nothing")
    chosen = options.parse_args()
    if chosen.where:
        print(CACHE)
        return 0
    known = profiles()
    unknown = [each for each in chosen.profiles if each not in known]
    if unknown:
        raise SystemExit(f"no profile {', '.join(unknown)} in {POM}: there are {', '.join(known)}")
    for profile in chosen.profiles or known:
        if have(profile):
            continue
        if shutil.which("mvn") is None:
            raise SystemExit("Maven is needed: apt install maven")
        print(f"resolving {profile}", flush=True)
        resolve(profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
