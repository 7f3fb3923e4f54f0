"""capture.spark: records of what a Spark application did -> OpenLineage events, down to the column.

    probe/        Java source, compiled by Spark's own Janino: listener events and analyzed plans -> records (JSON lines)
    names         what a record says of a table, path or option map -> identities, by `naming`
    deps          sets of source columns with how they got there
    relation      what a node gives to its parent
    expressions   an expression -> what it comes from
    leaves        a leaf -> columns of datasets
    columns       the nodes of a plan -> what each attribute comes from
    writes        an understood plan -> what its root command reads and writes
    ddl           a statement about tables -> what it changes
    sqltext       the text of a JDBC query -> its tables and columns
    trimming      the names of datasets, as settings want them
    facets        parts of events
    state         what was learnt from an application's records
    telling       an execution or a stream -> an event
    runs          records -> runs: nesting, streams, failures, the application

The host pays for the probe alone; everything here is a pure function of records, tested without Spark.
"""

from headwater.capture.spark.runs import interpret
from headwater.capture.spark.state import State

__all__ = ["State", "interpret"]
