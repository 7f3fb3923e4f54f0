"""migrating.dlt_openlineage: what the package dlt-openlineage is told -> the same for `headwater.dlt`."""

from __future__ import annotations

from headwater.migrating._rules import Rule

ENVIRONMENT = (
    Rule("OPENLINEAGE_URL", "honoured", "where events go; dlt 1.27 or newer then loads Headwater as a plugin, with no code at all", example="http://h:5000"),
    Rule("OPENLINEAGE_NAMESPACE", "honoured", "of jobs, and of resources whose source nobody tells; `dlt` unless set", example="shop"),
    Rule("OPENLINEAGE_API_KEY", "honoured", "sent as `Authorization: Bearer …` and as `X-API-Key`", example="k"),
    Rule("OPENLINEAGE_DISABLED", "honoured", "`true`: nothing is sent", example="true"),
    Rule("OPENLINEAGE_ENDPOINT", "honoured", "path below the url", example="other/path"),
    Rule("OPENLINEAGE_CONFIG", "honoured", "the path of an `openlineage.yml`; JSON in it is refused"),
    Rule("OPENLINEAGE__{name*}", "honoured", "an `openlineage.yml` in variables; what that file may not say is refused here, too"),
)  # fmt: skip
"""Variables of any OpenLineage client, those of the package first."""

ARGUMENTS = (
    Rule("install(url=…)", "honoured", "`headwater.dlt.install(url=…)`; `console://` works, too"),
    Rule("install(namespace=…)", "honoured"),
    Rule("install(api_key=…)", "honoured"),
    Rule("is_installed()", "no effect", "there is none; `install` may be called as often as you like"),
    Rule("pip install dlt-openlineage", "becomes", to="`pip install 'headwater[dlt]'`"),
    Rule(
        "import dlt_openlineage",
        "becomes",
        "both at once would tell every run twice",
        "`import headwater.dlt`",
    ),
)
"""What stands in programs."""

RULES = (*ENVIRONMENT, *ARGUMENTS)
