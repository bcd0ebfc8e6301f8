"""Chooses who merges the slices with logs that a job rewrites, Arrow or Hudi's readers, and says why it was Hudi."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.dataplane.arrow_merge_job import Merging
from jobs.errors import EngineRefusedError
from jobs.job_params import CompactionEngine
from jobs.protocol import arrow_merge
from jobs.services.compaction_engines import asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jobs.contract import Problem, WorkOrder
    from jobs.format.written_file import WrittenFile
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable

_MOST_REASONS = 5


class RewriteEngines:
    """Merges the slices of one job as its parameter `engine` says."""

    def __init__(self, table: HudiTable, order: WorkOrder) -> None:
        self._table = table
        self._asked = asked(order)
        self._merging = Merging()
        self._of_table: list[Problem] | None = None

    def rewrite(
        self, slices: Sequence[FileSlice], rewrite: Callable[[Merging], list[WrittenFile]]
    ) -> list[WrittenFile]:
        """Calls `rewrite` for some slices. Raises EngineRefusedError if Arrow was asked for and may not merge them."""
        if self._asked is not CompactionEngine.HUDI and any(item.log_files for item in slices):
            if self._of_table is None:
                self._of_table = arrow_merge.reasons_against(self._table)
                self._merging.reasons += self._of_table
            self._refuse_if_asked()
            # Instants have completed since the last round.
            self._merging.rules = None if self._of_table else arrow_merge.rules_of(self._table)
        written = rewrite(self._merging)
        self._refuse_if_asked()
        return written

    def details(self) -> dict[str, Any]:
        """Returns what the job's result says: the slices with logs by who merged them, and why some were Hudi's."""
        reasons = dict.fromkeys(self._merging.reasons)
        merged = {
            "arrow": self._merging.by_arrow,
            "hudi": self._merging.by_hudi,
            "reasons": [each.to_json() for each in reasons][:_MOST_REASONS],
        }
        return {"merged": merged}

    def _refuse_if_asked(self) -> None:
        if self._merging.reasons and self._asked is CompactionEngine.ARROW:
            raise EngineRefusedError(self._merging.reasons[:_MOST_REASONS])
