"""Finds file groups without a bucket in a table with a bucket index: a writer with another index made them, as after
the adoption of the bucket index. Every write by the bucket index to their partition fails (`NumberFormatException` in
`BucketIdentifier.bucketIdFromFileId`, Hudi 1.2.0), so a repair first takes the file groups out of use, and then writes
their rows as those of stale writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.file_names import bucket_of
from jobs.format.meta_columns import COMMIT_TIME, FILE_NAME
from jobs.format.stale_writes import StaleWrite
from jobs.hudi import rows
from jobs.hudi.jvm import translated
from jobs.problems.bucket_indexes import ROWS_OF_UNKNOWN_COMMITS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from jobs.contract import Problem
    from jobs.hudi.records import Commit
    from jobs.hudi.table import HudiTable


def writes_to_them(table: HudiTable, commits: Sequence[Commit], named: Collection[str]) -> list[StaleWrite]:
    """Returns all writes to such file groups if one of the instants `named` wrote to one of them."""
    if table.bucket_rules() is None:
        return []
    repaired = {instant for commit in commits for instant in commit.write.repaired}
    without = {item.key for item in table.file_slices() if bucket_of(item.file_id) is None}
    found = [
        StaleWrite(commit.write.instant, commit.write.operation, dict.fromkeys(written, ""))
        for commit in commits
        if commit.write.brings_rows
        and commit.write.instant not in repaired
        and (written := commit.write.written & without)
    ]
    return found if any(write.instant in named for write in found) else []


def of_other_rows(table: HudiTable, writes: Sequence[StaleWrite]) -> list[Problem]:
    """Returns the refusal to take file groups out of use that hold rows of other instants, which would be lost."""
    ids = sorted({file_id for write in writes for _, file_id in write.groups})
    if not ids:
        return []
    with translated("looking for rows of other commits"):
        held = rows.current(table).where(F.substring_index(FILE_NAME, "_", 1).isin(ids))
        others = held.where(~F.col(COMMIT_TIME).isin([write.instant for write in writes]))
        found = {row[0]: int(row[1]) for row in others.groupBy(COMMIT_TIME).count().collect()}
    if not found:
        return []
    first = ", ".join(sorted(found)[:5])
    return [ROWS_OF_UNKNOWN_COMMITS.because(f"{sum(found.values())} rows of {first}")]
