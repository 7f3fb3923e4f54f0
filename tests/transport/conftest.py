from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

import object_store
import pytest
from lineage_server import Server, running


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    yield from running()


@pytest.fixture(scope="session")
def s3(need: Callable[[str, str], None]) -> Iterator[str]:
    for package, name in (("s3fs", "s3fs"), ("moto", "moto[server]")):
        if importlib.util.find_spec(package) is None:
            need(name, f"pip install '{name}'")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str, monkeypatch: pytest.MonkeyPatch) -> object_store.Bucket:
    return object_store.made(s3)


@pytest.fixture
def fsspec_memory(
    need: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], object_store.Bucket]:
    """`fsspec_memory("gs")`: that scheme leads to a memory of its own."""
    if importlib.util.find_spec("fsspec") is None:
        need("fsspec", "pip install 'headwater[s3]'")
    from fsspec.implementations.memory import MemoryFileSystem

    known = importlib.import_module("fsspec.registry")._registry

    def register(scheme: str) -> object_store.Bucket:
        class Memory(MemoryFileSystem):
            protocol, store, pseudo_dirs, cachable = scheme, {}, [""], False

            @classmethod
            def _strip_protocol(cls, path: str) -> str:
                return str(super()._strip_protocol(path.removeprefix(f"{scheme}://")))

        monkeypatch.setitem(known, scheme, Memory)
        return object_store.Bucket("", {}, scheme)

    return register
