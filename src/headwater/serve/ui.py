"""serve.ui: GET / and the pages below it -> the web UI as `make web` built it, or one page that says how to build it.

The UI is one page and a few files beside it. The page is the same for every address, because what an address means
is read in the browser; only its `<base>` differs, so that the same files work below any base path. It holds no data and
asks for all of it under `/hw/v1`, with the reader's key where one is needed: so it may be seen by anyone.
"""

from __future__ import annotations

import gzip
import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from litestar import Request, Response, get
from litestar.datastructures import State
from litestar.exceptions import NotFoundException
from litestar.params import PathParameter
from litestar.response import Redirect

PAGES = [
    "/",
    "/lineage",
    "/lineage/{kind:str}/{namespace:str}/{name:str}",
    "/datasets",
    "/datasets/{namespace:str}/{name:str}",
    "/jobs",
    "/jobs/{namespace:str}/{name:str}",
    "/runs",
    "/runs/{run_id:str}",
    "/events",
    "/rejected",
    "/incidents",
    "/incidents/{number:str}",
    "/start",
    "/admin",
]
"""Addresses that the UI knows; `web/src/route.ts` reads them."""

BUILT = Path(__file__).parent / "built"
"""Where `make web` puts what it builds."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "worker-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
_GUARDS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_BASE = b'<base href="/" />'
_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Headwater</title></head>
<body><main><h1>The web UI is not built</h1>
<p>The server runs and answers under <a href="{base}/openapi.json">its API</a>. This copy came without the pages:
in a source checkout, <code>make web</code> builds them (it needs Node 20.19 or newer); then start the server again.
An installed wheel has them.</p></main></body></html>
"""

Part = Annotated[str, PathParameter(description="The namespace or the name of a dataset or job.")]


@dataclass(frozen=True, slots=True)
class Built:
    """A file of the UI, ready to send."""

    plain: bytes
    packed: bytes
    kind: str
    tag: str


class Pages:
    """The built UI, held in memory: it is small, and packed once instead of for every reader."""

    def __init__(self, base_path: str, folder: Path = BUILT) -> None:
        self.base_path = base_path.rstrip("/")
        self.files = dict(_read(folder))
        page = self.files.pop("index.html", None)
        base = f'<base href="{escape(self.base_path)}/" />'.encode()
        self.page = _built(page.plain.replace(_BASE, base), "index.html") if page else None

    def shell(self) -> Built:
        """The one page, or the one that says that it is missing."""
        return self.page or _built(_NOT_BUILT.format(base=escape(self.base_path)).encode(), "missing.html")


def _read(folder: Path) -> Iterator[tuple[str, Built]]:
    for each in sorted(folder.rglob("*")):
        if each.is_file():
            name = each.relative_to(folder).as_posix()
            yield name, _built(each.read_bytes(), name)


def _built(body: bytes, name: str) -> Built:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    kind = "text/javascript" if name.endswith(".js") else kind  # some machines' tables say otherwise
    packed = gzip.compress(body, 9, mtime=0)
    # weak: the packed and the plain body are the same file, not the same bytes
    return Built(body, packed, kind, f'W/"{sha256(body).hexdigest()[:20]}"')


def _send(request: Request[Any, Any, State], found: Built, caching: str) -> Response[bytes]:
    headers = {"ETag": found.tag, "Cache-Control": caching, "Vary": "Accept-Encoding", **_GUARDS}
    if request.headers.get("if-none-match") == found.tag:
        return Response(b"", status_code=304, headers=headers)
    body = found.plain
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"], body = "gzip", found.packed
    return Response(body, headers=headers, media_type=found.kind)


@get(PAGES, scope="public", include_in_schema=False)
async def get_page(request: Request[Any, Any, State], state: State) -> Response[bytes]:
    """The page of the UI; asked for anew each time, so that a new version is seen at once."""
    return _send(request, state.pages.shell(), "no-cache")


@get("/assets/{name:str}", scope="public", include_in_schema=False)
async def get_asset(
    request: Request[Any, Any, State],
    state: State,
    name: Annotated[str, PathParameter(description="A file of the UI.")],
) -> Response[bytes]:
    """A file of the UI: its name holds the hash of what is in it, so it may be kept for ever."""
    found = state.pages.files.get(f"assets/{name}")
    if found is None:
        raise NotFoundException("the web UI has no such file: load the page anew")
    return _send(request, found, "public, max-age=31536000, immutable")


# Addresses of other UIs that differ from ours. The rest of Marquez's (/, /jobs, /datasets, /events, /lineage/…) and of
# Correlator's (/incidents, /incidents/{id}) are ours as well; /health, which is an answer of the API, too, stands there.


@get("/datasets/column-level/{namespace:str}/{name:str}", scope="public", include_in_schema=False)
async def get_columns_of_marquez(
    request: Request[Any, Any, State], state: State, namespace: Part, name: Part
) -> Redirect:
    """Where Marquez's UI shows columns -> where ours does, with its depth and the column that was chosen."""
    asked = request.query_params
    wanted = {"columns": "1"}
    if asked.get("depth", "").isdecimal():
        wanted["depth"] = asked["depth"]
    field = asked.get("columnName") or asked.get("column", "").rpartition(":")[2]
    dataset = asked.get("column", "").removeprefix("datasetField:").removesuffix(f":{field}")
    if field and dataset:
        wanted["trace"] = f"dataset:{dataset}\n{field}"
    there = f"/lineage/dataset/{quote(namespace, safe='')}/{quote(name, safe='')}?{urlencode(wanted)}"
    return Redirect(state.pages.base_path + there)


# Marquez's first UIs showed a dataset or a job by its name alone: those that are called so


@get("/datasets/{name:str}", scope="public", include_in_schema=False)
async def get_dataset_alone(state: State, name: Part) -> Redirect:
    """A dataset by its name alone -> the datasets that are called so."""
    return Redirect(f"{state.pages.base_path}/datasets?{urlencode({'q': name})}")


@get("/jobs/{name:str}", scope="public", include_in_schema=False)
async def get_job_alone(state: State, name: Part) -> Redirect:
    """A job by its name alone -> the jobs that are called so."""
    return Redirect(f"{state.pages.base_path}/jobs?{urlencode({'q': name})}")


@get("/search", scope="public", include_in_schema=False)
async def get_search(request: Request[Any, Any, State], state: State) -> Redirect:
    """A search by its address -> the page that searches."""
    return Redirect(f"{state.pages.base_path}/?{urlencode({'q': request.query_params.get('q', '')})}")


READS = [get_page, get_asset, get_columns_of_marquez, get_dataset_alone, get_job_alone, get_search]
