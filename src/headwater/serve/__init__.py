"""serve: a store -> one HTTP app: events in, the graph out.

intake    events of many requests -> one transaction
bodies    a request -> its body: unpacked, within limits, of a type we read
strict    an event -> the rule of the spec that it breaks
lineage   /api/v1/lineage, /api/v1/lineage/batch
paths     a path whose parts hold slashes -> those parts
marquez   /api/v1: the rest of Marquez's API
native    /hw/v1: graph, show, search, status, rejects
metrics   /metrics
health    /health, /ready
faults    an error -> its status and its body, in the shape of the dialect that was spoken
app       all of it -> one app, and the server that runs it
"""

from headwater.serve.app import Serving, create_app, run_server

__all__ = ["Serving", "create_app", "run_server"]
