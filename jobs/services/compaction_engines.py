"""Chooses the engine for each compaction plan, Arrow or Hudi's own executor, and records why Hudi had to execute it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from jobs.contract import Problem, WorkOrder
from jobs.dataplane import partial_rows
from jobs.dataplane.compacted_file import CompactedFile
from jobs.dataplane.compaction_job import CODEC, compact_slices, compaction_of
from jobs.dataplane.merge_failures import failure, refuse_misread
from jobs.dataplane.slice_merge import SliceFiles
from jobs.errors import EngineRefusedError, HudiError, RefusedError
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.client import WriteClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.plans import plan_of
from jobs.hudi.table import HudiTable
from jobs.hudi.write_stats import WriteStat
from jobs.job_context import JobContext
from jobs.job_params import CompactionEngine
from jobs.kinds.compaction import CompactionParams, EngineOfPlan
from jobs.kinds.results import KindResult
from jobs.kinds.words import ActiveWriterParams
from jobs.protocol import arrow_merge, older_hudi

_MOST_REASONS = 5

Planned = TypeVar("Planned", bound=KindResult)


@dataclass
class Execution:
    """The execution of one plan. `slices` are empty if Hudi executes it, because of the `reasons`."""

    instant: str
    slices: list[SliceFiles] = field(default_factory=list)
    reasons: list[Problem] = field(default_factory=list)

    @property
    def engine(self) -> CompactionEngine:
        return CompactionEngine.ARROW if self.slices else CompactionEngine.HUDI


class Engines:
    """The executors of one job's plans: `engine` and `codec` of its parameters."""

    def __init__(self, table: HudiTable, order: WorkOrder[CompactionParams], context: JobContext) -> None:
        self._table, self._context = table, context
        self._asked = asked(table, order)
        self._codec = order.params.codec
        self._done: list[Execution] = []
        self._of_table: list[Problem] | None = None

    def prepare(self, instant: str) -> Execution:
        """Chooses the engine before the plan is begun. Raises EngineRefusedError if Arrow was requested and cannot
        execute it."""
        if self._asked is CompactionEngine.HUDI:
            return self._note(Execution(instant))
        if self._of_table is None:
            self._of_table = arrow_merge.reasons_against(self._table)
        plan = plan_of(self._table, instant)
        reasons = self._of_table or arrow_merge.reasons_against_plan(plan)
        if reasons:
            self._refuse_if_asked(reasons)
            return self._note(Execution(instant, reasons=reasons))
        return self._note(Execution(instant, arrow_merge.slices_of(plan)))

    def execute(self, client: WriteClient, begun: Any, execution: Execution) -> list[WriteStat]:
        """Writes the new base files of a begun plan. If one slice turns out to need Hudi's merge, Hudi's executor
        executes the whole plan, and removes the files that Arrow has written before it commits."""
        if not execution.slices:
            self._require_whole_rows(execution.instant)
            return client.execute_compaction(begun)
        try:
            # The completed instants are read at this moment, as by Hudi's executor.
            rules = arrow_merge.rules_of(self._table)
            written: list[CompactedFile] = []
            # A writer may have changed the schema since the plan was made, for example renamed a column.
            if not (reasons := arrow_merge.reasons_against(self._table)):
                work = compaction_of(self._table, storage_of(self._table), execution.instant, rules, self._codec)
                written, reasons = compact_slices(self._table, work, execution.slices, self._context)
        except (HudiError, RefusedError) as error:
            self._context.checkpoint()
            written, reasons = [], [failure(error.detail)]
        if reasons:
            refuse_misread(reasons)
            execution.slices, execution.reasons = [], reasons[:_MOST_REASONS]
            self._refuse_if_asked(execution.reasons)
            self._context.step(f"compacting {execution.instant} with Hudi's executor")
            return client.execute_compaction(begun)
        bases = {(each.partition_path, each.file_id): each.base for each in execution.slices}
        stats = [each.write_stat(bases[each.partition, each.file_id]) for each in written]
        return client.take_compacted(begun, stats)

    def _require_whole_rows(self, instant: str) -> None:
        """Raises RefusedError if Hudi would read beyond rows of which the logs have a part only."""
        if self._table.version < WITH_COMPLETION_TIMES:
            return
        try:
            storage = storage_of(self._table)
        except RefusedError:
            return
        partial_rows.require_whole(storage, arrow_merge.slices_of(plan_of(self._table, instant)))

    def of_plans(self) -> tuple[EngineOfPlan, ...]:
        """Returns the engine of each plan for the job's result, with the reasons if Hudi had to execute it."""
        return tuple(
            EngineOfPlan(instant=each.instant, engine=each.engine, reasons=tuple(each.reasons)) for each in self._done
        )

    def _note(self, execution: Execution) -> Execution:
        self._done.append(execution)
        return execution

    def _refuse_if_asked(self, reasons: list[Problem]) -> None:
        if reasons and self._asked is CompactionEngine.ARROW:
            raise EngineRefusedError(explained(self._table, reasons))


def asked(table: HudiTable, order: WorkOrder[CompactionParams | ActiveWriterParams]) -> CompactionEngine:
    """Returns the engine that the job's parameters name. The default becomes Arrow if older versions of Hudi merge the
    logs too, because only Arrow proves that both versions merge to the same rows."""
    engine = order.params.engine or CompactionEngine.AUTO
    needs_proof = engine is CompactionEngine.AUTO and older_hudi.merging_logs_otherwise(table)
    return CompactionEngine.ARROW if needs_proof else engine


def explained(table: HudiTable, reasons: list[Problem]) -> list[Problem]:
    """Returns the reasons against Arrow, preceded by the reason why Hudi may not merge instead."""
    older = older_hudi.merging_logs_otherwise(table)
    return [older_hudi.logs_not_in_order(older), *reasons] if older and reasons else reasons


def options(order: WorkOrder[CompactionParams]) -> dict[str, str]:
    """Returns the client options that make Hudi's executor write files as the job's parameters say."""
    codec = order.params.codec
    return {CODEC: codec} if codec else {}


def forecast(planned: Planned, table: HudiTable, order: WorkOrder[CompactionParams | ActiveWriterParams]) -> Planned:
    """Returns the result of a dry run with the expected `engine`, and the reasons if that is Hudi's. The forecast may
    be wrong, because a reason for Hudi may be in the log files."""
    reasons = [] if asked(table, order) is CompactionEngine.HUDI else arrow_merge.reasons_against(table)
    is_hudis = bool(reasons) or asked(table, order) is CompactionEngine.HUDI
    engine = CompactionEngine.HUDI if is_hudis else CompactionEngine.ARROW
    return planned.having(engine=engine, engine_reasons=tuple(reasons))


def refusals(table: HudiTable, order: WorkOrder[CompactionParams | ActiveWriterParams]) -> list[Problem]:
    """Returns the refusals of a job that needs Arrow but cannot use it, or that requests Hudi although only Arrow is
    safe."""
    if asked(table, order) is CompactionEngine.ARROW:
        return explained(table, arrow_merge.reasons_against(table))
    older = older_hudi.merging_logs_otherwise(table)
    return [older_hudi.logs_not_in_order(older)] if older else []
