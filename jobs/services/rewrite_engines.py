"""Chooses who merges the slices with logs that a job rewrites, Arrow or Hudi's readers, and records why Hudi had to
merge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from jobs.contract import Problem, WorkOrder
from jobs.dataplane.arrow_merge_job import MOST_REASONS, Merging
from jobs.format.written_file import WrittenFile
from jobs.hudi.records import FileSlice, has_logs
from jobs.hudi.table import HudiTable
from jobs.job_params import CompactionEngine
from jobs.kinds.results import ReplacementResult, SlicesMerged
from jobs.kinds.words import ActiveWriterParams
from jobs.protocol import arrow_merge
from jobs.services import compaction_engines
from jobs.services.compaction_engines import asked

Planned = TypeVar("Planned", bound=ReplacementResult)


class RewriteEngines:
    """Merges the slices of one job according to its parameter `engine`."""

    def __init__(self, table: HudiTable, order: WorkOrder[ActiveWriterParams]) -> None:
        self._table = table
        self._asked = asked(table, order)
        self._merging = Merging(only_arrow=self._asked is CompactionEngine.ARROW)
        self._has_failed = False

    def rewrite(
        self, slices: Sequence[FileSlice], rewrite: Callable[[Merging], list[WrittenFile]]
    ) -> list[WrittenFile]:
        """Calls `rewrite` for some slices. Raises EngineRefusedError if Arrow was requested and cannot merge them."""
        self._merging.rules = None
        if self._may_use_arrow and has_logs(slices):
            # Each round checks this again, because writers may have changed the schema or the merge mode.
            reasons = arrow_merge.reasons_against(self._table)
            self._merging.leave(compaction_engines.explained(self._table, reasons))
            self._merging.rules = None if reasons else arrow_merge.rules_of(self._table)
            had_rules = not reasons
            written = rewrite(self._merging)
            # After a failure, Arrow is not used again.
            self._has_failed = had_rules and self._merging.rules is None
            return written
        return rewrite(self._merging)

    @property
    def _may_use_arrow(self) -> bool:
        return self._asked is not CompactionEngine.HUDI and not self._has_failed

    @property
    def merged(self) -> SlicesMerged:
        """The numbers of slices with logs that each engine merged, with the reasons for Hudi, for the job's result."""
        merging = self._merging
        reasons = tuple(merging.reasons)[:MOST_REASONS]
        return SlicesMerged(arrow=merging.by_arrow, hudi=merging.by_hudi, reasons=reasons)


def forecast(
    planned: Planned, table: HudiTable, order: WorkOrder[ActiveWriterParams], slices: Sequence[FileSlice]
) -> Planned:
    """Returns the result of a dry run with the expected engine for these slices, if any has logs."""
    return compaction_engines.forecast(planned, table, order) if has_logs(slices) else planned


def refusals(table: HudiTable, order: WorkOrder[ActiveWriterParams], slices: Sequence[FileSlice]) -> list[Problem]:
    """Returns the refusals of a job that requests Arrow, as far as they do not depend on the content of the logs."""
    return compaction_engines.refusals(table, order) if has_logs(slices) else []
