"""Which commits wrote to file groups that had been replaced before, so that no reader sees their rows.

Hudi (1.2) compares a write with what completed *while* it was in flight. One that starts after a replacement and keeps
to the file ids that it read before it - a prepared `UPDATE` or `DELETE` of Spark SQL, a Flink task - conflicts with
nothing, commits, and its rows are in file groups that nobody reads any more. The file ids tell it for sure, however
late it comes. Of copy-on-write, Hudi takes the rows for inserts, since it finds no base file, and makes a file group
with one more number at its id (`HoodieWriteHandle`, 1.2): readers see it, beside the one that took the place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

Group = tuple[str, str]
"""Partition path and file id."""

# `WriteOperationType`s that bring no rows of a writer: what they rewrite is there already.
SERVICES = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE", "INDEX"})

REPAIRED_KEY = "groundskeeper.repaired"
"""In the extra metadata of a commit: the instants, with commas between, whose rows it brought over."""


KNOWN_KEY = "groundskeeper.known"
"""In the extra metadata of a replacement of ours: the instants that were completed when it was decided to commit. What
completed after that, and before it, slipped in while its worker stood still without the lock."""


@dataclass(frozen=True)
class CompletedWrite:
    """A completed instant of the timeline, as far as it matters here.

    `written` are the file groups that it wrote files of, `replaced` those that it took out of use. `repaired` are the
    instants of stale writes whose rows it brought over. `known` are the instants whose rows are in what it wrote in the
    place of the replaced ones; None if it does not tell, and then all that completed before it are.
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


@dataclass(frozen=True)
class StaleWrite:
    """`groups` are those of its file groups that had been replaced, or were made in the place of replaced ones; each
    with the instant that had replaced it."""

    instant: str
    operation: str | None
    groups: Mapping[Group, str] = field(default_factory=dict)


def stale_writes(
    completed: Iterable[CompletedWrite], replaced_before: Mapping[Group, str] | None = None
) -> list[StaleWrite]:
    """Those that are stale and that no later commit repaired, in the order given, which must be that of completion.

    `replaced_before` are file groups that were replaced before the first of them, by whom.
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
    """Those of the written file groups that were replaced, or were made in the place of such ones."""
    return set(_hits(written, dict.fromkeys(replaced, "replaced")))


def known_of(extra_metadata: Mapping[str, str]) -> frozenset[str] | None:
    """The instants that a replacement of ours knew; None of any other commit."""
    told = extra_metadata.get(KNOWN_KEY)
    return None if told is None else frozenset(filter(None, told.split(",")))


def repaired_of(extra_metadata: Mapping[str, str]) -> tuple[str, ...]:
    """The instants that a commit says it repaired."""
    return tuple(filter(None, (extra_metadata.get(REPAIRED_KEY) or "").split(",")))
