"""docs_http: the description of the API (/openapi.json) -> the reference of its routes, as Markdown."""

from __future__ import annotations

from typing import Any

GROUPS = (
    ("Sending events", ("POST /api/v1/lineage", "POST /openapi/", "POST /hw/v1/check")),
    ("Headwater's own", ("/hw/v1/",)),
    ("Incidents, as Correlator's clients ask", ("/api/v1/incidents", "/api/v1/health/")),
    ("Marquez's API", ("/api/",)),
    ("Health", ("/",)),
)
"""Title -> how a path begins, or a method and a path; the first that fits counts."""
USUAL = {"Request fulfilled, document follows": "the answer", "Document created, URL follows": "done"}
"""What the framework says where a handler says nothing."""
METHODS = ("get", "post", "put", "patch", "delete")


def description() -> dict[str, Any]:
    """What /openapi.json answers, and the scope of each operation under `x-scope`."""
    from headwater.serve.app import create_app
    from headwater.serve.auth import scope_of
    from headwater.store import open_store

    store = open_store("memory:")
    try:
        app = create_app(store)
        told: dict[str, Any] = app.openapi_schema.to_schema()
        for route in app.routes:
            path = "/" + "/".join(_part(each) for each in getattr(route, "path_components", ()))
            for handler in getattr(route, "route_handlers", ()):
                for method in getattr(handler, "http_methods", ()):
                    operation = told["paths"].get(path, {}).get(method.lower())
                    if operation is not None:
                        operation["x-scope"] = scope_of(handler)
    finally:
        store.close()
    return told


def _part(component: Any) -> str:
    return component if isinstance(component, str) else f"{{{component.name}}}"


def routes(told: dict[str, Any] | None = None) -> str:
    """Every route with its scope, parameters and answers."""
    told = told or description()
    grouped: dict[str, list[str]] = {title: [] for title, _ in GROUPS}
    for path in sorted(told["paths"]):
        for method in METHODS:
            if method in told["paths"][path]:
                named = (path, f"{method.upper()} {path}")
                title = next(
                    title for title, begins in GROUPS if any(each.startswith(begins) for each in named)
                )
                grouped[title].append(_operation(method, path, told["paths"][path][method], told))
    return "\n".join(f"## {title}\n\n" + "\n".join(parts) for title, parts in grouped.items() if parts)


def _operation(method: str, path: str, operation: dict[str, Any], told: dict[str, Any]) -> str:
    lines = [f"### `{method.upper()} {path}`", ""]
    if text := operation.get("description"):
        lines += [" ".join(text.split()), ""]
    if scope := operation.get("x-scope"):
        lines += [f"Scope: {scope}.", ""]
    rows = [_parameter(each) for each in operation.get("parameters", ())]
    rows += _body(operation.get("requestBody"), told)
    if rows:
        lines += ["| parameter | in | type | |", "|---|---|---|---|", *rows, ""]
    lines += ["| answer | |", "|---|---|"]
    lines += [f"| {status} | {_answer(each)} |" for status, each in sorted(operation["responses"].items())]
    return "\n".join(lines) + "\n"


def _parameter(told: dict[str, Any]) -> str:
    schema = told.get("schema", {})
    return f"| `{told['name']}` | {told['in']} | {_type(schema)} | {_facts(told.get('description', ''), schema, told.get('required'))} |"


def _body(told: dict[str, Any] | None, whole: dict[str, Any]) -> list[str]:
    if told is None:
        return []
    ((kind, content),) = list(told["content"].items())[:1]
    schema = _resolved(content.get("schema", {}), whole)
    if schema.get("type") == "array":
        return [f"| (body) | body | {kind} | an array of events |"]
    needed = set(schema.get("required", ()))
    rows = [
        f"| `{name}` | body | {_type(_resolved(each, whole))} | {_facts(each.get('description', ''), each, name in needed)} |"
        for name, each in schema.get("properties", {}).items()
    ]
    return rows or [f"| (body) | body | {kind} | |"]


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"] if each is not None)
    for several in ("oneOf", "anyOf"):
        if several in schema:
            kinds = [_type(each) for each in schema[several] if each.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds)) or "any"
    kind = schema.get("type", "object" if "$ref" in schema else "any")
    return " or ".join(each for each in kind if each != "null") if isinstance(kind, list) else kind


def _facts(text: str, schema: dict[str, Any], required: bool | None) -> str:
    facts = [" ".join(text.split()).replace("|", "\\|").rstrip(".")] if text else []
    facts += ["needed"] if required else []
    if schema.get("default") is not None:
        default = schema["default"]
        facts.append(f"default `{str(default).lower() if isinstance(default, bool) else default}`")
    low, high = schema.get("minimum"), schema.get("maximum")
    if high is not None and high < 2_000_000_000:
        facts.append(f"{int(low or 0):,} to {int(high):,}")
    return "; ".join(facts)


def _answer(told: dict[str, Any]) -> str:
    kinds = ", ".join(told.get("content", {}))
    text = told.get("description", "").rstrip(".")
    text = USUAL.get(text, text)
    return f"{text} ({kinds})" if kinds and kinds != "application/json" else text
