"""Options that tell the dialects of both databases about a transaction."""

from __future__ import annotations

WRITES = "groundskeeper_writes"
"""Whether the next transaction of the connection writes."""

ENDS = "groundskeeper_ends"
"""Option of a statement: whether it is the last one of its transaction. PostgreSQL then gets it together with the
commit, so that the locks that it takes do not last while this process is busy."""
