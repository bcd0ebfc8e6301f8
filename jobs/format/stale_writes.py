"""Finds stale writes: commits to file groups that had been replaced before, so that no reader sees their rows.

Hudi (1.2) compares a write with the instants that completed *while* it was in flight. A write that starts after a
replacement and uses the file ids that it read before it (a prepared `UPDATE` or `DELETE` of Spark SQL, a Flink task)
conflicts with nothing and commits, and its rows are in file groups that readers ignore. The file ids prove this,
however late the write comes. On a copy-on-write table Hudi finds no base file, treats the rows as inserts, and creates
a file group whose id has one more number (`HoodieWriteHandle`, 1.2): readers see it beside the replacing file group.

Which of the two came first is proved by what a replacement of ours has recorded under the table's lock (`KNOWN_KEY`).
Times are weaker: a clock may be wrong, and before table version 8 a copy of the table renews those of completion
(`jobs.format.completion_order`). Each stale write says what speaks against its proof (`Doubt`); without proof only a
person may have it repaired, since an owner's overwrite removes rows on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Mapping

Group = tuple[str, str]
"""Partition path and file id."""
By = TypeVar("By")

# `WriteOperationType`s that add no rows of a writer: they rewrite rows that are in the table already.
SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE", "INDEX"})

RESCALE = "BUCKET_RESCALE"
"""The `WriteOperationType` of a change of the number of buckets: of Hudi's own, and of ours by earlier versions."""

RESCALED_KEY = "groundskeeper.rescaled"
"""Key in the extra metadata of our changes of the number of buckets. The `WriteOperationType` of such a commit is
CLUSTER, since Hudi before 1.1 can no longer read a table with a commit of the type BUCKET_RESCALE."""

REPAIRED_KEY = "groundskeeper.repaired"
"""Key in the extra metadata of a commit: the instants, separated by commas, whose rows it repaired."""

REPAIRS_KEY = "groundskeeper.repairs"
"""Key in the extra metadata of a replacement that leaves rows out, since a repair writes them elsewhere: the instants
that are repaired."""

KNOWN_KEY = "groundskeeper.known"
"""Key in the extra metadata of a replacement of ours: the instants that were completed when it decided to commit. An
instant that completed between that decision and the commit did so while the worker had lost the lock."""


@dataclass(frozen=True)
class CompletedWrite:
    """A completed instant of the timeline."""

    instant: str
    operation: str | None = None
    written: frozenset[Group] = frozenset()  # The file groups that it wrote to.
    replaced: frozenset[Group] = frozenset()  # The file groups that it replaced.
    repaired: tuple[str, ...] = ()  # The instants of stale writes whose rows it repaired.
    # The instants whose rows it carried over to the new file groups; None if it does not record them, and then these
    # are all instants that completed before it.
    known: frozenset[str] | None = None
    completed: str = ""  # The completion time in its file's name; "" before table version 8.
    # Otherwise it completed before all that are ordered, and only its instant gives its place among the others.
    is_ordered: bool = True

    @property
    def brings_rows(self) -> bool:
        return self.operation not in SERVICES


def operation_of(operation: str | None, extra: Mapping[str, str]) -> str | None:
    """Returns the operation of a commit by its `WriteOperationType` and its extra metadata."""
    return RESCALE if RESCALED_KEY in extra else operation


class Doubt(StrEnum):
    """Reasons why the replacement may have carried a commit's rows over, or removed them on purpose.

    `OVERWRITTEN`: a writer's overwrite or deletion of partitions replaced them, or nobody knows any more what did.
    `ORDER`: no time says that the write began after the replacement had completed. `CLOCKS`: the names say so, but the
    clocks that they come from did not agree."""

    OVERWRITTEN = "overwritten"
    ORDER = "order"
    CLOCKS = "clocks"


@dataclass(frozen=True)
class StaleWrite:
    """A write to replaced file groups."""

    instant: str
    operation: str | None
    # The file groups that had been replaced, or that Hudi created in place of such, each with the replacing instant.
    groups: Mapping[Group, str] = field(default_factory=dict)
    doubt: Doubt | None = field(default=None, compare=False)  # Without one the stale write is proved.


def stale_writes(
    completed: Iterable[CompletedWrite],
    replaced_before: Mapping[Group, str] | None = None,
    *,
    replacing: Mapping[str, CompletedWrite] | None = None,
    misdated: Container[str] = (),
) -> list[StaleWrite]:
    """Returns the stale writes that no later commit repaired. `completed` must be in the order of completion.

    `replaced_before` maps file groups that were replaced before the first of them to the instants that replaced them;
    `replacing` are those of these instants that can still be read. `misdated` are instants with times that are known
    not to fit those of others.
    """
    by_instant = replacing or {}
    gone = {group: by_instant.get(by) or CompletedWrite(by) for group, by in (replaced_before or {}).items()}
    found: dict[str, StaleWrite] = {}
    earlier: list[CompletedWrite] = []

    def note(write: CompletedWrite, replaced: Mapping[Group, CompletedWrite]) -> None:
        for group, by in hits_by(write.written, replaced).items():
            if _is_later(write, by):
                known = found.setdefault(write.instant, StaleWrite(write.instant, write.operation))
                doubt = known.doubt or _doubt(write, by, misdated)
                found[write.instant] = replace(known, groups={**known.groups, group: by.instant}, doubt=doubt)

    for write in completed:
        replaced = dict.fromkeys(write.replaced, write)
        if write.known is not None:
            for other in earlier:
                note(other, replaced)
        if write.brings_rows:
            note(write, gone)
            earlier.append(write)
        for instant in write.repaired:
            found.pop(instant, None)
        gone.update(replaced)
    return list(found.values())


def _is_later(write: CompletedWrite, by: CompletedWrite) -> bool:
    """Returns whether a write to a replaced file group completed after its replacement, as far as it can be told.

    Where only the instants order the two, an overwrite counts as the later one: it may have taken long.
    """
    if by.known is not None:
        return write.instant not in by.known
    return write.is_ordered or by.operation in SERVICES


def _doubt(write: CompletedWrite, by: CompletedWrite, misdated: Container[str]) -> Doubt | None:
    if by.known is not None:
        return None
    if by.operation not in SERVICES:
        return Doubt.OVERWRITTEN
    if write.instant <= by.completed if by.completed else not write.is_ordered:
        return Doubt.ORDER
    return Doubt.CLOCKS if write.instant in misdated or by.instant in misdated else None


def hits_by(written: Iterable[Group], gone: Mapping[Group, By]) -> dict[Group, By]:
    """Returns the written file groups that were replaced, or created in place of such a group, with what replaced
    them."""
    found: dict[Group, By] = {}
    for partition, file_id in written:
        for group in ((partition, file_id), (partition, file_id.rpartition("-")[0])):
            if group in gone:
                found[(partition, file_id)] = gone[group]
                break
    return found


def hits(written: Iterable[Group], replaced: Collection[Group]) -> set[Group]:
    """Returns the written file groups that were replaced, or that were created in place of such a group."""
    return set(hits_by(written, dict.fromkeys(replaced)))


def known_of(extra_metadata: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the instants that a replacement of ours knew; None for any other commit."""
    known = extra_metadata.get(KNOWN_KEY)
    return None if known is None else frozenset(filter(None, known.split(",")))


def repaired_of(extra_metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the instants that a commit has repaired by its own record."""
    return tuple(filter(None, (extra_metadata.get(REPAIRED_KEY) or "").split(",")))
