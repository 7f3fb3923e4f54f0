"""serve: a store -> one HTTP app: events in, the graph out.

intake    events of many requests -> one transaction
bodies    a request -> its body: unpacked, within limits, of a type we read
lineage   /api/v1/lineage, /api/v1/lineage/batch
native    /hw/v1: graph, impact, diff, runs, schemas, show, search, status
logged    /hw/v1: events, export, changes: the raw log
editing   /hw/v1: nodes, aliases: what people say by hand
metrics   /metrics
health    /health, /ready
faults    an error -> its status and its body, in the shape of the dialect that was spoken
app       all of it -> one app, and the server that runs it
"""

from headwater.serve.app import Serving, create_app, run_server

__all__ = ["Serving", "create_app", "run_server"]
