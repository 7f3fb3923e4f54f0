"""serve.marquez.events: /events, /search, /stats -> pages of events, what a search finds, counts over time."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import unquote

from litestar import Request, get
from litestar.datastructures import State
from litestar.params import PathParameter, QueryParameter

from headwater.facts.flows import NOW
from headwater.query.marquez import events, lists, stats
from headwater.serve.marquez import _asking as ask

Time = Annotated[str | None, QueryParameter(description="A time like 2026-01-31T12:00:00Z.")]
Date = Annotated[str | None, QueryParameter(description="A date like 2026-01-31.")]
Period = Annotated[str, QueryParameter(description="DAY: 24 hours; WEEK: 7 days.")]
Zone = Annotated[
    str | None, QueryParameter(description="A time zone like Europe/Berlin; UTC if it is not told.")
]


@get(f"{ask.BASE}/events/lineage", sync_to_thread=True, scope="read", responses=ask.responses())
def get_events(
    state: State,
    before: Time = None,
    after: Time = None,
    sort_direction: Annotated[
        str, QueryParameter(name="sortDirection", description="`desc`: the newest first; or `asc`.")
    ] = "desc",
    limit: ask.Limit = 100,
    offset: ask.Offset = 0,
) -> dict[str, Any]:
    """Run events by their time, as they were sent."""
    until, since = ask.stamp("before", before), ask.stamp("after", after)
    return events.event_page(
        state.store,
        after=-NOW if since is None else since,
        before=NOW if until is None else until,
        newest_first=ask.choice("sortDirection", sort_direction, ("desc", "asc")) == "desc",
        limit=ask.page(limit),
        offset=offset,
    )


@get(f"{ask.BASE}/events", sync_to_thread=True, scope="read", responses=ask.responses())
def list_events(state: State, limit: ask.Limit = 100, offset: ask.Offset = 0) -> dict[str, Any]:
    """Run events, the newest first, as marquez-python asks for them."""
    return events.event_page(state.store, limit=ask.page(limit), offset=offset)


@get(f"{ask.BASE}/events/{{namespace:path}}", sync_to_thread=True, scope="read", responses=ask.responses())
def list_namespace_events(
    request: Request[Any, Any, State],
    state: State,
    namespace: Annotated[str, PathParameter(description="A namespace.")],
    limit: ask.Limit = 100,
    offset: ask.Offset = 0,
) -> dict[str, Any]:
    """Run events of one namespace's jobs, the newest first, as marquez-python asks for them."""
    # that client encodes nothing here, and routing makes one slash of `//`: so the path is read as it was sent
    raw = request.scope["raw_path"].partition(b"?")[0].decode("latin-1")
    sent = unquote(raw).partition("/events/")[2].rstrip("/")
    return events.namespace_events(state.store, sent or namespace, ask.page(limit), offset)


@get(f"{ask.BASE}/search", sync_to_thread=True, scope="read", responses=ask.responses())
def get_search(
    state: State,
    q: Annotated[str, QueryParameter(min_length=1, max_length=1024, description="A part of a name.")],
    kind: Annotated[str | None, QueryParameter(name="filter", description="DATASET or JOB.")] = None,
    sort: Annotated[str, QueryParameter(description="NAME, or UPDATE_AT: the newest first.")] = "NAME",
    limit: ask.Limit = 10,
    namespace: Annotated[str | None, QueryParameter(description="Only in this namespace.")] = None,
    before: Date = None,
    after: Date = None,
) -> dict[str, Any]:
    """The jobs and datasets whose names hold a text; `totalCount` is that of all of them."""
    word = ask.choice("filter", kind, ("DATASET", "JOB"))
    return lists.search(
        state.store,
        q,
        kind=None if word is None else word.lower(),
        by_name=ask.choice("sort", sort, ("NAME", "UPDATE_AT", "UPDATED_AT")) == "NAME",
        limit=ask.page(limit),
        namespace=namespace or None,
        after=ask.day("after", after),
        before=ask.day("before", before),
    )


@get(f"{ask.BASE}/stats/lineage-events", sync_to_thread=True, scope="read", responses=ask.responses())
def get_event_stats(state: State, period: Period, timezone: Zone = None) -> list[dict[str, Any]]:
    """Runs that began, completed, failed and were aborted, hour by hour or day by day."""
    word = str(ask.choice("period", period, stats.PERIODS))
    return stats.event_stats(state.store, word, timezone)


@get(f"{ask.BASE}/stats/{{what:str}}", sync_to_thread=True, scope="read", responses=ask.responses(404))
def get_thing_stats(
    state: State,
    what: Annotated[str, PathParameter(description="`jobs`, `datasets` or `sources`.")],
    period: Period,
    timezone: Zone = None,
) -> list[dict[str, Any]]:
    """How many jobs, datasets or sources there were, hour by hour or day by day."""
    thing = str(ask.choice("the path", what, ("jobs", "datasets", "sources")))
    word = str(ask.choice("period", period, stats.PERIODS))
    return stats.thing_stats(state.store, thing, word, timezone)


@get("/api/v2beta/search/{what:str}", sync_to_thread=True, scope="read", responses=ask.responses())
def get_beta_search(
    state: State,
    what: Annotated[str, PathParameter(description="`jobs` or `datasets`.")],
    q: Annotated[str, QueryParameter(min_length=1, max_length=1024, description="A part of a name.")],
) -> dict[str, Any]:
    """The jobs or datasets whose names hold a text, with what is to be highlighted."""
    kind = str(ask.choice("the path", what, ("jobs", "datasets"))).removesuffix("s")
    return lists.beta_search(state.store, kind, q)


READS = [
    get_events,
    list_events,
    list_namespace_events,
    get_search,
    get_event_stats,
    get_thing_stats,
    get_beta_search,
]
