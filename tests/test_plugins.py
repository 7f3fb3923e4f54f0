from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwater import plugins
from headwater.errors import ConfigError, NotInstalled, UnknownName


class Thing:
    def __init__(self, url: str = "", size: int = 1, **more: Any) -> None:
        self.url, self.size, self.more = url, size, more


class Strict:
    def __init__(self, url: str, size: int = 1) -> None:
        self.url, self.size = url, size


TABLE: plugins.Table = {
    "thing": (f"{__name__}:Thing", None),
    "strict": (f"{__name__}:Strict", None),
    "heavy": ("headwater_test_heavy:Heavy", "server"),
    "ours": ("headwater.no_such_module:Ours", "server"),
    "bare": ("headwater_test_heavy:Heavy", None),
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Install a package that registers one entry point: its module, and the dist-info pip would write."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(module: str, name: str, text: str) -> None:
        (tmp_path / f"{module}.py").write_text(text)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[headwater.transport]\n{name} = {module}:Pigeon\n")
        monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.invalidate_caches()

    return install


PIGEON = (
    "class Pigeon:\n    def __init__(self, url='', speed=1):\n        self.url, self.speed = url, speed\n"
)


def test_a_name_builds_what_it_names_with_its_options() -> None:
    made = plugins.build("thing", {"type": "thing", "size": 3}, TABLE)
    assert type(made) is Thing
    assert made.size == 3


def test_the_callers_mapping_stays_as_it_was() -> None:
    mapping = {"type": "thing", "size": 3}
    plugins.build("thing", mapping, TABLE)
    assert mapping == {"type": "thing", "size": 3}


def test_an_unknown_name_tells_the_nearest_and_all() -> None:
    with pytest.raises(
        UnknownName,
        match=r"unknown thing 'strct': did you mean 'strict'. known: bare, heavy, ours, strict, thing",
    ):
        plugins.build("thing", {"type": "strct"}, TABLE)


@pytest.mark.parametrize("mapping", [{}, {"type": None}, {"type": 3}, {"type": ["thing"]}])
def test_a_missing_or_odd_type_is_refused_the_same_way(mapping: dict[str, Any]) -> None:
    with pytest.raises(UnknownName, match="known: bare"):
        plugins.build("thing", mapping, TABLE)


def test_an_unknown_option_is_refused_with_those_it_takes() -> None:
    with pytest.raises(
        ConfigError, match="thing 'strict': got an unexpected keyword argument 'sise'; it takes: url, size"
    ):
        plugins.build("thing", {"type": "strict", "url": "", "sise": 3}, TABLE)


def test_a_missing_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="missing a required argument: 'url'"):
        plugins.build("thing", {"type": "strict"}, TABLE)


def test_a_missing_library_is_answered_with_its_pip_line() -> None:
    with pytest.raises(NotInstalled) as caught:
        plugins.find("thing", "heavy", TABLE)
    assert str(caught.value) == "thing 'heavy' needs: pip install 'headwater[server]'"


@pytest.mark.parametrize("name", ["ours", "bare"])
def test_a_fault_of_our_own_is_not_blamed_on_an_extra(name: str) -> None:
    with pytest.raises(ModuleNotFoundError):
        plugins.find("thing", name, TABLE)


def test_a_url_names_by_its_scheme_and_its_query_joins_the_options() -> None:
    made = plugins.build_url("thing", "thing://host/path?size=3&key=s3cret&empty=", TABLE, extra=True)
    assert (made.url, made.size, made.more) == (
        "thing://host/path",
        "3",
        {"key": "s3cret", "empty": "", "extra": True},
    )


def test_an_option_given_beside_the_url_wins_over_its_query() -> None:
    assert plugins.build_url("thing", "thing:?size=3", TABLE, size=4).size == 4


def test_what_is_no_url_is_refused_with_examples() -> None:
    with pytest.raises(ConfigError, match="thing 'strict' is no url: write it as in bare:…"):
        plugins.build_url("thing", "strict", TABLE)


@pytest.mark.parametrize("place", ["me:s3[cret@host", "me:s3\u2100cret@host", "[::1"])
def test_a_url_whose_host_cannot_be_read_is_refused_without_quoting_it(place: str) -> None:
    with pytest.raises(ConfigError, match="thing: no url: its host cannot be read") as refused:
        plugins.build_url("thing", f"thing://{place}/path", TABLE)
    assert "s3" not in str(refused.value)


def test_a_package_extends_the_table(package: Callable[[str, str, str], None]) -> None:
    package("pigeon_post", "pigeon", PIGEON)
    made = plugins.build_url("transport", "pigeon://loft?speed=2", {})
    assert (type(made).__name__, made.url, made.speed) == ("Pigeon", "pigeon://loft", "2")
    assert plugins.known("transport", TABLE) == sorted([*TABLE, "pigeon"])
    with pytest.raises(ConfigError, match="unexpected keyword argument 'sped'; it takes: url, speed"):
        plugins.build_url("transport", "pigeon://loft?sped=2", {})
    with pytest.raises(UnknownName, match="did you mean 'pigeon'"):
        plugins.find("transport", "pigon", {})


def test_a_package_of_another_kind_is_not_asked(package: Callable[[str, str, str], None]) -> None:
    package("pigeon_post", "pigeon", PIGEON)
    with pytest.raises(UnknownName):
        plugins.find("store", "pigeon", {})


def test_our_own_name_comes_before_a_packages(package: Callable[[str, str, str], None]) -> None:
    package("pigeon_post", "thing", PIGEON)
    assert plugins.find("transport", "thing", TABLE).__name__ == "Thing"


def test_two_packages_that_claim_one_name_are_told(package: Callable[[str, str, str], None]) -> None:
    package("pigeon_post", "pigeon", PIGEON)
    package("pigeon_express", "pigeon", PIGEON)
    with pytest.raises(ConfigError, match="two packages claim the transport 'pigeon'") as caught:
        plugins.find("transport", "pigeon", {})
    assert {"pigeon_post:Pigeon", "pigeon_express:Pigeon"} <= set(str(caught.value).replace(";", "").split())


def test_a_fault_inside_a_package_rises_as_it_is(package: Callable[[str, str, str], None]) -> None:
    package("pigeon_ill", "ill", "raise ZeroDivisionError('ill')")
    with pytest.raises(ZeroDivisionError, match="ill"):
        plugins.find("transport", "ill", {})
