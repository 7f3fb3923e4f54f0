"""What the image and the unit name is there: files, extras, settings, commands, paths."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import docs
import pytest

from headwater import config

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "packaging" / "Dockerfile"
UNIT = ROOT / "packaging" / "headwater.service"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile as (instruction, rest), with continued lines joined."""
    text = re.sub(
        r"\\\n",
        " ",
        "\n".join(line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")),
    )
    return [
        (name, rest.strip())
        for name, _, rest in (line.partition(" ") for line in text.splitlines() if line.strip())
    ]


def settings(pairs: list[tuple[str, str]]) -> config.Settings:
    found = config.load(
        environ={name: value for name, value in pairs if name.startswith(("HEADWATER_", "XDG_"))},
        home=Path("/nonexistent"),
    )
    assert not found.strays
    assert config.check_rooms(found) == []
    return found


def test_the_image_is_made_of_what_is_here() -> None:
    copied = [rest.split() for name, rest in instructions() if name == "COPY"]
    ours = [source for parts in copied if not parts[0].startswith("--from") for source in parts[:-1]]
    assert ours
    for source in ours:
        assert (ROOT / source).exists(), source
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert set(ours) <= let_in
    for extra in re.search(r"\.whl\)\[([\w,]+)\]", DOCKERFILE.read_text())[1].split(","):  # type: ignore[index]
        assert extra in EXTRAS
    stages = [rest.partition(" AS ")[2] for name, rest in instructions() if name == "FROM"]
    assert len(stages) == 4
    assert stages[-1] == ""
    for parts in copied:
        if parts[0].startswith("--from="):
            assert parts[0].removeprefix("--from=") in stages


def test_the_image_runs_a_user_without_rights_and_asks_for_keys() -> None:
    last = instructions()[max(at for at, (name, _) in enumerate(instructions()) if name == "FROM") :]
    said = dict(last)
    assert said["USER"] == "headwater"
    order = [name for name, _ in last]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert said["ENTRYPOINT"] == '["headwater"]'
    assert said["CMD"] == '["serve"]'
    assert "headwater serve" in docs.commands()
    assert "/ready" in said["HEALTHCHECK"]
    pairs = re.findall(r"(\w+)=(\S+)", said["ENV"])
    found = settings(pairs)
    from headwater.serve import Serving

    serving = Serving(**config.options(found, "serve"))
    assert serving.needs_keys
    assert said["EXPOSE"] == str(serving.port)
    assert f":{serving.port}/ready" in said["HEALTHCHECK"]
    assert found.store.removeprefix("sqlite:///").startswith(said["VOLUME"])
    assert str(found.spool).startswith(said["VOLUME"])


def test_the_unit_names_settings_and_commands_that_exist() -> None:
    text = UNIT.read_text()
    assert re.search(r"^ExecStart=\S+/headwater serve$", text, re.MULTILINE)
    pairs = re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE)
    found = settings(pairs)
    state = re.search(r"^StateDirectory=(\w+)$", text, re.MULTILINE)
    assert state
    assert found.store.startswith(f"sqlite:////var/lib/{state[1]}/")
    from headwater.serve import Serving

    stop = int(re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)[1])  # type: ignore[index]
    assert stop > Serving().shutdown_seconds + Serving().drain_seconds  # or it is killed before it is done


def test_the_unit_and_the_image_leave_the_file_its_say(tmp_path: Path) -> None:
    """What stands in the environment goes before a file, so neither may set what an administrator writes there."""
    (tmp_path / "headwater").mkdir()
    (tmp_path / "headwater" / "headwater.toml").write_text(
        'spool = "/elsewhere"\nlog_level = "DEBUG"\n[serve]\nlog_format = "text"\n[store]\nurl = "postgresql://h@db/lineage"\nmigrate_on_open = false\n'
    )
    unit = re.findall(r"^Environment=(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE)
    image = re.findall(r"(\w+)=(\S+)", dict(instructions())["ENV"])
    for pairs in (unit, image):
        assert ("XDG_CONFIG_HOME", "/etc") in pairs
        environment = {**dict(pairs), "XDG_CONFIG_HOME": str(tmp_path)}
        found = config.load(environ=environment, home=Path("/nonexistent"), cwd=Path("/nonexistent"))
        assert (found.store, str(found.spool)) == ("postgresql://h@db/lineage", "/elsewhere")
        assert found.rooms["store"] == {"migrate_on_open": False}
        assert (found.log_level, config.options(found, "serve")["log_format"]) == ("DEBUG", "text")


def test_the_image_tells_of_requests_as_json() -> None:
    own = ROOT / "packaging" / "headwater.toml"
    assert f"{own.relative_to(ROOT)} /etc/headwater/headwater.toml" in [
        rest for name, rest in instructions() if name == "COPY"
    ]
    environment = {"HEADWATER_CONFIG": str(own)}
    found = config.load(environ=environment, home=Path("/nonexistent"), cwd=Path("/nonexistent"))
    assert config.check_rooms(found) == []
    assert (found.log_level, config.options(found, "serve")["log_format"]) == ("INFO", "json")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit_is_one_that_systemd_reads(tmp_path: Path) -> None:
    copy = tmp_path / "headwater.service"
    copy.write_text(UNIT.read_text().replace("/opt/headwater/bin/headwater", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert "headwater.service" not in done.stderr, done.stderr
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"exposure level for \S+: ([\d.]+)", rated.stdout)
    assert found, rated.stdout + rated.stderr
    assert float(found[1]) < 3
