"""capture.dlt: what a dlt pipeline's trace tells -> OpenLineage events, down to the column.

leaves       items -> their shapes and paths
extracted    files of a load package -> those shapes, names of columns, or a query
normalised   shapes and dlt's schema -> the columns their fields became, by dlt's own normaliser
models       SQL of a resource -> tables and columns that it reads
places       where dlt reads and loads -> datasets
plain        dlt's values -> JSON without a secret
loads        a load package and its destination -> plain data
recording    dlt's own objects -> records, plain data: the probe
packages     what is known of a load package -> kept beside it until it is loaded, by whichever process
facets       records -> facets
events       a record and what came before -> events; pure
"""

from headwater.capture.dlt.events import State, interpret

__all__ = ["State", "interpret"]
