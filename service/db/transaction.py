"""Keys of `Connection.info`, by which the dialects of both databases learn about a transaction before it begins."""

WRITES = "groundskeeper_writes"
"""Whether the next transaction of the connection writes."""
