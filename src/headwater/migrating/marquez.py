"""migrating.marquez: the settings of a Marquez server -> what becomes of each under `headwater serve`."""

from __future__ import annotations

from headwater.migrating._rules import Rule

RULES = (
    Rule("server.applicationConnectors.type", "honoured", "`http`; `https` is refused: TLS ends at a [proxy](../operating.md#behind-a-proxy)"),
    Rule("server.applicationConnectors.port", "becomes", "5000 unless set, as in Marquez's images", "`serve.port`"),
    Rule("server.applicationConnectors.bindHost", "becomes", "unless set, Marquez listens on every address, Headwater on this machine alone; on any other address [keys](../operating.md#keys) are needed", "`serve.host`"),
    Rule("server.applicationConnectors.{option}", "no effect", "of Marquez's own web server, Jetty"),
    Rule("server.adminConnectors.{option}", "no effect", "`/health`, `/ready` and `/metrics` stand on the one port"),
    Rule("server.applicationContextPath", "becomes", to="`serve.base_path`"),
    Rule("server.rootPath", "no effect", "Marquez's API stands under `/api/v1`"),
    Rule("server.requestLog.{option*}", "becomes", "requests are logged at INFO", "`log_level = \"INFO\"`, `serve.log_format`"),
    Rule("server.{option*}", "no effect", "of Marquez's own web server, Jetty"),
    Rule("db.driverClass", "no effect", "the url says which driver"),
    Rule("db.url", "becomes", "a database of its own: Marquez's tables are not read, `headwater store import --marquez URL` takes its events over", "`store`"),
    Rule("db.user", "becomes", to="the user in the url of `store`, or `PGUSER`"),
    Rule("db.password", "becomes", "so it stands in no file", "`PGPASSWORD` or `PGPASSFILE`"),
    Rule("db.maxSize", "becomes", to="`store.pool_size`"),
    Rule("db.{option}", "no effect", "of Marquez's connection pool"),
    Rule("flyway.{option*}", "no effect", "a store is brought to its format when it is opened"),
    Rule("migrateOnStartup", "becomes", to="`store.migrate_on_open`"),
    Rule("graphql.enabled", "no effect", "`/api/v1-beta/graphql` is always there"),
    Rule("logging.level", "becomes", to="`log_level`"),
    Rule("logging.loggers.{name*}", "no effect", "one level for all"),
    Rule("logging.appenders.{option*}", "becomes", "logs go to stderr", "`serve.log_format = \"json\"` for lines of JSON"),
    Rule("sentry.{option*}", "no effect", "no errors are sent anywhere"),
    Rule("metrics.{option*}", "no effect", "Prometheus asks `/metrics`"),
    Rule("dbRetention.retentionDays", "becomes", "catalogue and edges stay; in Marquez they go, too", "`retention.runs`, `retention.events`"),
    Rule("dbRetention.frequencyMins", "no effect", "every six hours"),
    Rule("dbRetention.numberOfRowsPerBatch", "no effect", "in small transactions"),
    Rule("search.{option}", "no effect", "the store searches by itself; no Elasticsearch or OpenSearch is needed"),
    Rule("tags.{option}", "becomes", "a tag exists once it is used", "`PUT /api/v1/tags/NAME` for its description"),
    Rule("exclude.namespaces.{when}.enabled", "refused", "with `true`: every namespace is kept and shown; what must not be kept is [redacted](../operating.md#redaction) or not sent"),
    Rule("exclude.namespaces.{when}.pattern", "no effect", "goes with `enabled`"),
)  # fmt: skip
"""Keys of marquez.yml; a list's members stand without their numbers."""

ENVIRONMENT = (
    Rule("MARQUEZ_PORT", "becomes", "read where marquez.yml names it", "`HEADWATER_SERVE__PORT`"),
    Rule("MARQUEZ_ADMIN_PORT", "no effect", "there is one port"),
    Rule("MARQUEZ_CONFIG", "becomes", to="`HEADWATER_CONFIG`, the path of a headwater.toml"),
)
"""Variables of its container."""
