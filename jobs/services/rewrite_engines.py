"""Chooses who merges the slices with logs that a job rewrites, Arrow or Hudi's readers, and says why it was Hudi."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from jobs.dataplane.arrow_merge_job import MOST_REASONS, Merging
from jobs.job_params import CompactionEngine
from jobs.kinds.results import ReplacementResult, SlicesMerged
from jobs.protocol import arrow_merge
from jobs.services import compaction_engines
from jobs.services.compaction_engines import asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jobs.contract import Problem, WorkOrder
    from jobs.format.written_file import WrittenFile
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable
    from jobs.kinds.words import ActiveWriterParams

Planned = TypeVar("Planned", bound=ReplacementResult)


class RewriteEngines:
    """Merges the slices of one job as its parameter `engine` says."""

    def __init__(self, table: HudiTable, order: WorkOrder[ActiveWriterParams]) -> None:
        self._table = table
        self._asked = asked(table, order)
        self._merging = Merging(only_arrow=self._asked is CompactionEngine.ARROW)
        self._has_failed = False

    def rewrite(
        self, slices: Sequence[FileSlice], rewrite: Callable[[Merging], list[WrittenFile]]
    ) -> list[WrittenFile]:
        """Calls `rewrite` for some slices. Raises EngineRefusedError if Arrow was asked for and may not merge them."""
        self._merging.rules = None
        if self._may_use_arrow and _has_logs(slices):
            # In each round: writers go on, and may have changed the schema or the way of merging.
            reasons = arrow_merge.reasons_against(self._table)
            self._merging.leave(compaction_engines.explained(self._table, reasons))
            self._merging.rules = None if reasons else arrow_merge.rules_of(self._table)
            had_rules = not reasons
            written = rewrite(self._merging)
            # Tasks that failed once are not tried again.
            self._has_failed = had_rules and self._merging.rules is None
            return written
        return rewrite(self._merging)

    @property
    def _may_use_arrow(self) -> bool:
        return self._asked is not CompactionEngine.HUDI and not self._has_failed

    @property
    def merged(self) -> SlicesMerged:
        """What the job's result says: the slices with logs by who merged them, and why some were Hudi's."""
        merging = self._merging
        reasons = tuple(merging.reasons)[:MOST_REASONS]
        return SlicesMerged(arrow=merging.by_arrow, hudi=merging.by_hudi, reasons=reasons)


def forecast(
    planned: Planned, table: HudiTable, order: WorkOrder[ActiveWriterParams], slices: Sequence[FileSlice]
) -> Planned:
    """Returns the result of a dry run with who would merge those of these slices that have logs, if there are any."""
    return compaction_engines.forecast(planned, table, order) if _has_logs(slices) else planned


def refusals(table: HudiTable, order: WorkOrder[ActiveWriterParams], slices: Sequence[FileSlice]) -> list[Problem]:
    """Returns the reasons against a job that asks for Arrow, whatever the logs of these slices hold."""
    return compaction_engines.refusals(table, order) if _has_logs(slices) else []


def _has_logs(slices: Sequence[FileSlice]) -> bool:
    return any(item.log_files for item in slices)
