"""serve.editing: PATCH /hw/v1/nodes, PUT and DELETE /hw/v1/aliases -> what people say, as commands in the log."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from anyio.to_thread import run_sync
from litestar import Request, delete, get, patch, put
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.params import JSONBody, QueryParameter

from headwater.errors import NotFound
from headwater.ingest import command
from headwater.naming import AliasRule
from headwater.query.edits import Edit, alias_command, alias_rules, commands_for, preview
from headwater.query.show import show
from headwater.serve.auth import who
from headwater.store import Store

DryRun = Annotated[bool, QueryParameter(description="Tell what it would do, and do nothing.")]


class Rule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An alias rule: which names it matches, and what they become. `{v}` is anything without a slash, `{v*}` anything."""

    namespace: str | None = None
    name: str | None = None
    to_namespace: str | None = None
    to_name: str | None = None


@patch("/hw/v1/nodes", scope="admin", sync_to_thread=True)
def patch_node(request: Request[Any, Any, State], state: State, data: JSONBody[Edit]) -> dict[str, Any]:
    """Say something of a dataset, job or column by hand: it outlives what later events say."""
    node, said = commands_for(state.store, data, by=who(request))
    for each in said:
        command(state.store, each)
    return show(state.store, node)


# Several methods of one path go to a thread by themselves: the framework would wrap each handler twice.


@get("/hw/v1/aliases", scope="read", operation_id="GetAliases")
async def get_aliases(state: State) -> list[dict[str, str]]:
    """The alias rules that were set, in the order in which they are tried; those of the house come after them."""
    return await run_sync(alias_rules, state.store)


@put("/hw/v1/aliases", scope="admin", status_code=200, operation_id="PutAlias")
async def put_alias(
    request: Request[Any, Any, State], state: State, data: JSONBody[Rule], dry_run: DryRun = False
) -> dict[str, Any]:
    """Set a rule; it holds for what is stored as well. Tells which datasets become one."""
    return await run_sync(_set, state.store, _given(data), True, dry_run, who(request))


@delete("/hw/v1/aliases", scope="admin", status_code=200, operation_id="DeleteAlias")
async def delete_alias(
    request: Request[Any, Any, State],
    state: State,
    namespace: Annotated[str | None, QueryParameter(max_length=4_000)] = None,
    name: Annotated[str | None, QueryParameter(max_length=4_000)] = None,
    dry_run: DryRun = False,
) -> dict[str, Any]:
    """Take the rule back that matches exactly this; what it renamed has its own name again."""
    if namespace is None and name is None:
        raise ClientException("give the namespace or name that the rule matches")
    rules = [AliasRule.from_dict(each) for each in await run_sync(alias_rules, state.store)]
    rule = next((each for each in rules if (each.namespace, each.name) == (namespace, name)), None)
    if rule is None:
        raise NotFound(
            f"no rule matches exactly namespace {namespace!r}, name {name!r}; GET /hw/v1/aliases lists them"
        )
    return await run_sync(_set, state.store, dict(rule.to_dict()), False, dry_run, who(request))


def _set(store: Store, rule: dict[str, Any], live: bool, dry_run: bool, by: str) -> dict[str, Any]:
    said = alias_command(rule, live=live, by=by)  # refuses what is no rule, before anything is looked at
    found = preview(store, rule, live=live)
    if not dry_run:
        command(store, said)
    return {**found, "applied": not dry_run}


def _given(data: Rule) -> dict[str, Any]:
    given: dict[str, Any] = {
        key: value for key, value in msgspec.structs.asdict(data).items() if value is not None
    }
    return given


READS = [get_aliases]
WRITES = [patch_node, put_alias, delete_alias]
