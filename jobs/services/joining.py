"""Joins the small files of clustering groups by copying their row groups, as far as this is proved to be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.contract import Problem, WorkOrder
from jobs.dataplane.arrow_merge_job import MOST_REASONS, Merging, files_of
from jobs.dataplane.compaction_job import compaction_of
from jobs.dataplane.joined_files import JoinedFile
from jobs.dataplane.joining_job import in_files, join_files
from jobs.dataplane.merge_failures import failure
from jobs.errors import HudiError, RefusedError
from jobs.hudi.hadoop import storage_of
from jobs.hudi.records import FileSlice, has_logs
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.job_params import CompactionEngine
from jobs.kinds.clustering import ClusteringParams, ClusteringResult
from jobs.kinds.results import SlicesMerged
from jobs.protocol import arrow_merge
from jobs.services.compaction_engines import asked


class Joining:
    """The joins of one job, with the reasons why Hudi had to execute some of its clustering groups."""

    def __init__(self, table: HudiTable, order: WorkOrder[ClusteringParams], context: JobContext) -> None:
        self._table, self._context = table, context
        self._asked = asked(table, order)
        self._merging = Merging(only_arrow=self._asked is CompactionEngine.ARROW)

    def join(
        self, instant: str, groups: Mapping[int, Sequence[FileSlice]], outputs: Mapping[int, int]
    ) -> dict[int, list[JoinedFile]]:
        """Writes the new files of as many of these clustering groups as possible, with at most as many files as
        `outputs` says. Raises EngineRefusedError if the job demands Arrow and a group needs Hudi, and RefusedError."""
        joinable = dict(groups) if self._asked is not CompactionEngine.HUDI else {}
        if joinable and (reasons := arrow_merge.reasons_against_joining(self._table, with_logs=False)):
            self._merging.leave(reasons)
            joinable = {}
        with_logs = {number for number, slices in joinable.items() if has_logs(slices)}
        if with_logs and (reasons := arrow_merge.reasons_against_joining(self._table, with_logs=True)):
            self._merging.leave(reasons)
            joinable = {number: slices for number, slices in joinable.items() if number not in with_logs}
        joined = self._joined(instant, joinable, outputs) if joinable else {}
        for number, slices in groups.items():
            merged = sum(bool(item.log_files) for item in slices)
            self._merging.by_arrow += merged if number in joined else 0
            self._merging.by_hudi += 0 if number in joined else merged
        return joined

    @property
    def merged(self) -> SlicesMerged:
        merging = self._merging
        return SlicesMerged(arrow=merging.by_arrow, hudi=merging.by_hudi, reasons=tuple(merging.reasons[:MOST_REASONS]))

    def _joined(
        self, instant: str, groups: Mapping[int, Sequence[FileSlice]], outputs: Mapping[int, int]
    ) -> dict[int, list[JoinedFile]]:
        table = self._table
        try:
            rules = arrow_merge.rules_of(table)
            work = compaction_of(table, storage_of(table), instant, rules, None)
        except RefusedError as error:
            # Arrow cannot write files of the table's schema or of the owner's codec.
            self._merging.leave(error.reasons)
            return {}
        pieces = {
            number: in_files([files_of(item) for item in slices], outputs[number]) for number, slices in groups.items()
        }
        try:
            found, left = join_files(table, work, pieces, self._context)
        except HudiError as error:
            # A task has died. Files that the tasks wrote are in no commit, and have markers.
            self._context.checkpoint()
            found, left = {}, [failure(error.detail)]
        self._merging.leave(left)
        return found


def forecast(
    planned: ClusteringResult, table: HudiTable, order: WorkOrder[ClusteringParams], slices: Sequence[FileSlice]
) -> ClusteringResult:
    """Returns the result of a dry run with the expected engine for these slices."""
    is_hudis = asked(table, order) is CompactionEngine.HUDI
    reasons: list[Problem] = []
    if not is_hudis:
        reasons = arrow_merge.reasons_against_joining(table, with_logs=has_logs(slices))
    engine = CompactionEngine.HUDI if is_hudis or reasons else CompactionEngine.ARROW
    return planned.having(engine=engine, engine_reasons=tuple(reasons))
