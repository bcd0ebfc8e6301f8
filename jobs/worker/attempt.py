"""One attempt at a job, on the worker: one thread does the work, another one sends the heartbeats that keep the
lease."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from jobs import tracing
from jobs.attempt_log import AttemptLog
from jobs.contract import Heartbeat, HeartbeatAnswer, JobKind, LogLine, Outcome, Problem, Progress, Result, WorkOrder
from jobs.errors import (
    CancelledError,
    CommitStateUnknownError,
    JobError,
    LeaseLostError,
    NoExecutorsError,
    RefusedError,
    TimedOutError,
)
from jobs.hudi import jvm_log, spark_jobs
from jobs.hudi.executors import Executors
from jobs.hudi.jvm import jvm_of, refused_by_storage
from jobs.hudi.lock import TableLock
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.parameters import Parameters
from jobs.kinds.registry import KINDS, typed
from jobs.kinds.results import KindResult
from jobs.problems.tables import PARAMS_INVALID
from jobs.protocol import metadata_files, missing_parts, overtaken_instants, upgrade_refusals
from jobs.services import audit
from jobs.services.dry_run import with_surroundings
from jobs.storage.permissions import Permissions
from jobs.storage_errors import StorageRefusedError
from jobs.worker.processor_time import Spent, of_worker
from jobs.worker.write_probes import WriteProbes

if TYPE_CHECKING:
    from msgspec import UnsetType
    from pyspark.sql import SparkSession


logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 1.0
EXECUTOR_SECONDS = 120.0
# Maximum number of heartbeats that send the rest of the log when the attempt has ended.
_LAST_CHUNKS = 10

RUN: Final[dict[JobKind, Callable[[HudiTable, WorkOrder, JobContext], Result[KindResult]]]] = {
    kind: import_module(f"jobs.services.{declared.module or kind.value}").run for kind, declared in KINDS.items()
}
"""The function that runs a kind of job: `run` of the module that its declaration names."""


def perform(table: HudiTable, order: WorkOrder, context: JobContext) -> Result[KindResult]:
    """Runs the job. After a job that has replaced file groups it runs the audit's checks that read no rows; their
    result is `audit` in the details. Raises RefusedError before anything is changed if parts of the
    table are missing, and other `JobError`s."""
    kind = KINDS[order.kind]
    takes_lock, table.may_merge = kind.writes, kind.may_merge
    order = _typed(order)
    with table.clock.kept(writes=takes_lock and not order.dry_run):
        if takes_lock and not order.dry_run:
            # A dead worker that reported no instant may have left the lock, even if this attempt is refused.
            TableLock(table, order.job_id).break_stale()
            table.clock.verify()
        if kind.for_damaged:
            table.ignores_metadata_table = metadata_files.lists_wrongly(table)
        lacking = [] if order.kind is JobKind.UPGRADE else upgrade_refusals.while_unfinished(table)
        if not lacking and not kind.for_damaged:
            lacking = missing_parts.missing(table, order.kind)
        settled = overtaken_instants.Settled()
        if not lacking and takes_lock:
            lock = TableLock(table, order.job_id)
            settled = overtaken_instants.settle(table, order.kind, lock, context.checkpoint, dry_run=order.dry_run)
            lacking = list(settled.refusals)
        if lacking and not order.dry_run:
            raise RefusedError(lacking)
        if lacking:
            # Planning would fail, or give a wrong plan, because parts of the table are missing.
            result = Result(Outcome.SUCCEEDED, details=KindResult(refusals=tuple(lacking), nothing_to_do=False))
        else:
            result = RUN[order.kind](table, order, context)
            if settled.ends_some and not result.details.nothing_to_do:
                _archive_what_has_ended(table, order, context)
        if (audited := audit.after(table, order, result, context)) is not None:
            result = replace(result, details=result.details.having(audit=audited))
        return with_surroundings(table, order, result) if order.dry_run and takes_lock else result


def _archive_what_has_ended(table: HudiTable, order: WorkOrder, context: JobContext) -> None:
    try:
        overtaken_instants.archive(table, TableLock(table, order.job_id), context.checkpoint)
    except JobError as error:
        # The job itself is done, and the next one tries again.
        logger.warning("could not archive instants that archived commits have overtaken: %s", error)


def _typed(order: WorkOrder) -> WorkOrder[Parameters]:
    try:
        return typed(order)
    except ValueError as error:
        reason = PARAMS_INVALID.because(str(error))
        raise RefusedError([reason]) from error


class Attempt:
    """Runs one leased work order in the calling thread, and keeps its lease in another one.

    `beat` sends a heartbeat and returns the service's answer; it raises `OSError` when the service is unreachable. A
    table that `permissions` do not allow is refused. An attempt whose tasks find no executor for `executor_seconds`
    ends; without `executors` it waits. `pool` is the scheduler pool of its Spark jobs. The heartbeats send the lines of
    `log`. `probes` remembers which tables the worker can write to.
    """

    def __init__(
        self,
        spark: SparkSession,
        order: WorkOrder,
        lease_seconds: float,
        beat: Callable[[Heartbeat], HeartbeatAnswer],
        *,
        permissions: Permissions,
        executors: Executors | None = None,
        executor_seconds: float = EXECUTOR_SECONDS,
        pool: str = "slot",
        log: AttemptLog | None = None,
        probes: WriteProbes | None = None,
    ) -> None:
        self._probes = probes
        self._not_writable: Problem | UnsetType | None = UNSET
        self._executors = executors
        self._executor_seconds = executor_seconds
        self._starves_since: float | None = None
        self._table: HudiTable | None = None
        self._pool = pool
        self._log = log or AttemptLog()
        self._spark = spark
        self._permissions = permissions
        self._order = order
        self._beat = beat
        self._lease_seconds = lease_seconds
        self._group = f"{order.job_id}/{order.attempt}"
        self._started = time.monotonic()
        self._confirmed = self._started
        self._ended = threading.Event()
        self._sending = threading.Lock()
        self.context = JobContext(self._group, on_instant=self._heartbeat)

    def run(self) -> Result:
        """Returns the result to report. Raises `LeaseLostError` when the job no longer belongs to this attempt."""
        # The thread that keeps the lease gets a copy of this thread's context, so both write to the same log.
        run = copy_context().run
        keeper = threading.Thread(target=run, args=(self._keep_lease,), name=f"lease of {self._group}", daemon=True)
        keeper.start()
        try:
            with of_worker.measured() as spent:
                result = self._work()
        finally:
            self._ended.set()
            keeper.join()
        self._send_log()
        table = self._table
        details = result.details.having(
            not_writable=self._not_writable,
            seconds=round(time.monotonic() - self._started, 3),
            cpu_seconds=self._of_all_processes(spent),
            lock_wait_seconds=round(table.lock_wait_seconds, 3) if table else UNSET,
            clock=table.clock.frame.to_json() if table else UNSET,
        )
        instants = tuple(dict.fromkeys((*self.context.instants, *result.instants)))
        return Result(result.outcome, instants, details.to_json(), result.error)

    def _work(self) -> Result[KindResult]:
        spark_context = self._spark.sparkContext
        # Each attempt has its own job group, so that it can be cancelled. Each slot has its own pool, so that jobs
        # share cores fairly; Spark never forgets a pool.
        spark_context.setLocalProperty("spark.scheduler.pool", self._pool)
        spark_context.setJobGroup(self._group, f"{self._order.kind} of {self._order.table.name}")
        try:
            jvm_log.mark(spark_context, self._group)
            metastore = self._permissions.refused_metastore(self._order.kind, self._order.params)
            if problems := [*self._permissions.problems(self._order.table), *([metastore] if metastore else [])]:
                raise RefusedError(problems)
            self._table = HudiTable(jvm_of(self._spark), self._order.table)
            self._probe(self._table)
            return perform(self._table, self._order, self.context)
        except Exception as error:
            if isinstance(self.context.must_end, LeaseLostError) or isinstance(error, LeaseLostError):
                raise LeaseLostError from error
            return self._with_leftovers(self._failed(error))
        finally:
            self.context.steps.end()
            # An error here, such as a lost JVM, must not replace the result, because the job may have committed.
            with suppress(Exception):
                jvm_log.mark(spark_context, None)
                spark_jobs.record(spark_context, self._group, self.context.steps.begun, tracing.current())
                spark_context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]  # None unsets it.

    def _of_all_processes(self, spent: Spent) -> float | UnsetType:
        # Executors of a cluster do not report CPU time of their Python workers.
        is_whole = self._executors is None or self._executors.are_local
        return UNSET if spent.seconds is None or not is_whole else round(spent.seconds, 3)

    def _probe(self, table: HudiTable) -> None:
        """Tests whether the worker can write to the table, unless `probes` has the answer. If not, raises
        `StorageRefusedError` for a job that writes; the result of any other job reports it."""
        if self._probes is None or not self._probes.are_due(table):
            return
        refusal = self._probes.refusal(table)
        if refusal is None and self._probes.are_due(table):
            return  # The test could not find out.
        self._not_writable = refusal.problem() if refusal else None
        if refusal and not self._order.dry_run and KINDS[self._order.kind].writes:
            raise refusal

    def _failed(self, error: Exception) -> Result[KindResult]:
        nothing = KindResult()
        if isinstance(error, CommitStateUnknownError):
            return Result(Outcome.UNKNOWN, details=nothing, error=error.problem())
        # Spark's error for a cancelled job group is not the reason; the reason is in `must_end`.
        reason = self.context.must_end or error
        if isinstance(reason, CancelledError):
            return Result(Outcome.CANCELLED, details=nothing, error=reason.problem())
        if isinstance(reason, RefusedError):
            return Result(Outcome.FAILED, details=KindResult(refusals=tuple(reason.reasons)), error=reason.problem())
        if isinstance(reason, OSError):
            # The error may be one of Arrow or of the local disk.
            reason = refused_by_storage("the job", [(type(reason).__name__, str(reason))]) or reason
        if isinstance(reason, StorageRefusedError) and self._probes and self._table:
            self._probes.forget(self._table)
        if isinstance(reason, JobError):
            return Result(Outcome.FAILED, details=nothing, error=reason.problem())
        logger.exception("%s failed", self._group, exc_info=error)
        detail = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return Result(Outcome.FAILED, details=nothing, error=JobError.because(detail[:300]))

    def _with_leftovers(self, failed: Result[KindResult]) -> Result[KindResult]:
        """Adds the sentences about changes that the attempt could not undo."""
        if failed.error is None or not self.context.left_behind:
            return failed
        detail = " ".join(filter(None, [failed.error.detail, *self.context.left_behind]))
        return replace(failed, error=replace(failed.error, detail=detail))

    def _keep_lease(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            if time.monotonic() - self._started > self._order.timeout_seconds:
                self._end(TimedOutError(f"after {self._order.timeout_seconds:.0f} s"))
            try:
                self._heartbeat()
                self._end_if_starved()
            except OSError as error:
                logger.warning("%s: the service cannot be reached: %s", self._group, error)
            except Exception:
                # The thread must survive every error, because it alone notices that the lease expires.
                logger.exception("%s: no heartbeat could be sent", self._group)
            # The attempt ends some time before its lease expires, so that it cannot overlap with the next attempt.
            if time.monotonic() - self._confirmed > self._lease_seconds * 0.8:
                self._end(LeaseLostError("no heartbeat was confirmed in time"))

    def _heartbeat(self) -> None:
        with self._sending:
            sent = time.monotonic()
            lines = self._log.chunk()
            instants = tuple(self.context.instants)
            answer = self._beat(Heartbeat(self._order.attempt, self._progress(), instants, lines))
            self._log.sent(lines)
            self._confirmed = sent
        if answer is HeartbeatAnswer.CANCEL:
            self._end(CancelledError())
        elif answer is HeartbeatAnswer.LOST:
            self._end(LeaseLostError())

    def last_lines(self) -> tuple[LogLine, ...]:
        """Returns the lines that no heartbeat has sent, for the report."""
        return self._log.chunk()

    def _send_log(self) -> None:
        """Sends the lines that have no room in the report."""
        try:
            for _ in range(_LAST_CHUNKS):
                if not self._log.has_more_than(self._log.chunk()):
                    return
                self._heartbeat()
        except Exception as error:
            # The service or the JVM may be gone; the result is still reported.
            logger.warning("%s: the rest of the log could not be sent: %s", self._group, error)

    def _end_if_starved(self) -> None:
        """Ends the attempt if its Spark job has waited too long for the first executor. Cancels that job again and
        again while it still waits."""
        if self._executors is None:
            return
        now = time.monotonic()
        if self._executors.count() != 0 or not self._executors.has_running_job(self._group):
            self._starves_since = None
        elif self._starves_since is None:
            self._starves_since = now
        elif now - self._starves_since > self._executor_seconds:
            self._end(NoExecutorsError(f"for {self._executor_seconds:.0f} s"))

    def _end(self, reason: JobError) -> None:
        self.context.end(reason)
        # Each heartbeat repeats this, since the job may have started another Spark job. Spark jobs that undo changes
        # are not cancelled, unless the lease is lost or there are no executors.
        if isinstance(reason, LeaseLostError | NoExecutorsError) or not self.context.is_undoing:
            self._spark.sparkContext.cancelJobGroup(self._group)

    def _progress(self) -> Progress | None:
        context = self.context
        if not context.current_step:
            return None
        tracker: Any = self._spark.sparkContext.statusTracker()
        done = total = 0
        for job in tracker.getJobIdsForGroup(self._group):
            info = tracker.getJobInfo(job)
            for stage in info.stageIds if info and info.status == "RUNNING" else ():
                if stage_info := tracker.getStageInfo(stage):
                    done += stage_info.numCompletedTasks
                    total += stage_info.numTasks
        return Progress(context.shown_step(), done, total, context.bytes_done(), context.bytes_total)
