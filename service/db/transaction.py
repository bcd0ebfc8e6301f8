"""Options that tell the dialects of both databases about a transaction."""

from __future__ import annotations

WRITES = "groundskeeper_writes"
"""Whether the next transaction of the connection writes."""

ENDS = "groundskeeper_ends"
"""Option of a statement: whether the statement is the last one of its transaction. PostgreSQL then gets the statement
together with the commit, so that its locks do not last while this process is busy."""
