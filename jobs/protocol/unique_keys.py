"""Refuses to rewrite rows whose key is there twice, if a record index must name one place for each key.

Hudi writes the new places of a commit's keys into blocks that take no key twice (`HoodieHFileDataBlock`, 1.2.0): the
commit fails after all rows were written, and a plan on the timeline stays and blocks writers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.errors import refuse
from jobs.hudi import indexes, rows
from jobs.problems.plans import KEYS_NOT_UNIQUE

if TYPE_CHECKING:
    from collections.abc import Collection

    from jobs.contract import Problem
    from jobs.hudi.indexes import Indexes
    from jobs.hudi.table import HudiTable

_NAMED = 5


def refusals(
    table: HudiTable, partitions: Collection[str] | None = None, *, had: Indexes | None = None
) -> list[Problem]:
    """Returns the refusal if a key is there twice in these partitions. Reads their keys if there is a record index, or
    was among those that the table `had`.

    Without `partitions`, those of all that the storage lists, whatever the metadata table says.
    """
    found_in = [each for each in (indexes.indexes_of(table), had) if each and indexes.RECORDS in each.partitions]
    if not found_in:
        return []
    by_partition = found_in[0].has_records_by_partition
    found = rows.keys_there_twice(table, partitions, by_partition=by_partition, most=_NAMED)
    if not found:
        return []
    named = (f"'{key}' in {' and '.join(repr(path) for path in paths)}" for key, paths in found.items())
    return [KEYS_NOT_UNIQUE.because(f"{', '.join(named)}{' and more' if len(found) == _NAMED else ''}")]


def require(table: HudiTable, partitions: Collection[str]) -> None:
    """Raises RefusedError for keys that are there twice in these partitions."""
    refuse(refusals(table, partitions))
