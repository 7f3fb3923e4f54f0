from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import config
from headwater.config import openlineage
from headwater.errors import ConfigError

YML = "transport:\n  type: http\n  url: http://yml\n"


@dataclass
class World:
    """A working directory, a home and an environment of their own."""

    cwd: Path
    home: Path
    environ: dict[str, str]

    def load(self, arguments: Mapping[str, Any] | None = None, **more: Any) -> config.Settings:
        return config.load(arguments, environ=self.environ, cwd=self.cwd, home=self.home, **more)

    def toml(self, text: str) -> None:
        (self.cwd / "headwater.toml").write_text(text)

    def yml(self, text: str) -> None:
        (self.cwd / "openlineage.yml").write_text(text)


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "home").mkdir()
    return World(tmp_path / "cwd", tmp_path / "home", {})


# --- what holds with nothing configured


def test_defaults(world: World) -> None:
    made = world.load()
    state = world.home / ".local" / "state" / "headwater"
    assert (made.namespace, made.transport, made.url, made.api_key, made.disabled) == (
        "default",
        None,
        None,
        None,
        False,
    )
    assert made.store == f"sqlite:///{state}/headwater.db"
    assert made.spool == state / "spool"
    assert set(made.origins.values()) == {"default"}
    assert made.rooms == {}


def test_state_follows_xdg(world: World) -> None:
    world.environ["XDG_STATE_HOME"] = "/state"
    assert world.load().spool == Path("/state/headwater/spool")


def test_settings_and_their_table_agree() -> None:
    assert [s.name for s in config.SETTINGS] == [f.name for f in fields(config.Settings)][
        : len(config.SETTINGS)
    ]
    assert all(s.env[0] == f"HEADWATER_{s.name.upper()}" for s in config.SETTINGS)


def test_settings_are_frozen_and_travel_between_processes(world: World) -> None:
    made = world.load({"serve": {"port": 5001}})
    with pytest.raises(FrozenInstanceError):
        made.namespace = "other"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(made)) == made


# --- precedence: every pair of sources

LAYERS: list[tuple[str, str, Callable[[World], Mapping[str, Any]]]] = []


def _source(value: str, origin: str) -> Callable[[Callable[[World], Mapping[str, Any] | None]], None]:
    def keep(write: Callable[[World], Mapping[str, Any] | None]) -> None:
        LAYERS.append((value, origin, lambda world: write(world) or {}))

    return keep


@_source("http://argument", "argument")
def _argument(world: World) -> Mapping[str, Any]:
    return {"arguments": {"transport": "http://argument"}}


@_source("http://spark", "spark.headwater.transport")
def _between(world: World) -> Mapping[str, Any]:
    return {"between": [config.layer({"transport": "http://spark"}, "spark.headwater.transport")]}


@_source("http://headwater", "HEADWATER_TRANSPORT")
def _headwater(world: World) -> None:
    world.environ["HEADWATER_TRANSPORT"] = "http://headwater"


@_source("http://double", "OPENLINEAGE__…")
def _double(world: World) -> None:
    world.environ["OPENLINEAGE__TRANSPORT"] = '{"type": "http", "url": "http://double"}'


@_source("http://openlineage", "OPENLINEAGE_URL")
def _openlineage(world: World) -> None:
    world.environ["OPENLINEAGE_URL"] = "http://openlineage"


@_source("http://toml", "headwater.toml")
def _toml(world: World) -> None:
    world.toml('transport = "http://toml"')


@_source("http://yml", "openlineage.yml")
def _yml(world: World) -> None:
    world.yml(YML)


@pytest.mark.parametrize(("high", "low"), list(itertools.combinations(LAYERS, 2)), ids=lambda layer: layer[1])
def test_the_higher_source_wins(world: World, high: Any, low: Any) -> None:
    lower = world.load(**low[2](world))
    assert (lower.transport, lower.origins["transport"]) == low[:2]
    made = world.load(**{**low[2](world), **high[2](world)})
    assert (made.transport, made.origins["transport"]) == high[:2]


FLAT = {"arguments": 0, "HEADWATER_NAMESPACE": 1, "OPENLINEAGE_NAMESPACE": 2, "headwater.toml": 3}


@given(present=st.sets(st.sampled_from(sorted(FLAT)), min_size=1))
def test_any_set_of_sources_gives_the_highest(
    tmp_path_factory: pytest.TempPathFactory, present: set[str]
) -> None:
    cwd = tmp_path_factory.mktemp("cwd")
    if "headwater.toml" in present:
        (cwd / "headwater.toml").write_text('namespace = "headwater.toml"')
    environ = {name: name for name in present if name.isupper()}
    arguments = {"namespace": "arguments"} if "arguments" in present else None
    made = config.load(arguments, environ=environ, cwd=cwd, home=cwd)
    assert made.namespace == min(present, key=lambda name: FLAT[name])


def test_headwater_toml_is_looked_for_in_three_places(world: World) -> None:
    user = world.home / ".config" / "headwater" / "headwater.toml"
    user.parent.mkdir(parents=True)
    user.write_text('namespace = "user"\nurl = "http://user"')
    assert (world.load().namespace, world.load().origins["namespace"]) == ("user", str(user))
    world.toml('namespace = "cwd"')
    assert (world.load().namespace, world.load().url) == ("cwd", None)  # one file, not several merged
    named = world.home / "mine.toml"
    named.write_text('namespace = "named"')
    world.environ["HEADWATER_CONFIG"] = str(named)
    assert (world.load().namespace, world.load().origins["namespace"]) == ("named", str(named))


def test_openlineage_yml_is_looked_for_in_three_places(world: World) -> None:
    user = world.home / ".openlineage" / "openlineage.yml"
    user.parent.mkdir()
    user.write_text(YML.replace("yml", "user"))
    assert world.load().transport == "http://user"
    world.yml(YML)
    assert world.load().transport == "http://yml"
    named = world.home / "mine.yml"
    named.write_text(YML.replace("yml", "named"))
    world.environ["OPENLINEAGE_CONFIG"] = str(named)
    assert world.load().transport == "http://named"


@pytest.mark.parametrize("name", ["HEADWATER_CONFIG", "OPENLINEAGE_CONFIG"])
def test_a_file_that_is_not_there_is_told(world: World, name: str) -> None:
    world.environ[name] = '{"transport": {"api_key": "hunter2"}}'
    with pytest.raises(ConfigError, match=f"{name}: names no file"):
        world.load()


def test_options_belong_to_the_url_they_are_written_with(world: World) -> None:
    world.toml('[transport]\nurl = "http://toml"\ntimeout = 3')
    assert world.load().rooms["transport"] == {"timeout": 3}
    world.environ["HEADWATER_TRANSPORT__RETRIES"] = "1"
    assert world.load().rooms["transport"] == {"timeout": 3, "retries": "1"}
    world.environ["HEADWATER_TRANSPORT"] = "file:///e.jsonl"
    assert world.load().rooms["transport"] == {"retries": "1"}


def test_rooms_merge_option_by_option(world: World) -> None:
    world.toml('[serve]\nport = 1\nhost = "a"\n')
    world.environ["HEADWATER_SERVE__PORT"] = "2"
    made = world.load({"serve": {"base_path": "/x", "host": None}})
    assert made.rooms["serve"] == {"base_path": "/x", "port": "2", "host": "a"}
    assert made.origins["serve.port"] == "HEADWATER_SERVE__PORT"
    assert made.origins["serve.base_path"] == "argument"
    assert made.origins["serve.host"] == "headwater.toml"


def test_a_type_without_url_names_the_transport(world: World) -> None:
    world.toml('[transport]\ntype = "console"\npretty = true')
    assert (world.load().transport, world.load().rooms["transport"]) == ("console:", {"pretty": True})


def test_a_type_of_another_name_than_the_url_is_kept(world: World) -> None:
    world.toml('[transport]\ntype = "pigeon"\nurl = "http://loft"')
    assert (world.load().transport, world.load().rooms["transport"]) == ("http://loft", {"type": "pigeon"})
    world.toml('[transport]\ntype = "http"\nurl = "http://loft"')
    assert world.load().rooms == {}


# --- the environment


def test_every_setting_is_set_by_its_variables(world: World) -> None:
    for setting in config.SETTINGS:
        for name in setting.env:
            value = {bool: "yes"}.get(setting.kind, "ERROR" if setting.choices else "http://x")
            made = config.load(environ={name: value}, cwd=world.cwd, home=world.home)
            assert made.origins[setting.name] == name
            assert getattr(made, setting.name) != setting.default


def test_an_empty_variable_is_not_set(world: World) -> None:
    world.environ.update(
        dict.fromkeys(
            ["HEADWATER_DISABLED", "OPENLINEAGE_URL", "HEADWATER_CONFIG", "HEADWATER_SERVE__PORT"], ""
        )
    )
    made = world.load()
    assert (made.disabled, made.transport, made.rooms) == (False, None, {})


@pytest.mark.parametrize(
    ("word", "value"),
    [(w, True) for w in ("1", "true", "YES", "On")] + [(w, False) for w in ("0", "False", "no", "off")],
)
def test_words_for_yes_and_no(world: World, word: str, value: bool) -> None:
    world.environ["OPENLINEAGE_DISABLED"] = word
    assert world.load().disabled is value


def test_another_word_is_refused_with_its_origin(world: World) -> None:
    world.environ["HEADWATER_DISABLED"] = "maybe"
    with pytest.raises(ConfigError, match="HEADWATER_DISABLED: disabled: 'maybe' is neither true nor false"):
        world.load()


def test_a_table_in_a_variable_is_json(world: World) -> None:
    world.environ.update(
        HEADWATER_TRANSPORT__HEADERS='{"X-Team": "shop"}', HEADWATER_SERVE__TITLE="[not json"
    )
    assert world.load().rooms == {
        "transport": {"headers": {"X-Team": "shop"}},
        "serve": {"title": "[not json"},
    }


def test_an_unknown_room_in_a_variable_is_refused(world: World) -> None:
    world.environ["HEADWATER_SEVRE__PORT"] = "1"
    with pytest.raises(
        ConfigError, match="HEADWATER_SEVRE__PORT: unknown room 'sevre': did you mean 'serve'"
    ):
        world.load()


def test_other_variables_of_our_prefix_are_told_not_refused(world: World) -> None:
    # an orchestrator sets HEADWATER_PORT for a service of that name
    world.environ.update(HEADWATER_PORT="tcp://10.0.0.1:5000", HEADWATER_STOER="sqlite:///x")
    assert world.load().strays == ("HEADWATER_PORT", "HEADWATER_STOER")


def test_the_process_environment_is_read_and_never_written(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", "http://here")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TIMEOUT", "3")
    before = dict(os.environ)
    made = config.load(cwd=world.cwd, home=world.home)
    assert (made.transport, made.rooms["transport"]) == ("http://here", {"timeout": "3"})
    assert dict(os.environ) == before


def test_nothing_heavy_is_imported(world: World) -> None:
    code = "import sys; from headwater import config; config.load(); print([m for m in ('yaml','httpx','litestar','sqlalchemy') if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=world.cwd,
        env={**os.environ, "HOME": str(world.home)},
    )
    assert out.stdout == "[]\n"


# --- refusals


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sevre]\nport = 1", "headwater.toml: sevre.port: unknown setting 'sevre': did you mean 'serve'"),
        ('namspace = "x"', "headwater.toml: namspace: unknown setting 'namspace': did you mean 'namespace'"),
        ("namespace = 3", "headwater.toml: namespace: Expected `str`, got `int`"),
        ('disabled = "true"', "headwater.toml: disabled: Expected `bool`, got `str`"),
        ("spool = 3", "headwater.toml: spool: "),
        ("serve = 5001", "headwater.toml: serve: is a table of options, not 5001"),
        ('log_level = "LOUD"', "headwater.toml: log_level: unknown value 'LOUD'"),
        ("namespace = ", "headwater.toml: cannot be read"),
        ("[store]\nurl = 3", "headwater.toml: store: Expected `str`, got `int`"),
    ],
)
def test_a_mistake_is_refused_with_file_and_key(world: World, text: str, message: str) -> None:
    world.toml(text)
    with pytest.raises(ConfigError) as caught:
        world.load()
    assert str(caught.value).startswith(message)


def test_all_mistakes_are_told_at_once(world: World) -> None:
    world.toml('namspace = "x"\nlog_level = "LOUD"')
    with pytest.raises(ConfigError) as caught:
        world.load({"disabled": "maybe"})
    assert [line.split(":")[0] for line in str(caught.value).splitlines()] == [
        "headwater.toml",
        "argument",
        "headwater.toml",
    ]


def test_a_layer_made_alone_refuses_too() -> None:
    with pytest.raises(ConfigError, match=r"spark.headwater.x: namspace: unknown setting"):
        config.layer({"namspace": "x"}, "spark.headwater.x")


def test_the_callers_mapping_stays_as_it_was(world: World) -> None:
    arguments = {"transport": {"url": "http://a", "timeout": 3}, "serve": {"port": None}}
    before = json.dumps(arguments)
    world.load(arguments)
    assert json.dumps(arguments) == before


# --- rooms


def create_app(
    store: object,
    *,
    read_only: bool = False,
    depth: int = 5,
    names: tuple[str, ...] = (),
    home: Path = Path(),
    host: str = "",
    port: int = 0,
) -> None: ...


class Limits(msgspec.Struct):
    max_bytes: int = 1


class Plain:
    def __init__(self, url: str, *, timeout: float = 1.0) -> None: ...


def test_a_room_is_checked_by_the_signature_it_feeds(world: World) -> None:
    world.environ.update(
        HEADWATER_SERVE__READ_ONLY="yes", HEADWATER_SERVE__DEPTH="7", HEADWATER_SERVE__PORT="5001"
    )
    world.toml('[serve]\nnames = ["a"]\nhome = "/x"')
    checked = config.check_room(world.load(), "serve", create_app)
    assert checked == {"read_only": True, "depth": 7, "port": 5001, "names": ("a",), "home": Path("/x")}


def test_structs_and_classes_are_checked_alike(world: World) -> None:
    world.environ.update(HEADWATER_INGEST__MAX_BYTES="10", HEADWATER_STORE__TIMEOUT="3")
    assert config.check_room(world.load(), "ingest", Limits) == {"max_bytes": 10}
    assert config.check_room(world.load(), "store", Plain) == {"timeout": 3.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "prot = 1",
            "headwater.toml: serve.prot: unknown option 'prot': did you mean 'port'? known: depth, home, host",
        ),
        ('port = "5001"', "headwater.toml: serve.port: Expected `int`, got `str`"),
        ("store = 1", "headwater.toml: serve.store: unknown option 'store'"),
    ],
)
def test_a_wrong_option_of_a_room_is_refused(world: World, text: str, message: str) -> None:
    world.toml("[serve]\n" + text)
    with pytest.raises(ConfigError) as caught:
        config.check_room(world.load(), "serve", create_app)
    assert str(caught.value).startswith(message)


def test_rooms_of_a_file_are_imported_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "headwater.toml"
    path.write_text("[ingest]\nmax_byts = 1\nmax_depth = 5\n[serv]\nx = 1")
    problems = config.check_file(path)
    assert len(problems) == 2
    assert problems[0].startswith("headwater.toml: serv.x: unknown setting 'serv': did you mean 'serve'")
    assert problems[1].startswith(
        "headwater.toml: ingest.max_byts: unknown option 'max_byts': did you mean 'max_bytes'"
    )


def test_a_room_whose_library_is_missing_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(config.ROOMS, "serve", config.Room("", "headwater_nowhere:create_app"))  # type: ignore[arg-type]
    assert config.check_rooms(world.load({"serve": {"x": 1}})) == [
        "serve: cannot be checked here: No module named 'headwater_nowhere'"
    ]


def test_every_room_that_names_a_callable_names_one_that_exists() -> None:
    for name, room in config.ROOMS.items():
        module = room.target and Path(config.__file__).parents[1] / room.target.split(":")[0].removeprefix(
            "headwater."
        ).replace(".", "/")
        if module and (module.is_dir() or module.with_suffix(".py").exists()):
            problems = config.check_rooms(
                config.load(
                    {name: {"no_such_option": 1}}, environ={}, cwd=Path("/nowhere"), home=Path("/nowhere")
                )
            )
            assert "unknown option 'no_such_option'" in problems[0]


def test_options_that_depend_on_a_url_are_checked_by_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "headwater.toml"
    path.write_text('[transport]\nurl = "http://h"\ntimeoutt = 3')
    (problem,) = config.check_file(path)
    assert problem.startswith(
        "headwater.toml: transport.timeoutt: unknown option 'timeoutt': did you mean 'timeout'"
    )
    path.write_text('[transport]\nurl = "file:///e"\ntimeout = 3')
    (problem,) = config.check_file(path)
    assert problem.startswith("headwater.toml: transport.timeout: unknown option 'timeout': known: fsync")
    for url in (
        'url = "pigeon://loft"',
        'url = "http://loft"\ntype = "pigeon"',
    ):  # of a package that is not here
        path.write_text(f"[transport]\n{url}\nspeed = 3")
        (problem,) = config.check_file(path)
        assert problem.startswith("headwater.toml: transport: unknown kind of url 'pigeon': known: abfss")


@pytest.mark.parametrize(
    "text",
    [
        'transport = "lineage:5000"',
        'transport = "http://h:port"',
        'transport = "http://me:pw[x@h"',
        'transport = "http://[::1:5000"',
        'transport = "datahub+rest://gms:99999"',
        'store = "postgresql://[h/d"',
        'store = "mysql://h/db"',
        '[serve]\nauth = "maybe"',
        '[serve]\nbase_path = "lineage"',
        "[serve]\nport = 700000",
        '[retention]\nruns = "soon"',
        '[retention]\nevery = "often"',
        '[redact]\nvalues = ["("]',
        '[redact]\npaths = ["$$$"]',
        '[deliver.datahub]\ntoo = "nowhere"',
        '[deliver.datahub]\nto = "nowhere"',
        '[deliver.datahub]\nto = "datahub+rest://gms:port"',
        '[oidc]\nissuer = "not a url"\naudience = "h"',
        "[ingest]\nmax_bytes = -5",
    ],
)
def test_what_a_server_would_refuse_is_told_beforehand(tmp_path: Path, text: str) -> None:
    path = tmp_path / "headwater.toml"
    path.write_text(text)
    assert len(config.check_file(path)) == 1


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(("http", "kafka", "composite", "file", "oauth2")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
USUAL: tuple[dict[str, Any], ...] = (
    {"type": "http", "url": "http://h", "headers": {}, "custom_headers": {}, "timeoutInMillis": 5, "timeout": 5, "auth": {},
     "retry": {}, "sslContext": {}, "urlParams": {}, "endpoint": "e", "verify": True, "compression": "gzip"},
    {"type": "kafka", "config": {"bootstrap.servers": "b:1"}, "topic": "t", "flush": True},
    {"type": "file", "log_file_path": "/x", "append": True, "storage_options": {}},
    {"type": "composite", "transports": [{"type": "console"}], "continue_on_failure": True, "continue_on_success": True},
    {"type": "correlator", "url": "http://h", "api_key": "k", "timeout": 5, "verify_ssl": True},
    {"type": openlineage.OUR_TYPES[0], "url": "http://h", "auth": {}, "spool": {}, "verify_ssl": True, "api_key": "k"},
)  # fmt: skip
transports = st.sampled_from(USUAL).flatmap(
    lambda usual: st.builds(
        lambda key, value: {**usual, key: value}, st.sampled_from(sorted(usual)), anything
    )
)


@given(transports)
def test_whatever_stands_in_a_client_s_file_is_understood_or_refused(table: dict[str, Any]) -> None:
    with contextlib.suppress(ConfigError):
        openlineage.translate({"transport": table}, Path("/nowhere"), {})


@pytest.mark.parametrize("name", ["ol.json", "client-config", "ol.yml"])
def test_a_client_s_file_is_yaml_whatever_it_is_called(world: World, name: str) -> None:
    (world.cwd / name).write_text(
        '{"transport": {"type": "http", "url": "http://h", "timeoutInMillis": "5000", "custom_headers": null}}'
    )
    world.environ["OPENLINEAGE_CONFIG"] = name
    made = world.load()
    assert (made.transport, made.rooms["transport"]) == ("http://h", {"timeout": 5.0})


def test_options_of_a_room_are_ready_for_use(world: World) -> None:
    world.environ.update(HEADWATER_INGEST__MAX_BYTES="10")
    assert config.options(world.load(), "ingest") == {"max_bytes": 10}
    assert config.options(world.load(), "serve") == {}


def test_what_only_a_type_checker_knows_is_left_to_the_room(world: World) -> None:
    def create(*, hook: list[str] | tuple[str, ...] = (), odd: Nowhere = 1, port: int = 1) -> None: ...  # type: ignore[name-defined, assignment]  # noqa: F821

    world.environ.update(HEADWATER_SERVE__HOOK="x", HEADWATER_SERVE__ODD="y", HEADWATER_SERVE__PORT="2")
    assert config.check_room(world.load(), "serve", create) == {"hook": "x", "odd": "y", "port": 2}


def test_a_broken_file_is_told_without_its_content(world: World) -> None:
    world.yml('transport:\n  auth: {api_key: "hunter2}\n')
    with pytest.raises(ConfigError, match=r"openlineage.yml: cannot be read: line \d+: ") as caught:
        world.load()
    assert "hunter2" not in str(caught.value)


def test_a_named_file_is_relative_to_the_working_directory(world: World) -> None:
    (world.cwd / "mine.toml").write_text('namespace = "mine"')
    world.environ["HEADWATER_CONFIG"] = "mine.toml"
    assert (world.load().namespace, world.load().origins["namespace"]) == ("mine", "mine.toml")


def test_a_user_without_home_has_a_temporary_one(monkeypatch: pytest.MonkeyPatch, world: World) -> None:
    def homeless() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", homeless)
    assert config.load(environ={}, cwd=world.cwd).spool.is_relative_to(tempfile.gettempdir())


def test_a_file_that_is_right_has_no_problems(tmp_path: Path) -> None:
    (tmp_path / "headwater.toml").write_text('namespace = "x"\n[ingest]\nmax_bytes = 1')
    (tmp_path / "openlineage.yml").write_text(YML)
    assert (
        config.check_file(tmp_path / "headwater.toml")
        == config.check_file(tmp_path / "openlineage.yml")
        == []
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("openlineage.yml", "a: [1"),
        ("openlineage.yml", "- a"),
        ("headwater.toml", "a ="),
        ("headwater.toml", None),
    ],
)
def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path, name: str, text: str | None) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    (problem,) = config.check_file(tmp_path / name)
    assert problem.startswith(f"{name}: cannot be read: ")


# --- openlineage.yml in our words


@pytest.mark.parametrize(
    ("yml", "url", "options"),
    [
        ({"type": "console"}, "console:", {}),
        ({"type": "http", "url": "http://h", "endpoint": "e", "timeout": 3, "verify": False, "compression": "gzip"}, "http://h",
         {"endpoint": "e", "timeout": 3, "verify": False, "compression": "gzip"}),
        ({"type": "async_http", "url": "http://h", "auth": {"type": "api_key", "apiKey": "k"}}, "http://h", {"api_key": "k"}),
        ({"type": "http", "url": "http://h", "auth": {"type": "api_key", "api_key": "k"}, "headers": {"A": "1"}, "custom_headers": {"B": "2"}},
         "http://h", {"api_key": "k", "headers": {"A": "1", "B": "2"}}),
        ({"type": "http", "url": "http://h", "retry": {"total": 7, "backoff_factor": 1}, "timeoutInMillis": 1500}, "http://h",
         {"retries": 7, "timeout": 1.5}),
        ({"type": "file", "log_file_path": "/var/log/a b.jsonl", "append": True}, "file:///var/log/a%20b.jsonl", {}),
        ({"type": "file", "log_file_path": "file:///x.jsonl"}, "file:///x.jsonl", {}),
        ({"type": "kafka", "topic": "t", "config": {"bootstrap.servers": "a:9092,b:9092", "acks": "all"}}, "kafka://a:9092,b:9092/t",
         {"config": {"acks": "all"}}),
        ({"type": "composite", "transports": [{"type": "console"}]}, "console:", {}),
        ({"type": "composite", "transports": {"one": {"type": "http", "url": "http://h"}}}, "http://h", {}),
    ],
)  # fmt: skip
def test_what_can_be_taken_over_is(
    world: World, yml: dict[str, Any], url: str, options: dict[str, Any]
) -> None:
    world.yml(json.dumps({"transport": yml}))  # JSON is YAML
    made = world.load()
    assert (made.transport, dict(made.rooms.get("transport", {}))) == (url, options)
    assert config.check_file(world.cwd / "openlineage.yml") == []


def test_a_relative_log_file_starts_at_the_working_directory(world: World) -> None:
    world.yml("transport: {type: file, log_file_path: logs/e.jsonl}")
    assert world.load().transport == f"file://{world.cwd}/logs/e.jsonl"


@pytest.mark.parametrize("spool", ["/var/spool/x", {"dir": "/var/spool/x", "drain": "inline"}])
def test_the_spool_of_a_transport_of_ours_is_the_setting(world: World, spool: Any) -> None:
    table = {"type": "headwater.airflow.Transport", "url": "http://h", "spool": spool}
    world.yml(json.dumps({"transport": table}))
    made = world.load()
    assert (made.transport, made.spool) == ("http://h", Path("/var/spool/x"))
    assert dict(made.rooms.get("spool", {})) == ({} if isinstance(spool, str) else {"drain": "inline"})
    assert config.check_file(world.cwd / "openlineage.yml") == []


def test_noop_is_disabled(world: World) -> None:
    world.yml("transport: {type: noop}")
    assert (world.load().disabled, world.load().origins["disabled"]) == (True, "openlineage.yml")


def test_an_empty_file_says_nothing(world: World) -> None:
    world.yml("")
    assert world.load().transport is None


OAUTH2 = {"type": "oauth2", "clientId": "i", "clientSecret": "s", "tokenEndpoint": "http://t"}


@pytest.mark.parametrize(
    ("table", "url", "options"),
    [
        (
            {"type": "composite", "transports": [{"type": "console"}, {"type": "http", "url": "http://h"}]},
            "fanout:",
            {"to": [{"url": "console:"}, {"url": "http://h"}], "policy": "best_effort"},
        ),
        (
            {
                "type": "composite",
                "continue_on_failure": False,
                "transports": {
                    "a": {"type": "kafka", "topic": "t", "config": {"bootstrap.servers": "b:1", "acks": 1}},
                    "b": {"type": "http", "url": "http://h", "name": "b", "priority": 3},
                },
            },
            "fanout:",
            {"to": [{"url": "kafka://b:1/t", "config": {"acks": 1}}, {"url": "http://h"}], "policy": "required"},
        ),
        ({"type": "composite", "transports": [{"type": "console"}, {"type": "noop"}]}, "console:", {}),
        (
            {"type": "http", "url": "http://h", "auth": OAUTH2},
            "http://h",
            {
                "auth": {
                    "type": "oauth",
                    "token_url": "http://t",
                    "client_id": "i",
                    "client_secret": "s",
                    "method": "basic",
                }
            },
        ),
        (
            {
                "type": "http",
                "url": "http://h",
                "sslContext": {"caCertPath": "/ca", "clientCertPath": "/c", "clientKeyPath": "/k"},
                "retry": {"total": 2, "backoff_factor": 1},
                "compression": "gzip",
            },
            "http://h",
            {"verify": "/ca", "client_cert": "/c", "client_key": "/k", "retries": 2, "compression": "gzip"},
        ),
        ({"type": "file", "log_file_path": "s3a://b/e", "storage_options": {"key": "k"}}, "s3://b/e", {"storage_options": {"key": "k"}}),
        (
            {"type": "correlator", "url": "http://h", "api_key": "${KEY}", "timeout": 30, "verify_ssl": False},
            "http://h",
            {"api_key": "k", "timeout": 30, "verify": False, "profile": "correlator"},
        ),
        (
            {"type": "headwater.airflow.Transport", "url": "http://${HOST:-h}", "profile": "single"},
            "http://h",
            {"profile": "single"},
        ),
    ],
)  # fmt: skip
def test_transports_of_the_openlineage_client_in_our_words(
    world: World, table: dict[str, Any], url: str, options: dict[str, Any]
) -> None:
    world.environ["KEY"] = "k"
    world.yml(json.dumps({"transport": table}))
    settings = world.load()
    assert (settings.transport, dict(settings.rooms.get("transport", {}))) == (url, options)
    assert "'k'" not in repr(settings)  # in no list or table is a key shown


@pytest.mark.parametrize(
    ("yml", "message"),
    [
        (
            {"transport": {"type": "composite", "transports": [], "continue_on_success": False}},
            "transport.continue_on_success: Headwater sends to all of them",
        ),
        ({"transport": {"type": "composite"}}, "transport.transports: is missing"),
        (
            {"transport": {"type": "composite", "transports": [{"type": "datadog"}]}},
            "transport.type: datadog is not offered",
        ),
        (
            {"transport": {"type": "transform", "transport": {}}},
            "transport.type: transform is not offered: Headwater sends events as they are",
        ),
        (
            {"transport": {"type": "correlator", "url": "http://h", "api_key": "${NOT_SET_ANYWHERE}"}},
            "transport.api_key: ${NOT_SET_ANYWHERE} is not set",
        ),
        ({"transport": {"type": "correlator"}}, "transport.url: is missing"),
        (
            {"transport": {"type": "htp", "url": "http://h"}},
            "transport.type: unknown transport 'htp': did you mean 'http'",
        ),
        ({"transport": {"url": "http://h"}}, "transport: must be a table with a `type`"),
        ({"transport": "http"}, "transport: must be a table"),
        ({"transport": {"type": "http"}}, "transport.url: is missing"),
        (
            {"transport": {"type": "http", "url": "http://h", "timeoutt": 3}},
            "transport.timeoutt: Headwater's http has nothing like it",
        ),
        (
            {"transport": {"type": "http", "url": "http://h", "auth": {"type": "jwt", "apiKey": "k"}}},
            "transport.auth.type: 'jwt' is not offered",
        ),
        (
            {"transport": {"type": "http", "url": "http://h", "auth": "key"}},
            "transport.auth: must be a table",
        ),
        (
            {"transport": {"type": "file", "log_file_path": "/e", "append": False}},
            "transport.append: Headwater appends",
        ),
        (
            {"transport": {"type": "file", "log_file_path": "ftp://b/e"}},
            "transport.log_file_path: ftp:// is not offered",
        ),
        ({"transport": {"type": "file"}}, "transport.log_file_path: is missing"),
        ({"transport": {"type": "kafka", "topic": "t"}}, "transport.config: `bootstrap.servers` is missing"),
        ({"transport": {"type": "console"}, "filters": []}, "filters: Headwater has nothing like it"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_what_to_do(
    world: World, yml: dict[str, Any], message: str
) -> None:
    world.yml(json.dumps(yml))
    with pytest.raises(ConfigError) as caught:
        world.load()
    assert str(caught.value).startswith(f"openlineage.yml: {message}")
    assert "HEADWATER_TRANSPORT" in str(caught.value)
    assert config.check_file(world.cwd / "openlineage.yml") == [str(caught.value)]
    world.environ["HEADWATER_TRANSPORT"] = "console:"  # what the message advises
    assert world.load().transport == "console:"


def test_the_double_underscore_variables_of_openlineage(world: World) -> None:
    world.environ.update({
        "OPENLINEAGE__TRANSPORT__TYPE": "http",
        "OPENLINEAGE__TRANSPORT__URL": "http://double",
        "OPENLINEAGE__TRANSPORT__AUTH": '{"type": "api_key"}',
        "OPENLINEAGE__TRANSPORT__AUTH__API_KEY": "k",
        "OPENLINEAGE_URL": "http://single",
        "OPENLINEAGE_ENDPOINT": "events",
    })  # fmt: skip
    made = world.load()
    assert made.transport == "http://double"
    assert made.rooms["transport"] == {"endpoint": "events", "api_key": "k"}


def test_a_url_beside_another_type_is_not_mixed_in(world: World) -> None:
    world.environ.update(OPENLINEAGE__TRANSPORT__TYPE="console", OPENLINEAGE_URL="http://single")
    assert world.load().transport == "console:"


def test_a_variable_below_a_value_is_refused(world: World) -> None:
    world.environ.update(OPENLINEAGE__TRANSPORT="console", OPENLINEAGE__TRANSPORT__TYPE="console")
    with pytest.raises(
        ConfigError, match="OPENLINEAGE__TRANSPORT__TYPE: transport is set to a value as well"
    ):
        world.load()


# --- telling


def test_describe_tells_name_value_origin_and_help(world: World) -> None:
    world.toml("[serve]\nport = 5001")
    rows = {row["name"]: row for row in config.describe(world.load({"namespace": "shop"}))}
    assert rows["namespace"] == {
        "name": "namespace",
        "value": "shop",
        "origin": "argument",
        "help": "Namespace of jobs that do not name one.",
    }
    assert (rows["serve.port"]["value"], rows["serve.port"]["origin"]) == (5001, "headwater.toml")
    assert rows["store"]["origin"] == "default"
    assert rows["api_key"]["value"] is None
    json.dumps(list(rows.values()))


def test_secrets_are_never_told(world: World) -> None:
    secret = "hunter2"
    world.environ.update(
        HEADWATER_API_KEY=secret,
        HEADWATER_TRANSPORT=f"http://me:{secret}@h/p?api_key={secret}&timeout=3&token={secret}",
        HEADWATER_TRANSPORT__HEADERS=json.dumps({"X-Anything": secret}),
        HEADWATER_STORE=f"postgresql://me:{secret}@db/x?password={secret}",
        HEADWATER_SERVE__SINK=json.dumps({"url": f"http://{secret}@h", "accessToken": secret}),
        HEADWATER_URL=f"http://{secret}@h",
        HEADWATER_TRANSPORT__STORAGE_OPTIONS=json.dumps(
            {
                "connection_string": f"AccountName=a;AccountKey={secret}==;EndpointSuffix=core.windows.net",
                "other": f"BlobEndpoint=https://a.blob;SharedAccessSignature=sv=1&sig={secret}&se=2",
                "sasl.jaas.config": f'Login required username="u" password="{secret}";',
            }
        ),
    )
    made = world.load()
    assert made.api_key == secret
    told = json.dumps(config.describe(made)) + repr(made)
    assert secret not in told
    assert "timeout=3" in told
    assert "AccountName=a;AccountKey=***;EndpointSuffix=core.windows.net" in told
    assert "***" in told


def test_the_reference_in_the_docs_is_the_table() -> None:
    text = (Path(__file__).parents[1] / "docs" / "settings.md").read_text(encoding="utf-8")
    assert config.document() in text, (
        "docs/settings.md: put what config.document() answers below `## Reference`"
    )
    assert [
        n for n in [*(s.name for s in config.SETTINGS), *config.ROOMS] if f"### `{n}`\n" not in text
    ] == []


def test_the_example_in_the_docs_is_right(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "docs" / "settings.md").read_text(encoding="utf-8")
    path = tmp_path / "headwater.toml"
    path.write_text(text.split("```toml\n")[1].split("```")[0])
    assert [p for p in config.check_file(path) if "cannot be checked here" not in p] == []
