"""demo: dlt and Spark at work on a small shop -> their lineage in a store, and what it tells of a number that is wrong.

shop      an HTTP API of nested JSON and a SQLite database
means     what of dlt, Spark and Java is here
place     a folder, an environment and processes of the demo's own
served    a server inside this process, where events go
programs  what is run: as a user would write it
tale      a store -> the way of the column that is wrong, who is to blame, what it breaks
acts      the order in which it happens

Every event goes the way that a user's would: the captured process writes it to a spool, a drainer sends it to the server.
"""

from __future__ import annotations

from headwater.demo.acts import NAMES, play
from headwater.demo.means import Means, look
from headwater.demo.tale import Hop, Tale

__all__ = ["NAMES", "Hop", "Means", "Tale", "look", "play"]
