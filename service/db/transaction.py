"""Names by which the dialects of both databases learn about a transaction."""

from __future__ import annotations

from typing import Any

WRITES = "groundskeeper_writes"
"""Whether the next transaction of the connection writes."""

ENDS: dict[str, Any] = {"groundskeeper_ends": True}
"""Options of the last statement of a transaction. PostgreSQL gets it together with the commit, so that the locks that
it takes do not last while this process is busy."""
