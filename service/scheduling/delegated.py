"""Policy of delegated plans: which plans of writers to execute now. The table's own policy does not matter for this."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from jobs.contract import JobKind
from service.delegation.plan import DelegatedPlan, PlanState
from service.lake.snapshot import Pending, TableSnapshot
from service.model.formatting import count, duration
from service.scheduling.decision import Admission, Run, Skip
from service.scheduling.pending_plans import ACTIONS, plans_of
from service.scheduling.trigger_context import TriggerContext

# A plan that no poll has seen for this time is gone. A time limit is necessary, because no poll is recorded while the
# timeline does not change.
_UNSEEN = timedelta(minutes=10)
_WITHOUT_COMMITS = timedelta(minutes=10)
_JUST_REQUESTED = timedelta(seconds=5)

IN_METADATA = (
    "The plan belongs to the metadata table, so it must be executed under the lock of the data table. The next job "
    "that commits to the table executes this plan with its own commit to the metadata table."
)


@dataclass(frozen=True)
class PlanStatus:
    """The state of one plan according to the last poll, and the reason for this state."""

    plan: DelegatedPlan
    state: PlanState
    because: str | None = None


@dataclass(frozen=True)
class Facts:
    """Facts about the plans' table and about workers."""

    completed: Collection[str] = ()  # Instants of the plans that are known to have completed.
    groups: Collection[str] = ()  # Worker groups with living workers.
    stale_seconds: int = 6 * 3600  # Age at which an inflight plan of another process counts as abandoned.


def ended(
    plans: Sequence[DelegatedPlan], snapshot: TableSnapshot, context: TriggerContext, facts: Facts
) -> list[PlanStatus]:
    found = []
    for plan in plans:
        if _pending(plan, snapshot) is not None:
            continue
        if plan.instant in facts.completed:
            found.append(PlanStatus(plan, PlanState.DONE))
        elif plan.is_metadata:
            # Polls do not read the timeline of a metadata table. The requests of the writer show whether its plan is
            # still pending.
            if context.now - plan.last_requested_at > _UNSEEN:
                found.append(PlanStatus(plan, PlanState.GONE, "The writer no longer asks for the plan."))
        elif snapshot.taken_at > plan.requested_at or context.now - plan.last_requested_at > _UNSEEN:
            found.append(PlanStatus(plan, PlanState.GONE, "The plan is not on the table's timeline."))
    return found


def decide(
    kind: JobKind,
    plans: Sequence[DelegatedPlan],
    snapshot: TableSnapshot,
    context: TriggerContext,
    facts: Facts,
) -> Run | Skip | None:
    """Returns the proposal for the delegated plans of one kind; None if the timeline has no such plan.

    An inflight plan whose process seems to be dead gets a job of its own. If the process turns out to be alive, that
    job is refused, and no other plan must be refused with it.
    """
    asked = {plan.instant: plan for plan in plans if not plan.is_metadata and plan.service.kind is kind}
    pending = [replace(item, is_plan=True) for name in sorted(asked) if (item := _pending(asked[name], snapshot))]
    if not pending:
        return None
    found = plans_of(replace(snapshot, pending=tuple(pending)), kind, facts.stale_seconds, context)
    if found.running and not found.waiting:
        return Skip("plan-running", found.running_text, found.running_until, found.warning)
    if not found.waiting:
        names = ", ".join(found.withheld)
        return Skip(
            "plan-withheld", f"executing {names} would harm the table; its last job says why", None, found.warning
        )
    if kind is JobKind.CLUSTERING and snapshot.num_buckets:
        names = ", ".join(found.waiting)
        because = f"{names} is a clustering plan by Hudi that would break the bucket index: roll the plan back"
        return Skip("plan-unusable", because, warning=found.warning)
    if grace := _grace(kind, [asked[instant] for instant in found.waiting], snapshot, context):
        return grace
    begun = [item.requested_time for item in pending if item.state == "inflight"]
    fresh = [instant for instant in found.waiting if instant not in begun]
    chosen = fresh or list(found.waiting)
    hints = asked[chosen[0]].hints
    params: dict[str, object] = {"plans": chosen}
    if hints.parallelism and kind is not JobKind.COMPACTION:
        params["parallelism"] = hints.parallelism
    group = hints.queue if hints.queue in facts.groups else None
    because = f"{count(len(chosen), f'{kind.value} plan')} delegated by a writer ({', '.join(chosen[:5])})"
    if hints.queue and group is None:
        because += f"; no worker of the group '{hints.queue}' is alive, so the table's own group runs it"
    return Run(kind, params, because, found.warning, worker_group=group)


def _grace(
    kind: JobKind, plans: Sequence[DelegatedPlan], snapshot: TableSnapshot, context: TriggerContext
) -> Skip | None:
    """Returns why the writer of the plans gets some time to execute them itself; None if they are executed now."""
    requested_at = max(plan.requested_at for plan in plans)
    names = ", ".join(plan.instant for plan in plans)
    if kind is JobKind.CLEANING:
        quiet_from = max(requested_at, snapshot.last_commit_at or requested_at)
        if context.now - quiet_from < _WITHOUT_COMMITS:
            because = (
                f"a writer of Hudi 1.2 executes {names} itself with its next commit, whatever it delegates, and two"
                f" executions of one clean damage the timeline; a job executes {names} when the table has had no commit"
                f" for {duration(_WITHOUT_COMMITS)}"
            )
            return Skip("plan-of-writer", because, quiet_from + _WITHOUT_COMMITS)
    if kind is JobKind.CLUSTERING and context.now - requested_at < _JUST_REQUESTED:
        because = f"{names} was requested a moment ago; a writer that delegates only compaction executes it itself"
        return Skip("plan-just-requested", because, requested_at + _JUST_REQUESTED)
    return None


def waiting(
    plans: Sequence[DelegatedPlan],
    snapshot: TableSnapshot,
    admissions: Mapping[JobKind, Admission],
    active: Collection[str],
) -> list[PlanStatus]:
    """Returns the state of the plans that are on the timeline. `admissions` are the decisions about each kind. `active`
    are the plans of active jobs."""
    found = []
    for plan in plans:
        if plan.is_metadata:
            found.append(PlanStatus(plan, PlanState.WITHHELD, IN_METADATA))
        elif _pending(plan, snapshot) is None or plan.instant in active:
            continue
        else:
            admission = admissions[plan.service.kind]
            state = PlanState.WITHHELD if isinstance(admission, Skip) else PlanState.WAITING
            found.append(PlanStatus(plan, state, f"{admission.because}."))
    return found


def _pending(plan: DelegatedPlan, snapshot: TableSnapshot) -> Pending | None:
    if plan.is_metadata:
        return None
    actions = ACTIONS[plan.service.kind]
    return next(
        (item for item in snapshot.pending if item.requested_time == plan.instant and item.action in actions), None
    )
