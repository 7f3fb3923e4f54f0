"""serve: a store -> one HTTP app: events in, the graph out.

intake    events of many requests -> one transaction
bodies    a request -> its body: unpacked, within limits, of a type we read
strict    an event, a batch -> what Correlator would refuse of it
lineage   /api/v1/lineage, /api/v1/lineage/batch
journal   a request -> its correlation id
auth      a request -> whom it is by
deciding  what people say of incidents -> commands
correlator  /api/v1/incidents, /api/v1/health/correlation
incidents /hw/v1/incidents, /hw/v1/correlation, /hw/v1/watches
native    /hw/v1: graph, show, search, status, rejects
metrics   /metrics
health    /health, /ready
faults    an error -> its status and its body, in the shape of the dialect that was spoken
app       all of it -> one app, and the server that runs it
"""

from headwater.serve.app import Serving, create_app, run_server

__all__ = ["Serving", "create_app", "run_server"]
