"""query.marquez: a question as Marquez's clients ask it -> the model that they expect, as JSON-ready data.

nodes      a node id or a path's names -> the job or dataset that is meant
runs       runs -> their models, with facets and dataset versions
datasets   datasets -> their models; their versions
jobs       jobs -> their models; their versions
lists      namespaces, sources, tags, search
events     the raw log -> pages of events
stats      the log and the catalogue -> counts by hour or day
lineage    a node and a depth -> the graph of jobs and datasets around it
columns    a node and a depth -> the graph of columns
upstream   a run -> the runs that wrote what it read

Facets are given as they were sent, byte for byte. Ids of versions are derived from what they stand for, so they are
the same in every store, in whatever order events came, and after a replay.
"""
