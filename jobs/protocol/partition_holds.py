"""Reasons why partitions must not be dropped now: pending plans, savepoints, consumers, writes in flight."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jobs.contract import Problem
from jobs.errors import WritersActiveError
from jobs.format import plan_files
from jobs.hudi.plans import CLUSTERING_ACTIONS, COMPACTION_ACTIONS, pending_plans
from jobs.hudi.records import INGESTION, Commit, Instant
from jobs.hudi.savepoints import savepoints_of
from jobs.hudi.table import HudiTable
from jobs.kinds.cleaning import Consumer
from jobs.problems.left_plan import LeftPlan
from jobs.problems.plans import CONSUMER_BEHIND
from jobs.problems.undoing import SAVEPOINT
from jobs.protocol import left_plans
from jobs.protocol.consumers import first_needed
from jobs.protocol.partition_expiry import Expired

_PLANS = COMPACTION_ACTIONS | CLUSTERING_ACTIONS


def holds(table: HudiTable, partitions: Sequence[Expired], consumers: Sequence[Consumer]) -> dict[str, list[Problem]]:
    """Returns the partitions that something still needs, each with the reasons, without writes in flight."""
    found: dict[str, list[Problem]] = {}
    planned = _planned(table)
    saved = {each.instant: {path for path, names in each.files.items() if names} for each in savepoints_of(table)}
    behind = _behind(table.commits(), partitions, consumers)
    for each in partitions:
        problems = []
        if plans := [plan for plan, paths in planned.items() if paths is None or each.partition in paths]:
            problems.append(left_plans.refusal(table, plans, where=f"'{each.partition}': "))
        if savepoints := [instant for instant, paths in saved.items() if each.partition in paths]:
            problems.append(_savepoint(each.partition, savepoints))
        if names := behind.get(each.partition):
            problems.append(_consumer_behind(each, names))
        if problems:
            found[each.partition] = problems
    return found


def _behind(
    commits: Sequence[Commit], partitions: Sequence[Expired], consumers: Sequence[Consumer]
) -> dict[str, list[str]]:
    """Returns the partitions with the names of the consumers that have not seen all commits to them. `commits` are
    in the order of completion.

    If the commit of a consumer is archived, its instant is compared instead.
    """
    found: dict[str, list[str]] = {}
    for consumer in consumers:
        seen = consumer.instant
        place = first_needed(commits, [consumer])
        unseen = {path for commit in commits[(place or 0) + 1 :] for path in commit.files}
        is_known = any(commit.write.instant == seen for commit in commits)
        for each in partitions:
            if each.partition in unseen or (not is_known and each.modified > seen):
                found.setdefault(each.partition, []).append(consumer.name)
    return found


def _planned(table: HudiTable) -> dict[LeftPlan, set[str] | None]:
    """Returns the partitions of each pending plan; None for a plan that does not name them."""
    states = {item.requested: item.state for item in table.instants()}
    found: dict[Instant, set[str] | None] = {}
    for plan in pending_plans(table, _PLANS):
        groups = plan_files.read_by(plan.content)
        # A replacecommit without a plan is an overwrite in flight.
        if groups or plan.action != "replacecommit":
            item = Instant(plan.instant, plan.action, states.get(plan.instant, "REQUESTED"))
            found[item] = {partition for partition, _ in groups} if groups else None
    return dict(zip(left_plans.described(table, found), found.values(), strict=True))


def writing_into(
    table: HudiTable, partitions: Collection[str], *, without: Collection[str] = ()
) -> dict[str, list[Instant]]:
    """Returns the partitions that pending instants may write to, with these instants; `without` are ignored. A Spark
    writer records its targets when its instant becomes inflight. An instant without targets (one that is only
    requested, or of Flink, a bulk insert by rows, an overwrite, a rollback) may write to any partition."""
    found: dict[str, list[Instant]] = {}
    plans = {plan.instant for plan in pending_plans(table, _PLANS) if plan.content}
    for item in table.pending():
        if item.requested in plans or item.requested in without:
            continue
        targets = _targets(table, item)
        for partition in partitions if targets is None else targets & set(partitions):
            found.setdefault(partition, []).append(item)
    return found


def _targets(table: HudiTable, item: Instant) -> set[str] | None:
    if item.action not in INGESTION or item.state != "INFLIGHT":
        return None
    touched = table.touched(item.requested)
    if touched is None or touched.is_empty:
        return None
    return {*touched.groups, *touched.inserts}


def being_written(partition: str, instants: Sequence[Instant]) -> Problem:
    return WritersActiveError.because(
        f"'{partition}': {', '.join(map(str, instants[:5]))}",
        title="A write in flight may write to this partition",
        hint="Allow a longer wait (`wait_seconds`), or run the job again when the write has ended.",
        retriable=True,
    )


def _savepoint(partition: str, savepoints: Sequence[str]) -> Problem:
    return SAVEPOINT.because(f"'{partition}': {', '.join(savepoints[:5])}")


def _consumer_behind(each: Expired, consumers: Sequence[str]) -> Problem:
    return CONSUMER_BEHIND.because(
        f"'{each.partition}' was modified at {each.modified}, after what was seen by: {', '.join(consumers[:5])}"
    )
