"""incidents: how tests, runs, schemas and counts ended, and what people decided -> incidents, and who is suspect.

episodes   outcomes and verdicts -> incidents, each from its first failure to the pass or the person that ended it
history    row counts, times and schemas of what was written -> outcomes, held against those before
suspects   runs upstream of what failed -> ranked, each with its reasons
"""

from headwater.incidents.episodes import KINDS, Attempts, Incident, Outcome, State, Verdict, incidents
from headwater.incidents.history import (
    Schema,
    Written,
    breaks,
    broken,
    deviation,
    freshness,
    schema_outcomes,
    volume,
)
from headwater.incidents.suspects import Candidate, Suspect, rank

__all__ = [
    "KINDS",
    "Attempts",
    "Candidate",
    "Incident",
    "Outcome",
    "Schema",
    "State",
    "Suspect",
    "Verdict",
    "Written",
    "breaks",
    "broken",
    "deviation",
    "freshness",
    "incidents",
    "rank",
    "schema_outcomes",
    "volume",
]
