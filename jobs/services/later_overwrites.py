"""Finds the overwrites and deletions of partitions that came after a stale write. Their owner wanted to remove all rows
of the partition. But the rows of the stale write were in file groups out of use, which an overwrite does not replace.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.meta_columns import COMMIT_TIME, PARTITION_PATH
from jobs.format.stale_writes import Doubt
from jobs.hudi.records import OVERWRITES
from jobs.problems.undoing import OVERWRITE_HIDES_ITSELF

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pyspark.sql import DataFrame

    from jobs.contract import Problem
    from jobs.format.stale_writes import StaleWrite
    from jobs.hudi.records import Commit
    from jobs.hudi.stale_slices import DeletedKey

Place = tuple[str, str]
"""The instant of a write and a partition path."""


def hidden_by_themselves(chosen: Iterable[StaleWrite]) -> list[Problem]:
    """Returns the refusal to repair overwrites that replaced the file groups to which they wrote: all rows in these
    file groups count as removed, including the overwrite's own rows."""
    found = [each.instant for each in chosen if each.doubt is Doubt.ITSELF]
    return [OVERWRITE_HIDES_ITSELF.because(", ".join(found[:5]))] if found else []


def since(commits: Sequence[Commit], instants: Collection[str]) -> dict[Place, str]:
    """Returns the partitions of these writes that were overwritten later, each with the overwrite's instant. `commits`
    must be in the order of completion. An overwrite that began before the write had completed is left out: as in
    Hudi, the rows of a write in flight stay."""
    found: dict[Place, str] = {}
    completed: dict[str, tuple[str, set[str]]] = {}
    for commit in commits:
        write = commit.write
        if write.operation in OVERWRITES:
            for instant, (end, written) in completed.items():
                if max(instant, end) < write.instant:
                    found.update({(instant, path): write.instant for path in overwritten_by(commit, written)})
        if write.instant in instants:
            completed[write.instant] = commit.completed, {path for path, _ in write.written}
    return found


def overwritten_by(commit: Commit, among: Collection[str]) -> set[str]:
    """Returns the partitions that an overwrite or a deletion has emptied. An overwrite of the whole table has also
    emptied the partitions `among`: it does not name a partition whose file groups were all out of use before."""
    write = commit.write
    if write.operation == "INSERT_OVERWRITE_TABLE":
        return {*among, *commit.emptied, *(path for path, _ in write.replaced)}
    filled = write.written if write.operation == "INSERT_OVERWRITE" else ()
    return {*commit.emptied, *(path for path, _ in (*write.replaced, *filled))}


def left(
    strays: DataFrame, deletes: Sequence[DeletedKey], commits: Sequence[Commit], instants: Collection[str]
) -> tuple[DataFrame, list[DeletedKey]]:
    """Returns the rows and deletes of these stale writes without those that an overwrite has removed since."""
    places = since(commits, instants)
    if places:
        removed = [(F.col(COMMIT_TIME) == instant) & (F.col(PARTITION_PATH) == path) for instant, path in places]
        strays = strays.where(~reduce(or_, removed)).cache()
    return strays, [item for item in deletes if (item.instant, item.partition) not in places]
