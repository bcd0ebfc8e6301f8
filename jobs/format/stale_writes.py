"""Finds stale writes: commits to file groups that had been replaced before, so that no reader sees their rows.

Hudi (1.2) compares a write with the instants that completed *while* it was in flight. A write may start after a
replacement but use file ids that its writer has read before (a prepared `UPDATE` or `DELETE` of Spark SQL, a Flink
task). It conflicts with nothing and commits, and its rows are in file groups that readers ignore. The file ids prove
this, however late the write is. On a copy-on-write table Hudi finds no base file, treats the rows as inserts, and
creates a file group whose id has one more number (`HoodieWriteHandle`, 1.2): readers see it beside the replacing file
group.

The order of write and replacement is proved by the instants that our replacement has recorded under the table's lock
(`KNOWN_KEY`). Times are weaker evidence: a clock may be wrong, and before table version 8 a copy of the table has new
completion times (`jobs.format.completion_order`). Each stale write has the reason why it is not proved, if there is one
(`Doubt`). Only a person may have an unproved one repaired, because an owner's overwrite removes rows on purpose.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from jobs.format import kafka_connect

Group = tuple[str, str]
"""Partition path and file id."""
By = TypeVar("By")

# `WriteOperationType`s that only rewrite rows that are in the table already.
SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE", "INDEX"})

RESCALE = "BUCKET_RESCALE"
"""The `WriteOperationType` of a change of the number of buckets by Hudi itself, or by earlier versions of this
service."""

RESCALED_KEY = "groundskeeper.rescaled"
"""Key in the extra metadata of our changes of the number of buckets. The `WriteOperationType` of these commits is
CLUSTER, because Hudi before 1.1 cannot read a table with a commit of the type BUCKET_RESCALE."""

REPAIRED_KEY = "groundskeeper.repaired"
"""Key in the extra metadata of a commit: the instants, separated by commas, whose rows it repaired."""

REPAIRS_KEY = "groundskeeper.repairs"
"""Key in the extra metadata of a repair's other commits: the instants whose rows or deletes it wrote, or whose rows a
replacement left out, because they are written elsewhere."""

KNOWN_KEY = "groundskeeper.known"
"""Key in the extra metadata of our replacements: the instants that had completed when the job decided to commit.
Another instant can complete between that decision and the commit only if the worker has lost the lock."""


@dataclass(frozen=True)
class CompletedWrite:
    """A completed instant of the timeline."""

    instant: str
    operation: str | None = None
    written: frozenset[Group] = frozenset()  # The file groups that it wrote to.
    replaced: frozenset[Group] = frozenset()  # The file groups that it replaced.
    repaired: tuple[str, ...] = ()  # The instants of stale writes whose rows it repaired.
    # The instants whose rows it copied to the new file groups. None means all instants that completed before it.
    known: frozenset[str] | None = None
    completed: str = ""  # The completion time in its file's name; "" before table version 8.
    # If False, it completed before all ordered writes, and its instant gives its place among the unordered ones.
    is_ordered: bool = True
    is_archived: bool = False

    @property
    def brings_rows(self) -> bool:
        return self.operation not in SERVICES

    @property
    def hidden_by_itself(self) -> frozenset[Group]:
        """The file groups to which it wrote rows, and which it replaced as well."""
        return self.written & self.replaced if self.brings_rows else frozenset()


def operation_of(operation: str | None, extra: Mapping[str, str]) -> str | None:
    """Returns the operation of a commit by its `WriteOperationType` and its extra metadata."""
    if RESCALED_KEY in extra:
        return RESCALE
    return kafka_connect.OPERATION if kafka_connect.made(operation, extra) else operation


class Doubt(StrEnum):
    """Reasons why the replacement may have copied a commit's rows, or removed them on purpose. `OVERWRITTEN`: a
    writer's overwrite or deletion of partitions replaced the file groups, or the replacing operation is unknown.
    `ORDER`: no time shows that the write began after the replacement had completed. `CLOCKS`: the times show that, but
    come from clocks that disagree. `ITSELF`: the commit is an overwrite that has replaced the file groups to which it
    wrote. An overwrite by Flink with non-blocking concurrency control does so, because Hudi 1.2.0 gives its file groups
    the ids of the old ones. A rollback undoes such an overwrite; a repair could not tell its rows from the removed
    ones."""

    ITSELF = "itself"
    OVERWRITTEN = "overwritten"
    ORDER = "order"
    CLOCKS = "clocks"


@dataclass(frozen=True)
class StaleWrite:
    instant: str
    operation: str | None
    # The replaced file groups, or those that Hudi created instead, each with the replacing instant.
    groups: Mapping[Group, str] = field(default_factory=dict)
    doubt: Doubt | None = field(default=None, compare=False)  # None if the stale write is proved.


def stale_writes(
    completed: Iterable[CompletedWrite],
    replaced_before: Mapping[Group, str] | None = None,
    *,
    replacing: Mapping[str, CompletedWrite] | None = None,
    misdated: Container[str] = (),
) -> list[StaleWrite]:
    """Returns the stale writes that no later commit repaired. `completed` must be in the order of completion.

    `replaced_before` maps file groups that were replaced before the first of these instants to the replacing instants;
    `replacing` are the replacing instants that can still be read. `misdated` are instants whose times cannot be
    compared with others.
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
                # The replacement has copied the rows of archived instants, too, but has recorded the instants of the
                # active timeline only.
                if not other.is_archived:
                    note(other, replaced)
        if write.brings_rows:
            note(write, gone)
            if write.hidden_by_itself:
                groups = dict.fromkeys(write.hidden_by_itself, write.instant)
                found[write.instant] = StaleWrite(write.instant, write.operation, groups, Doubt.ITSELF)
            earlier.append(write)
        for instant in write.repaired:
            found.pop(instant, None)
        gone.update(replaced)
    return list(found.values())


def _is_later(write: CompletedWrite, by: CompletedWrite) -> bool:
    """Returns whether a write to a replaced file group completed after its replacement, as far as this is known. If
    only the instants can be compared, an overwrite counts as the later one, because it may have taken long."""
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
    """Returns the written file groups that were replaced, or that Hudi created in place of replaced ones, with the
    replacing instants."""
    found: dict[Group, By] = {}
    for partition, file_id in written:
        for group in ((partition, file_id), (partition, file_id.rpartition("-")[0])):
            if group in gone:
                found[(partition, file_id)] = gone[group]
                break
    return found


def hits(written: Iterable[Group], replaced: Collection[Group]) -> set[Group]:
    """Returns the written file groups that were replaced, or that Hudi created in place of replaced ones."""
    return set(hits_by(written, dict.fromkeys(replaced)))


def known_of(extra_metadata: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the instants that one of our replacements knew; None for any other commit."""
    known = extra_metadata.get(KNOWN_KEY)
    return None if known is None else frozenset(filter(None, known.split(",")))


def dated(instant: str, extra_metadata: Mapping[str, str]) -> str:
    """Returns the instant as of which the rows and deletes of a commit count. If the commit is a repair's, this is the
    instant of the latest write that it repairs. No other write is between the writes that it repairs (`runs_of`)."""
    return max(filter(None, extra_metadata.get(REPAIRS_KEY, "").split(",")), default=instant)


def runs_of(instants: Iterable[str], others: Iterable[str]) -> list[tuple[str, ...]]:
    """Returns the instants in ascending order, grouped so that none of the others is between two of a group."""
    wanted = set(instants)
    found: list[tuple[str, ...]] = []
    goes_on = False
    for instant in sorted(wanted.union(others)):
        if instant in wanted:
            found = [*found[:-1], (*found[-1], instant)] if goes_on else [*found, (instant,)]
        goes_on = instant in wanted
    return found


def is_repair(extra_metadata: Mapping[str, str]) -> bool:
    return REPAIRS_KEY in extra_metadata or REPAIRED_KEY in extra_metadata


def repaired_of(extra_metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the instants that a commit has repaired, by its metadata."""
    return tuple(filter(None, (extra_metadata.get(REPAIRED_KEY) or "").split(",")))
