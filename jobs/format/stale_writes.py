"""Finds stale writes: commits to file groups that had been replaced before, so that no reader sees their rows.

Hudi (1.2) compares a write with the instants that completed *while* it was in flight. A write that starts after a
replacement and uses the file ids that it read before it (a prepared `UPDATE` or `DELETE` of Spark SQL, a Flink task)
conflicts with nothing and commits, and its rows are in file groups that readers ignore. The file ids prove this,
however late the write comes. On a copy-on-write table Hudi finds no base file, treats the rows as inserts, and creates
a file group whose id has one more number (`HoodieWriteHandle`, 1.2): readers see it beside the replacing file group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

Group = tuple[str, str]
"""Partition path and file id."""

# `WriteOperationType`s that add no rows of a writer: they rewrite rows that are in the table already.
SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE", "INDEX"})

RESCALE = "BUCKET_RESCALE"
"""The `WriteOperationType` of a change of the number of buckets: of Hudi's own, and of ours by earlier versions."""

RESCALED_KEY = "groundskeeper.rescaled"
"""Key in the extra metadata of a change of the number of buckets by us. Its `WriteOperationType` is CLUSTER: Hudi
before 1.1 does not know BUCKET_RESCALE and can no longer read a table with such a commit."""

REPAIRED_KEY = "groundskeeper.repaired"
"""Key in the extra metadata of a commit: the instants, separated by commas, whose rows it repaired."""

KNOWN_KEY = "groundskeeper.known"
"""Key in the extra metadata of a replacement of ours: the instants that were completed when it decided to commit. An
instant that completed between that decision and the commit did so while the worker had lost the lock."""


@dataclass(frozen=True)
class CompletedWrite:
    """A completed instant of the timeline.

    `written` are the file groups that it wrote to, `replaced` those that it replaced. `repaired` are the instants of
    stale writes whose rows it repaired. `known` are the instants whose rows it carried over to the new file groups;
    None if it does not record them, and then these are all instants that completed before it.
    """

    instant: str
    operation: str | None = None
    written: frozenset[Group] = frozenset()
    replaced: frozenset[Group] = frozenset()
    repaired: tuple[str, ...] = ()
    known: frozenset[str] | None = None

    @property
    def brings_rows(self) -> bool:
        return self.operation not in SERVICES


def operation_of(operation: str | None, extra: Mapping[str, str]) -> str | None:
    """Returns the operation of a commit by its `WriteOperationType` and its extra metadata."""
    return RESCALE if RESCALED_KEY in extra else operation


@dataclass(frozen=True)
class StaleWrite:
    """`groups` are its file groups that had been replaced, or that Hudi created in place of such a group; each with the
    instant that had replaced it."""

    instant: str
    operation: str | None
    groups: Mapping[Group, str] = field(default_factory=dict)


def stale_writes(
    completed: Iterable[CompletedWrite], replaced_before: Mapping[Group, str] | None = None
) -> list[StaleWrite]:
    """Returns the stale writes that no later commit repaired. `completed` must be in the order of completion.

    `replaced_before` maps file groups that were replaced before the first of them to the instants that replaced them.
    """
    gone = dict(replaced_before or {})
    found: dict[str, StaleWrite] = {}
    earlier: list[CompletedWrite] = []
    for write in completed:
        if write.known is not None:
            replaced = dict.fromkeys(write.replaced, write.instant)
            for other in earlier:
                if other.instant not in write.known:
                    _note(found, other, _hits(other.written, replaced))
        if write.brings_rows:
            _note(found, write, _hits(write.written, gone))
            earlier.append(write)
        for instant in write.repaired:
            found.pop(instant, None)
        gone.update(dict.fromkeys(write.replaced, write.instant))
    return list(found.values())


def _note(found: dict[str, StaleWrite], write: CompletedWrite, hit: Mapping[Group, str]) -> None:
    if hit:
        before = found[write.instant].groups if write.instant in found else {}
        found[write.instant] = StaleWrite(write.instant, write.operation, {**before, **hit})


def _hits(written: Iterable[Group], gone: Mapping[Group, str]) -> dict[Group, str]:
    found: dict[Group, str] = {}
    for partition, file_id in written:
        for group in ((partition, file_id), (partition, file_id.rpartition("-")[0])):
            if group in gone:
                found[(partition, file_id)] = gone[group]
                break
    return found


def hits(written: Iterable[Group], replaced: Collection[Group]) -> set[Group]:
    """Returns the written file groups that were replaced, or that were created in place of such a group."""
    return set(_hits(written, dict.fromkeys(replaced, "replaced")))


def known_of(extra_metadata: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the instants that a replacement of ours knew; None for any other commit."""
    known = extra_metadata.get(KNOWN_KEY)
    return None if known is None else frozenset(filter(None, known.split(",")))


def repaired_of(extra_metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the instants that a commit has repaired by its own record."""
    return tuple(filter(None, (extra_metadata.get(REPAIRED_KEY) or "").split(",")))
