"""serve: a store -> one HTTP app: events in, the graph out.

settings  the options of room `serve`
buckets   who asks, and how often -> whether now
journal   a request -> its correlation id, and a line in the log
oidc      a bearer token -> who sends it
schemas   the bodies of requests, as the description of the API tells them
intake    events of many requests -> one transaction
consume   a topic of events -> the store, each exactly once
bodies    a request -> its body: unpacked, within limits, of a type we read
refusals  an event, a batch -> what Correlator would refuse of it
deciding  what people say of incidents -> commands
correlator  /api/v1/incidents, /api/v1/health/correlation
incidents /hw/v1/incidents, /hw/v1/correlation, /hw/v1/watches
logged    /hw/v1: events, export, changes: the raw log
editing   /hw/v1: nodes, aliases: what people say by hand
metrics   /metrics
auth      a request and its handler's scope -> who calls, or a refusal
strict    an event -> the rule of the spec that it breaks
lineage   /api/v1/lineage, /api/v1/lineage/batch
paths     a path whose parts hold slashes -> those parts
marquez   /api/v1: the rest of Marquez's API
native    /hw/v1: graph, impact, diff, runs, schemas, show, search, status
running   /hw/v1: audit, server, check
health    /health, /ready
admin     /hw/v1: keys, hooks, settings, sources
deliveries  /hw/v1/deliveries
ui        /, /lineage, /datasets … and what they load: the web UI
faults    an error -> its status and its body, in the shape of the dialect that was spoken
wire      bytes on a socket -> requests within limits; a signal -> a stop that loses nothing
app       all of it -> one app, and the server that runs it
"""

from headwater.serve.app import create_app, run_server
from headwater.serve.consume import Consume
from headwater.serve.settings import Serving

__all__ = ["Consume", "Serving", "create_app", "run_server"]
