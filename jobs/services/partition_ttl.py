"""Partition TTL: drops partitions that were last modified, or created, too many days ago, by Hudi's own deletion.

The deletion is a replacecommit that replaces all file groups of the partitions and writes none; cleaning removes the
files later. A write in flight that updates such a partition would fail by Hudi's conflict detection (1.2). So the
commit happens under the lock at a moment at which no write in flight may write to the partitions; a writer that begins
afterwards finds them empty. Writers that have read file ids before (a prepared `UPDATE`, a Flink task) may commit stale
writes, which the service detects for a repair.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import msgspec

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import CommitStateUnknownError, HudiError, JobError, LeaseLostError, refuse
from jobs.format.file_names import is_fixed
from jobs.format.index_definitions import SECONDARY
from jobs.hudi import merging
from jobs.hudi.client import WriteClient
from jobs.hudi.lock import TableLock
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.partition_ttl import OPERATION, keeping
from jobs.hudi.records import FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.partition_ttl import ExpiredPartition, PartitionTtlParams, PartitionTtlResult, WithheldPartition
from jobs.kinds.results import KindResult, WorkLeft
from jobs.lock_errors import LockLostError
from jobs.problems.plans import FILE_IDS_REPEAT, NOT_PARTITIONED, SECONDARY_INDEX
from jobs.protocol import preflight, recovery, repeated_file_ids
from jobs.protocol.moved_rows import MovedRows
from jobs.protocol.partition_expiry import Expired, Rows, Ttl, expired
from jobs.protocol.partition_holds import being_written, holds, writing_into
from jobs.protocol.stale_writer_watch import KnownInstants
from jobs.protocol.writer_engines import of_running_flink
from jobs.protocol.writers import dead_writes, roll_back_dead

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Plan:
    """The partitions to drop, oldest first; the partitions that are withheld, with the reasons; and those that the
    limit leaves to the next job."""

    ttl: Ttl
    chosen: tuple[Expired, ...]
    withheld: tuple[tuple[Expired, Problem], ...]
    left: tuple[Expired, ...]

    @property
    def partitions(self) -> set[str]:
        """All partitions that have expired."""
        withheld = (each for each, _ in self.withheld)
        return {each.partition for each in (*self.chosen, *self.left, *withheld)}

    def without(self, busy: dict[str, Problem]) -> Plan:
        """Returns a plan that withholds these partitions too."""
        withheld = [(each, busy[each.partition]) for each in self.chosen if each.partition in busy]
        chosen = tuple(each for each in self.chosen if each.partition not in busy)
        return Plan(self.ttl, chosen, (*self.withheld, *withheld), self.left)

    def result(self, rows: Rows) -> PartitionTtlResult:
        counted = rows.of(self.chosen)
        expired = (
            ExpiredPartition(
                partition=each.partition,
                since=each.since,
                modified=each.modified,
                file_groups=len(each.slices),
                files=each.files,
                rows=counted[each.partition],
                bytes=each.bytes,
            )
            for each in self.chosen
        )
        return PartitionTtlResult(
            strategy=self.ttl.strategy.value,
            days_retain=self.ttl.days,
            partitions=tuple(expired),
            rows=sum(counted.values()),
            files=sum(each.files for each in self.chosen),
            bytes=sum(each.bytes for each in self.chosen),
            withheld=tuple(
                WithheldPartition(partition=each.partition, **asdict(problem)) for each, problem in self.withheld
            ),
            left=WorkLeft(partitions=len(self.left)),
            nothing_to_do=not self.chosen,
        )


def run(table: HudiTable, order: WorkOrder[PartitionTtlParams], context: JobContext) -> Result[KindResult]:
    """Drops partitions that are older than `days_retain`; a dry run lists exactly those.

    A partition that something still needs is withheld and named. Raises RefusedError if that concerns all of them.
    """
    context.step("planning")
    if done := recovery.settle_replacement(table, order, context):
        return done
    ttl, rows, moved = Ttl.of(order.params), Rows(table), MovedRows(table)
    problems = _problems(table, order)
    if order.dry_run:
        plan = Plan(ttl, (), (), ()) if problems else _plan(table, ttl, order, moved)
        problems += _nothing_left(plan)
        planned = msgspec.structs.replace(plan.result(rows), refusals=tuple(problems))
        return Result(Outcome.SUCCEEDED, details=planned)
    refuse(problems)
    lock = TableLock(table, order.job_id)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        roll_back_dead(table, lock, client, context.checkpoint)
    plan = _plan(table, ttl, order, moved)
    refuse(_nothing_left(plan))
    # The rows are counted before the lock is taken, so that writers need not wait for it.
    result = plan.result(rows)
    if not plan.chosen:
        return Result(Outcome.SUCCEEDED, details=result)
    return _drop_at_a_moment(table, order, context, lock, planned=plan, rows=rows, moved=moved)


def _drop_at_a_moment(
    table: HudiTable,
    order: WorkOrder[PartitionTtlParams],
    context: JobContext,
    lock: TableLock,
    *,
    planned: Plan,
    rows: Rows,
    moved: MovedRows,
) -> Result[KindResult]:
    """Waits for a moment at which nobody writes to the partitions; at the deadline, leaves out partitions that somebody
    writes to."""
    deadline = time.monotonic() + order.params.wait_seconds
    wanted = [each.partition for each in planned.chosen]
    is_waiting = False
    while True:
        # The wait happens without the lock, so that writers need not wait.
        if time.monotonic() < deadline and writing_into(table, wanted):
            if not is_waiting:
                context.step("waiting for writes to these partitions")
                is_waiting = True
            context.checkpoint()
            time.sleep(POLL_SECONDS)
            continue
        with lock.held(context.checkpoint):
            table.reload()
            refuse(_problems(table, order))
            plan = _plan(table, planned.ttl, order, moved, planned)
            found = writing_into(table, [each.partition for each in plan.chosen])
            busy = {partition: being_written(partition, instants) for partition, instants in found.items()}
            if not busy or time.monotonic() >= deadline:
                plan = plan.without(busy)
                refuse(_nothing_left(plan))
                result = plan.result(rows)
                if not plan.chosen:
                    return Result(Outcome.SUCCEEDED, details=result)
                context.step("dropping partitions")
                before = table.file_slices()
                instant = _drop(table, lock, context, plan.chosen)
                kept = _without(before, plan.chosen) == _without(table.file_slices(), ())
                done = msgspec.structs.replace(result, kept_unchanged=kept)
                return Result(Outcome.SUCCEEDED, instants=(instant,), details=done)


def _drop(table: HudiTable, lock: TableLock, context: JobContext, chosen: Sequence[Expired]) -> str:
    """Commits the deletion; on failure removes all traces of it. The lock must be held."""
    slices = [item for each in chosen for item in each.slices]
    at_lock = table.instants()
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        instant = client.new_instant()
        context.instant(instant)
        try:
            client.start_replacement(instant, OPERATION)
            replaced = client.partition_ttl.delete([each.partition for each in chosen], instant)
            if replaced != {item.key for item in slices}:
                raise HudiError("The file groups of these partitions have changed while the lock was held.")
            context.checkpoint()
            lock.verify()
            unfinished = {item.requested for item in at_lock if item.state != "COMPLETED"}
            before = KnownInstants(frozenset(item.requested for item in at_lock), frozenset(unfinished))
            _commit(table, client, instant, slices, before)
        except (LeaseLostError, LockLostError, CommitStateUnknownError):
            # The next attempt finishes or removes the instant, under the lock.
            raise
        except BaseException:
            _undo(table, client, context, instant)
            raise
    try:
        lock.verify()
    except LockLostError:
        # The commit cannot be undone. Writes that were committed in between are not in `before`, so they are checked.
        logger.warning("the table's lock was lost while %s was committed", instant)
    return instant


def _without(slices: Sequence[FileSlice], chosen: Sequence[Expired]) -> dict[tuple[str, str], FileSlice]:
    """Returns the slices of all other partitions. Equal slices have the same rows."""
    dropped = {each.partition for each in chosen}
    return {item.key: item for item in slices if item.partition not in dropped}


def _commit(
    table: HudiTable, client: WriteClient, instant: str, slices: Sequence[FileSlice], before: KnownInstants
) -> None:
    try:
        extra = {**before.to_metadata(), **merging.schema_on_read_of(table)}
        client.commit_replacement(instant, [], slices, extra)
    except JobError as error:
        if table.state_of(instant) != "COMPLETED":
            raise
        logger.warning("the commit landed, but Hudi reported an error after it: %s", error.detail)
    if table.state_of(instant) != "COMPLETED":
        raise CommitStateUnknownError(f"instant {instant}")


def _undo(table: HudiTable, client: WriteClient, context: JobContext, instant: str) -> None:
    try:
        with context.undoing():
            if table.state_of(instant) in {"REQUESTED", "INFLIGHT"}:
                client.rollback(instant)
    except LeaseLostError:
        raise
    except JobError:
        # The first error is reported; the next attempt, or any writer's clean, rolls the instant back.
        logger.exception("could not roll back %s", instant)


def _plan(
    table: HudiTable, ttl: Ttl, order: WorkOrder[PartitionTtlParams], moved: MovedRows, before: Plan | None = None
) -> Plan:
    """Returns the plan. `before` is the plan that was made before the lock was taken."""
    among = before.partitions if before else None
    with WriteClient(table, UNDER_OUR_LOCK, keeping(ttl.strategy, ttl.days)) as client:
        found = expired(table, client, ttl, among=among)
    held = holds(table, found, order.params.consumers) if found else {}
    for partition, problem in moved.of(found).items():
        held.setdefault(partition, []).append(problem)
    free = [each for each in found if each.partition not in held]
    withheld = [(each, problem) for each in found for problem in held.get(each.partition, ())]
    plan = Plan(ttl, tuple(free[: ttl.limit]), tuple(withheld), tuple(free[ttl.limit :]))
    if order.dry_run and plan.chosen:
        with WriteClient(table, UNDER_OUR_LOCK) as client:
            dead = set(dead_writes(table, client))
        busy = writing_into(table, [each.partition for each in plan.chosen], without=dead)
        plan = plan.without({partition: being_written(partition, items) for partition, items in busy.items()})
    return plan


def _nothing_left(plan: Plan) -> list[Problem]:
    """Returns the refusal if nothing can be dropped although partitions have expired."""
    return [] if plan.chosen else [problem for _, problem in plan.withheld]


def _problems(table: HudiTable, order: WorkOrder[PartitionTtlParams]) -> list[Problem]:
    problems = [*preflight.lock_not_provable(table), *of_running_flink(table, order)]
    if not table.properties.get("hoodie.table.partition.fields"):
        problems.append(NOT_PARTITIONED.because())
    problems += preflight.no_meta_fields(table)
    if table.has_consistent_hashing() or any(is_fixed(item.file_id) for item in table.file_slices()):
        problems.append(FILE_IDS_REPEAT.because("consistent-hashing bucket index, or non-blocking concurrency control"))
    problems += repeated_file_ids.of_kafka_connect(table, table.file_slices())
    if values := [name for name in table.indexes_of_keys if name.startswith(SECONDARY)]:
        problems.append(SECONDARY_INDEX.because(", ".join(values)))
    title = "The table has commits whose rows no reader sees; they may belong to these partitions"
    return problems + preflight.misplaced_rows(table.commits(), title)
