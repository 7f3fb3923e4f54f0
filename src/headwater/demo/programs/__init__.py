"""demo.programs: the programs of the demo, as a user of Headwater would write them -> processes that the demo runs.

load_shop      dlt: the shop's API and database -> files
build_revenue  PySpark: those files -> clean, joined and summed tables
check_revenue  a test of one of them -> an event that says how it went

Only the last one knows of Headwater, by `headwater.emit`: the others are captured by `headwater run -- python …`.
"""
