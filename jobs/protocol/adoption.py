"""Reads from a table's timeline which bucket index a job has given to the table. Usually the registration has the
index, too."""

from __future__ import annotations

from jobs.contract import BucketIndex
from jobs.format.adopted_index import ADOPTED_KEY, of_metadata
from jobs.hudi.table import HudiTable


def latest(table: HudiTable) -> tuple[BucketIndex, str] | None:
    """Returns the adopted index and the instant of its adoption; None if the active timeline has none, or if the table
    has given the index up since."""
    marks = [commit for commit in table.commits() if ADOPTED_KEY in commit.extra]
    index = of_metadata(marks[-1].extra) if marks else None
    return (index, marks[-1].write.instant) if index else None
