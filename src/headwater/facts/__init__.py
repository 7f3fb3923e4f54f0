"""facts: an event or command -> rows; one table of merge rules -> memory, SQL and Spark hold the same tables.

tables     what rows there are, and how two rows with one key become one
derive     an event -> its rows, pure
definitions  a dataset, job, run, namespace, source or tag defined by hand -> its rows
commands   a write that is no event (a tag, a soft delete, an alias rule) -> its rows
fold       rows -> tables in memory: an engine of its own, and the combiner in front of the others
versions   a run's inputs and outputs -> the job version it shows
remains    what old events told -> one entry in their place, when they are no longer kept
oblivion   rows, and nodes to forget -> the rows without them and without what mentions them
changes    a schema before and after -> what changed, and whether it breaks a reader
canonical  symlinks and alias rules -> one identity per dataset
"""

from headwater.facts.canonical import representatives
from headwater.facts.commands import Command, derive_command
from headwater.facts.derive import derive
from headwater.facts.fold import Tables, fold, settle
from headwater.facts.tables import TABLES, Row, Rule, Table, ref, unref

__all__ = [
    "TABLES",
    "Command",
    "Row",
    "Rule",
    "Table",
    "Tables",
    "derive",
    "derive_command",
    "fold",
    "ref",
    "representatives",
    "settle",
    "unref",
]
