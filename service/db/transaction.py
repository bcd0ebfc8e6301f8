"""What the dialect of either database is told of a transaction before it begins."""

WRITES = "groundskeeper_writes"
"""A key of `Connection.info`: whether the next transaction of the connection writes."""
