"""Hudi's versions, as owners declare them: `1.0.2`, `0.15.0-amzn-1`."""

from __future__ import annotations

import re

BUCKETS_BY_TABLE = 9
"""The first table version whose writers all follow hashing configs."""

WITH_HASHING_CONFIG = (1, 1)

OLDEST_FOR_TABLE = {6: (0, 14), 8: (1, 0), 9: (1, 1)}
"""The first Hudi that reads and writes each table version (`HoodieTableVersion`, 1.2.0). Later ones do so, too."""


def release(version: str) -> tuple[int, int]:
    """Returns the first two numbers of a version, such as (0, 15), which determine its features."""
    first, second = [*re.findall(r"\d+", version), "0", "0"][:2]
    return int(first), int(second)


def may_ignore_hashing_config(table_version: int, writers: str | None) -> bool:
    """Returns whether a table may have writers that use the number of buckets in their own options, as Hudi before 1.1
    does. `writers` is the declared version, None if nothing is declared."""
    return table_version < BUCKETS_BY_TABLE and (writers is None or release(writers) < WITH_HASHING_CONFIG)
