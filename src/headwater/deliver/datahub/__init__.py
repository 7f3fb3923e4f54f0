"""deliver.datahub: OpenLineage events -> DataHub's change proposals, put together by run group, and on their way to it.

options     settings -> Options, and which faults of DataHub's own converter are mended
datasets    namespace, name, symlinks -> urn (paths: of file systems; urns: their text)
reading     an event -> what it tells (facets, fields, properties, jobs, measures: its parts)
folding     what events tell, in any order -> what they tell together
proposing   what is told together -> change proposals (patching: as JSON patches)
converting  events -> change proposals; the pure part in one class

Nothing here needs a package of DataHub.
"""

from __future__ import annotations

from headwater.deliver.datahub.converting import Converter, Refused
from headwater.deliver.datahub.options import JAVA, Fixes, Options, make
from headwater.deliver.datahub.proposing import Proposal

__all__ = ["JAVA", "Converter", "Fixes", "Options", "Proposal", "Refused", "make"]
