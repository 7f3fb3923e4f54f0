"""exchange: a store's raw log <-> files that other programs read, and other servers' events.

parquet   the raw log <-> one Parquet file, with columns to filter by
marquez   a Marquez server's event API -> its events
"""
