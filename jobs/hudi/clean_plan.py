"""A plan of a clean that is not on the timeline yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from jobs.format.plan_files import File
from jobs.hudi.records import CLEAN, Instant


@dataclass(frozen=True)
class CleanPlan:
    """`files` maps partition paths to the absolute paths of the files to delete. `partitions` are dropped partitions
    without any other file, whose folders Hudi deletes with everything in them. `record` is Hudi's `HoodieCleanerPlan`.

    `bytes` is the size of the files, and `latest` are those of them that belong to latest file slices. `made_after` are
    the savepoints, restores, rollbacks and cleans on the timeline when the plan was made. `is_last` is false if other
    files are left for a next part. `parts` is the Java object that plans the next part, beginning with partition number
    `reached` of `looked_at`.
    """

    files: dict[str, list[str]]
    partitions: tuple[str, ...]
    bytes: int = 0
    latest: frozenset[File] = frozenset()
    record: Any = None
    made_after: frozenset[Instant] = frozenset()
    is_last: bool = True
    parts: Any = None
    reached: int = 0
    looked_at: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the clean deletes nothing. Such a clean is executed, too, so that the next clean need not look at the
        same files again."""
        return not self.files and not self.partitions

    @property
    def number_of_files(self) -> int:
        return sum(len(paths) for paths in self.files.values())

    def executed_as(self, instant: str) -> CleanPlan:
        """Returns this plan as the predecessor of the next one, after the clean `instant` has executed it."""
        return replace(self, made_after=self.made_after | {Instant(instant, CLEAN, "COMPLETED")})
