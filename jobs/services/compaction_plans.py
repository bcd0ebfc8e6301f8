"""Executes compaction plans one by one, each with the proof that it lost no row."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from jobs.contract import Outcome, Result, WorkOrder
from jobs.errors import EngineRefusedError, LeaseLostError, RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.plans import plan_of
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.compaction import CompactionParams, CompactionResult, WithheldPlan
from jobs.protocol import own_instant
from jobs.protocol.plan_owner import PlanOwner
from jobs.protocol.unplanned_logs import UnplannedLogs, may_miss_logs
from jobs.protocol.writers import dead_writes
from jobs.services.compaction_engines import Engines, Execution
from jobs.services.key_proof import KeyProof

# How long to wait for a moment without writes; the lock is not held meanwhile.
QUIET_SECONDS = 30.0
_POLL_SECONDS = 0.1


class PlanRunner:
    """Executes the plans of one job under our own lock. If the worker died while Hudi's client held the lock, nobody
    could tell that lock from a writer's."""

    def __init__(self, table: HudiTable, order: WorkOrder[CompactionParams], context: JobContext) -> None:
        self._table = table
        self._context = context
        self._owner = PlanOwner(table, order.job_id, take_over=bool(order.params.take_over))
        self.lock = TableLock(table, order.job_id)
        self.proof = KeyProof()
        self.withheld: list[WithheldPlan] = []
        self._unplanned = UnplannedLogs(table, context) if may_miss_logs(table) else None
        self.engines = Engines(table, order, context)
        self._bytes_written = 0

    def executes(self, client: WriteClient, instant: str) -> bool:
        """Executes a plan, or withholds it if it would harm the table, so that its file groups stay unchanged. Returns
        whether the plan was executed."""
        try:
            self.run(client, instant)
        except EngineRefusedError:
            raise
        except RefusedError as error:
            self.withheld += [WithheldPlan(instant=instant, **asdict(reason)) for reason in error.reasons]
            return False
        return True

    def result(self, found: CompactionResult, executed: Sequence[str]) -> Result[CompactionResult]:
        """Returns the job's result with the facts about the plans."""
        found = found.having(
            engines=self.engines.of_plans(),
            bytes_written=self._bytes_written,
            withheld_plans=tuple(self.withheld),
            nothing_to_do=not executed and not self.withheld,
        )
        return Result(Outcome.SUCCEEDED, instants=tuple(executed), details=self.proof.result(found))

    def schedule(self, client: WriteClient) -> str | None:
        """Plans a compaction of all file groups that are due; returns None if none is. The lock must be held."""
        if scheduled := client.schedule_compaction():
            self._owner.planned(scheduled)
        return scheduled

    def run(self, client: WriteClient, instant: str) -> None:
        """Executes one plan. Raises PlanTakenError if the plan has another runner, and RowsDifferError before its
        commit if it would lose or invent rows. A plan that this job has made is removed from the timeline if it
        fails."""
        context = self._context
        if self._unplanned:
            self._unplanned.wait(client, instant)
            with self.lock.held(context.checkpoint):
                self._owner.check(instant)
                self._unplanned.add(instant)
        try:
            begun, execution = self._begin(client, instant)
        except RefusedError:
            if self._owner.has_made(instant):
                self._owner.undo(client, self.lock, context, instant)
            raise
        try:
            context.instant(instant)
            self._execute(client, instant, begun, execution)
        except LeaseLostError:
            # Another attempt is active and begins the plan anew.
            own_instant.remove_late(self._table, client, instant)
            raise
        except BaseException:
            self._owner.undo(client, self.lock, context, instant)
            raise

    def _begin(self, client: WriteClient, instant: str) -> tuple[Any, Execution]:
        execution = self.engines.prepare(instant)
        self._context.step(f"compacting {instant}")
        with self.lock.held(self._context.checkpoint):
            self._owner.check(instant)
            begun = client.begin_compaction(instant)
            self._owner.begun(instant)
        return begun, execution

    def _execute(self, client: WriteClient, instant: str, begun: Any, execution: Execution) -> None:
        with self._owner.working():
            stats = self.engines.execute(client, begun, execution)
        self._context.step(f"comparing the record keys of {instant}")
        self.proof.of_compaction(self._table, plan_of(self._table, instant), stats, self._context)

        def require() -> None:
            self.lock.verify()
            self._owner.require(client, instant)

        with self._held_between_writes(client, instant):
            if self._unplanned:
                self._unplanned.require_none(instant)
            client.commit_compaction(instant, begun, require)
            self._bytes_written += sum(stat.bytes for stat in stats)
            # The compaction itself is valid, since it changed no rows; but two clients may have written the metadata
            # table at the same time.
            self.lock.verify()

    @contextmanager
    def _held_between_writes(self, client: WriteClient, instant: str) -> Iterator[None]:
        """Holds the lock at a moment without a write in flight. After `QUIET_SECONDS` it takes any moment.

        Hudi 1.2 writes wrong partition statistics for a write during which a compaction ends: until the next commit in
        the partition, queries with a filter miss the rows that the write did not change.
        """
        table, context = self._table, self._context

        def is_quiet() -> bool:
            return {item.requested for item in table.pending_writes()} <= set(dead_writes(table, client))

        has_statistics = "partition_stats" in table.metadata_partitions
        deadline = time.monotonic() + (QUIET_SECONDS if has_statistics else 0.0)
        is_waiting = False
        while True:
            if time.monotonic() >= deadline or is_quiet():
                with self.lock.held(context.checkpoint):
                    # Writers begin under the lock, so none can begin while this job holds it.
                    if time.monotonic() >= deadline or is_quiet():
                        yield
                        return
            if not is_waiting:
                context.step(f"waiting for a moment without writes to commit {instant}")
                is_waiting = True
            context.checkpoint()
            time.sleep(_POLL_SECONDS)
