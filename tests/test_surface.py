"""What people type and import: a change here is seen, not found out later."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from importlib.metadata import entry_points
from pathlib import Path

import docs
import pytest

import headwater
from headwater import cli

ASK = "--store --url --json"
GATE = "--store --url --markdown --json"
COMMANDS = {
    "headwater": "--version",
    "headwater serve": "--store --host --port --base-path --read-only --no-auth",
    "headwater run": "COMMAND --transport --replace-agents",
    "headwater ingest": f"FILES {ASK}",
    "headwater search": f"TEXT --type --namespace --tag --owner --limit {ASK}",
    "headwater show": f"NODE --schemas --at {ASK}",
    "headwater graph": f"NODE --direction --depth --columns --granularity --fan --at --since {ASK}",
    "headwater impact": f"NODE --column --depth --fail-over --at {GATE}",
    "headwater diff": f"BEFORE AFTER NODE --depth --fail-on {GATE}",
    "headwater runs": f"--job --state --since --until --limit {ASK}",
    "headwater runs show": f"RUN {ASK}",
    "headwater runs graph": f"RUN --direction --depth {ASK}",
    "headwater tail": f"--after --kind --state --namespace --limit {ASK}",
    "headwater doctor": "URL --store --json",
    "headwater demo": "--once --recorded --port --no-browser --store",
    "headwater spool": "",
    "headwater spool status": "--dir --json",
    "headwater spool show": "--dir --dead --limit --json",
    "headwater spool drain": "--dir --follow --linger --metrics --json",
    "headwater spool replay": "--dir --json",
    "headwater spool move": "SOURCE TARGET --json",
    "headwater spool purge": "--dir --all --yes --json",
    "headwater pipeline": "",
    "headwater pipeline run": "--source --sink --master --conf --json",
    "headwater pipeline stream": "--source --sink --checkpoint --every --master --conf --json",
    "headwater pipeline rebuild": "--store --master --conf --json",
    "headwater pipeline compact": "--sink --master --conf --json",
    "headwater pipeline export": "--sink --to --table --format --master --conf --json",
    "headwater pipeline status": "--sink --master --conf --json",
    "headwater datahub": "",
    "headwater datahub convert": "FILES --compat --set --coalesce --output/-o --dry-run --json",
    "headwater datahub emit": "FILES --to --token --compat --set --coalesce --dry-run --json",
    "headwater datahub diff": "FILES --against --compat --set --coalesce --json",
    "headwater dlt": "",
    "headwater dlt explain": "PIPELINE --pipelines-dir --naming --json",
    "headwater connect": "",
    "headwater connect watch": "--config --transport",
    "headwater connect once": "--config --transport --dry-run --json",
    "headwater connect explain": "CONNECTOR --config --cluster --json",
    "headwater airflow": "--version",
    "headwater airflow check": "--transport --json",
    "headwater store": "",
    "headwater store prune": "--older-than --kind --dry-run --store --json",
    "headwater store forget": "NODE --dry-run --by --unnamed --store --json",
    "headwater store status": "--store --json",
    "headwater store migrate": "--store --json",
    "headwater store check": "--store --json",
    "headwater store replay": "--store --json",
    "headwater store rejects": "--limit --store --json",
    "headwater store copy": "TARGET --store --json",
    "headwater store backup": "FILE --store --json",
    "headwater store export": "--format --to --store --json",
    "headwater store import": "FILES --marquez --since --store --json",
    "headwater incidents": f"--status --kind --since --days --limit {ASK}",
    "headwater incidents list": f"--status --kind --since --days --limit {ASK}",
    "headwater incidents show": f"NUMBER {ASK}",
    "headwater incidents ack": f"NUMBER --note {ASK}",
    "headwater incidents resolve": f"NUMBER --reason --note {ASK}",
    "headwater incidents mute": f"NUMBER --reason --days --note {ASK}",
    "headwater incidents reopen": f"NUMBER --note {ASK}",
    "headwater incidents note": f"NUMBER TEXT {ASK}",
    "headwater incidents watch": "PATTERN --measure --off --sensitivity --history --store --json",
    "headwater hooks": "",
    "headwater hooks list": "--store --json",
    "headwater hooks add": "NAME URL --event --dataset --severity --format --template --link --secret-env --private --store --json",
    "headwater hooks remove": "NAME --store --json",
    "headwater hooks log": "NAME --limit --store --json",
    "headwater hooks retry": "NAME --store --json",
    "headwater work": "--once --store --json",
    "headwater aliases": "",
    "headwater aliases list": "--store --json",
    "headwater aliases add": "RULE --dry-run --store --json",
    "headwater aliases remove": "RULE --store --json",
    "headwater keys": "",
    "headwater keys create": "NAME --scope --expires --rate --store --json",
    "headwater keys list": "--store --json",
    "headwater keys revoke": "NAME --store --json",
    "headwater keys rotate": "NAME --grace --store --json",
    "headwater audit": f"--since --by --limit {ASK}",
    "headwater config": "",
    "headwater config show": "--origin --json",
    "headwater config check": "FILE --json",
}


def headwater_command() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "headwater")


def test_what_the_package_offers() -> None:
    assert sorted(headwater.__all__) == ["Event", "HeadwaterError", "emit", "emit_many", "parse"]
    for name in headwater.__all__:
        assert getattr(headwater, name) is not None


def test_nothing_else_of_the_package_looks_public() -> None:
    """In a fresh interpreter: other tests import modules, which become attributes."""
    code = "import headwater, types; print(*[n for n, v in vars(headwater).items() if n[0] != '_' and not isinstance(v, types.ModuleType)])"
    seen = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    plumbing = {"annotations", "Any", "TYPE_CHECKING"}
    assert set(seen) - plumbing <= set(headwater.__all__)


def test_an_unknown_name_is_refused_as_any_module_does() -> None:
    with pytest.raises(AttributeError, match="no attribute 'emitt'"):
        headwater.emitt  # noqa: B018


def test_commands_and_their_options() -> None:
    found = {name: " ".join(docs.options(command)) for name, command in docs.commands().items()}
    assert found == COMMANDS


def test_every_command_says_what_it_does_with_an_example() -> None:
    for name, command in docs.commands().items():
        text = docs.help_of(name, command)
        assert "Commands:" in text or "Examples:" in text, name


def test_help_lists_every_command_and_cuts_none_short() -> None:
    for name, command in docs.commands().items():
        listed = docs.help_of(name, command).partition("Commands:\n")[2]
        below = {each.rpartition(" ")[2] for each in COMMANDS if each.rpartition(" ")[0] == name}
        assert set(re.findall(r"^  (\w+) ", listed, re.MULTILINE)) == below
        assert "..." not in listed, name


def test_help_lists_commands_in_their_order() -> None:
    top = docs.help_of("headwater", docs.commands()["headwater"]).partition("Commands:\n")[2]
    assert tuple(re.findall(r"^  (\w+) ", top, re.MULTILINE)) == cli.COMMANDS


def test_a_command_does_not_wait_for_the_others_to_be_imported() -> None:
    program = "import sys, headwater.cli as c; sys.argv = ['headwater', 'search', '--help']\ntry: c.main()\nexcept SystemExit: pass\n"
    program += "print(sorted(set(c.COMMANDS) & {name.rpartition('.')[2] for name in sys.modules if name.startswith('headwater.cli.')}))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "headwater search" in said
    assert said.splitlines()[-1] == "['search']"


def test_the_version_is_one_of_semantic_versioning() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc|\.dev)\d+)?", headwater.__version__)


def test_the_console_script_is_installed() -> None:
    (script,) = (each for each in entry_points(group="console_scripts") if each.name == "headwater")
    assert script.value == "headwater.cli:main"
    done = subprocess.run([headwater_command(), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"headwater {headwater.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--help", 0),
        ("nonsense", 2),
        ("graph", 2),
        ("graph nothing --store memory:", 3),
        ("ingest missing.json", 2),
    ],
)
def test_exit_codes(arguments: str, code: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [headwater_command(), *arguments.split()], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert code == 0 or done.stderr
