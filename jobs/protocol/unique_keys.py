"""Refuses to rewrite rows with duplicate keys if the table has a record index, which has one location for each key.
Hudi writes the new locations into blocks that accept no key twice (`HoodieHFileDataBlock`, 1.2.0): the commit fails
after all rows were written, and a plan that stays on the timeline blocks writers."""

from __future__ import annotations

from collections.abc import Collection

from jobs.contract import Problem
from jobs.errors import refuse
from jobs.format.index_definitions import RECORDS, Indexes
from jobs.hudi import indexes, rows
from jobs.hudi.table import HudiTable
from jobs.problems.plans import KEYS_NOT_UNIQUE

_NAMED = 5


def refusals(
    table: HudiTable, partitions: Collection[str] | None = None, *, had: Indexes | None = None
) -> list[Problem]:
    """Returns the refusal if these partitions have duplicate keys. Reads the keys only if the table has a record index,
    or if `had`, the indexes before the job, has one. Without `partitions` it reads all partitions that the storage
    lists, without the metadata table."""
    found_in = [each for each in (indexes.indexes_of(table), had) if each and RECORDS in each.partitions]
    if not found_in:
        return []
    by_partition = found_in[0].has_records_by_partition
    found = rows.keys_there_twice(table, partitions, by_partition=by_partition, most=_NAMED)
    if not found:
        return []
    named = (f"'{key}' in {' and '.join(repr(path) for path in paths)}" for key, paths in found.items())
    return [KEYS_NOT_UNIQUE.because(f"{', '.join(named)}{' and more' if len(found) == _NAMED else ''}")]


def require(table: HudiTable, partitions: Collection[str]) -> None:
    """Raises RefusedError if these partitions have duplicate keys."""
    refuse(refusals(table, partitions))
