"""Executes given clustering plans of writers with Hudi's own executor, and commits them while writers are active. Such
a plan is on the timeline, and only its own instant can complete it. The job commits at a moment without a write in
flight, after the check that nobody has written to the plan's file groups since it was made."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.clustering_refusals import PLAN_UNUSABLE
from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import LeaseLostError, WritersActiveError, refuse
from jobs.hudi import merging, plan_checks
from jobs.hudi.client import WriteClient
from jobs.hudi.lent_lock import LENT_LOCK
from jobs.hudi.lock import TableLock
from jobs.hudi.lock_bridge import bridged_lock
from jobs.hudi.options import MULTI_WRITER
from jobs.hudi.plans import plan_of
from jobs.hudi.records import CLUSTERING, REPLACE, FileSlice
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.clustering import ClusteringResult, GivenClusteringParams
from jobs.kinds.words import WAIT_SECONDS
from jobs.protocol import (
    older_hudi,
    own_instant,
    preflight,
    recovery,
    repeated_file_ids,
    unique_keys,
    writer_engines,
)
from jobs.protocol.plan_owner import PlanOwner
from jobs.services import delegated_plans
from jobs.services.key_proof import KeyProof

_MOST_PARALLELISM = 15  # Hudi's default


def run(
    table: HudiTable,
    order: WorkOrder[GivenClusteringParams],
    context: JobContext,
    *,
    looks_bucketed: bool,
) -> Result[ClusteringResult]:
    """Executes Hudi's own plans. Raises `RefusedError` on a table with a bucket index: they would break its layout."""
    problems = _problems(table, order, looks_bucketed=looks_bucketed)
    if order.dry_run:
        found = delegated_plans.find(table, order, {CLUSTERING, REPLACE})
        refusals = (*problems, *plan_checks.unusable_of(table, found.ready))
        return Result(Outcome.SUCCEEDED, details=found.planned(ClusteringResult, refusals))
    refuse(problems)
    lock = TableLock(table, order.job_id)
    recovery.remove_rest_of_plans(table, lock, order, context)
    found = delegated_plans.find(table, order, {CLUSTERING, REPLACE})
    owner = PlanOwner(table, order.job_id, take_over=bool(order.params.take_over))
    runner = _Runner(table, order, context, lock, owner)
    for instant in found.ready:
        runner.run(instant)
    done = runner.proof.result(found.result(ClusteringResult).having(inside_buckets=False))
    return Result(Outcome.SUCCEEDED, instants=found.ready, details=done)


def _problems(table: HudiTable, order: WorkOrder[GivenClusteringParams], *, looks_bucketed: bool) -> list[Problem]:
    if table.has_consistent_hashing():
        return [preflight.consistent_hashing()]
    if table.declared.index is not None or looks_bucketed:
        return [PLAN_UNUSABLE]
    problems = preflight.columns_changed(table, table.file_slices())
    older = [
        *problems,
        *preflight.columns_left_out(table),
        *repeated_file_ids.refusals(table, table.file_slices()),
        *older_hudi.against_merging_by_hudi(table, table.file_slices()),
        *merging.against_clustering_by_hudi(table, table.file_slices()),
    ]
    return [*writer_engines.of_running_flink(table, order), *older]


@dataclass(frozen=True)
class _Runner:
    table: HudiTable
    order: WorkOrder[GivenClusteringParams]
    context: JobContext
    lock: TableLock
    owner: PlanOwner
    proof: KeyProof = field(default_factory=KeyProof)

    def run(self, instant: str) -> None:
        """Executes one plan. Raises RefusedError for duplicate keys, PlanTakenError if the plan has another runner, and
        WritersActiveError if there is no moment without writes. Before its commit raises RowsDifferError if the plan
        would lose or invent rows. Raises RefusedError as well if file groups of the plan have been replaced or written
        meanwhile. If a plan fails, it is removed from the timeline, because a pending clustering blocks writers of its
        file groups."""
        table, context = self.table, self.context
        read = _slices(plan_of(table, instant))
        unique_keys.require(table, {item.partition for item in read})
        options = dict(LENT_LOCK)
        if parallelism := self.order.params.parallelism:
            options["hoodie.clustering.max.parallelism"] = str(min(parallelism, _MOST_PARALLELISM))
        context.step(f"clustering {instant}")
        with WriteClient(table, MULTI_WRITER, options) as client:
            with self.lock.held(context.checkpoint):
                self.owner.check(instant)
                refuse(preflight.columns_changed(table, read))
                begun = client.clusterings.begin(instant)
                self.owner.begun(instant)
            try:
                context.instant(instant)
                with self.owner.working():
                    stats = client.clusterings.execute(begun)
                context.step(f"comparing the record keys of {instant}")
                self.proof.of_rewrite(table, [(read, stats)], context)
                context.step(f"waiting for a moment without writes to commit {instant}")
                may_pass = self._moment(client, instant, begun, read)
                with bridged_lock(table, self.lock, context.checkpoint, may_pass=may_pass):
                    client.clusterings.commit(instant, begun)
            except LeaseLostError:
                # Another attempt is active and begins the plan anew.
                own_instant.remove_late(table, client, instant)
                raise
            except BaseException:
                self.owner.undo(client, self.lock, context, instant)
                raise

    def _moment(self, client: WriteClient, instant: str, begun: Any, read: Sequence[FileSlice]) -> Callable[[], bool]:
        """Returns a function that decides, with the lock held, whether the plan may be committed now, and prepares the
        commit. `read` are the slices of the plan."""
        deadline = time.monotonic() + WAIT_SECONDS

        def may_pass() -> bool:
            self.owner.require(client, instant)
            writes = self.table.pending_writes()
            if writes and time.monotonic() >= deadline:
                names = ", ".join(map(str, writes))
                raise WritersActiveError(f"Still in flight: {names}.")
            if not writes:
                # Hudi leaves a conflict to the writer, and a writer in single-writer mode looks for none.
                plan_checks.check_clustering(self.table, instant)
                refuse(repeated_file_ids.of_kafka_connect(self.table, read))
                client.clusterings.present_schema(begun)
            return not writes

        return may_pass


def _slices(plan: Mapping[str, Any]) -> list[FileSlice]:
    """Returns the file slices that a clustering plan reads, without their sizes."""
    return [
        FileSlice(
            each.get("partitionPath") or "",
            each["fileId"],
            each.get("dataFilePath") or None,
            0,
            tuple(path.rpartition("/")[2] for path in each.get("deltaFilePaths") or ()),
            0,
        )
        for group in plan.get("inputGroups") or ()
        for each in group.get("slices") or ()
    ]
