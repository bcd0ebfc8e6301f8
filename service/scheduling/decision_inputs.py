"""Decision inputs of one table: its state, the proposals of its policy, and its earlier decisions and jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Final

from jobs.contract import JobKind, WriterEngine
from jobs.format.lock_providers import is_provable
from service.catalog import commit_store, table_store
from service.delegation import plan_store
from service.incidents.incident import with_misplaced_rows
from service.model.formatting import count, utc_minute
from service.policies import windows
from service.policies.freeze import lasting, next_start
from service.policies.precedence import Subject
from service.policies.precedence import effective as effective_policy
from service.policies.settings import Mode
from service.queue import job_store, worker_store
from service.queue.hand_over.policy import has_flink
from service.queue.job import JobState
from service.queue.unstarted_jobs import WITHDRAWN_BY_FREEZE, WITHDRAWN_BY_PAUSE, WITHDRAWN_BY_WINDOW
from service.scheduling import bucket_trends, cleaning, decision_facts, delegated, first_freed
from service.scheduling.admission import Situation
from service.scheduling.bucket_expansion import NOT_QUIET
from service.scheduling.cron import next_after
from service.scheduling.decision import DECIDED, Run, Verdict, Wait
from service.scheduling.expected_costs import NO_COSTS, work_seconds
from service.scheduling.job_history import (
    JobHistory,
    history_of,
    one_sided_splits,
    withdrawn_kinds,
    withheld_plans,
)
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.table_objectives import table_objective
from service.scheduling.trigger_context import Calendar, TriggerContext
from service.scheduling.writer_hazard import unless_refused, writer_hazard

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from jobs.contract import Problem
    from service.catalog.registration import Registration
    from service.delegation.plan import DelegatedPlan
    from service.incidents.incident import Incident
    from service.lake.engine_sighting import Sightings
    from service.lake.snapshot import TableSnapshot
    from service.outcome.table_objective import TableObjective
    from service.policies.freeze import Freeze
    from service.policies.policy import Pause, Policy
    from service.queue.job import Job
    from service.scheduling.budgets import Budgets
    from service.scheduling.decision import Decision, Proposal
    from service.scheduling.decision_facts import DecisionFacts
    from service.scheduling.expected_costs import Costs

POLICIES: Final[Mapping[JobKind, Callable[[PolicyInputs], Proposal]]] = {
    kind: import_module(f"service.scheduling.{kind.value}").propose for kind in DECIDED
}
_QUIET_WITHIN = timedelta(days=1)
_RESIZES = 20
"""Number of a table's last resizes that are read for splits of no use."""


@dataclass(frozen=True)
class DecisionInputs:
    """Everything that a decision about one table depends on."""

    subject: Subject
    policy: Policy
    proposals: Mapping[JobKind, Proposal]
    objective: TableObjective
    situation: Situation
    before: Mapping[JobKind, Decision]  # The last decisions.
    calendars: Mapping[JobKind, Calendar]
    closes_at: datetime | None  # When the open maintenance window ends or a freeze begins; None if neither is known.
    withdrawal: Problem | None  # Why queued jobs should not start any more; None if they may.
    snapshot: TableSnapshot
    has_gains: bool  # Whether the gain of a job is still to be measured by a poll.
    plans: Sequence[DelegatedPlan] = ()  # The open plans that writers delegate, without `ended_plans`.
    ended_plans: Sequence[delegated.PlanStatus] = ()

    def group_of(self, kind: JobKind) -> str:
        """Returns the worker group of a job of this kind."""
        proposal = self.proposals.get(kind)
        return (proposal.worker_group if isinstance(proposal, Run) else None) or self.policy.worker_group

    @property
    def plans_of_active_jobs(self) -> set[str]:
        return {str(instant) for job in self.situation.active for instant in job.params.get("plans") or ()}

    @property
    def withdrawable(self) -> list[Job]:
        """The jobs that the service may withdraw: those that it submitted itself, that no worker has leased, and for
        which no writer had to stop."""
        of_policy = [job for job in self.situation.active if job.reason is not None and job.attempt == 0]
        return [job for job in of_policy if job.hand_over is None]


def inputs_of(
    connection: Connection,
    table_id: str,
    now: datetime,
    budgets: Budgets | None = None,
    costs: Costs = NO_COSTS,
) -> DecisionInputs | None:
    """Returns the decision inputs, or None before the first poll of the table. `budgets` are the spent budgets; they
    are read if this is None. `costs` are the known expected costs of jobs. Raises TableNotFoundError."""
    facts = decision_facts.read(connection, table_id, now)
    table, stored = table_store.existing(facts.table, table_id), facts.stored
    if stored is None:
        return None
    before, recent, subject = facts.before, facts.recent, Subject.of(table)
    snapshot = replace(stored.snapshot, partitions=facts.partitions)
    sightings = facts.sightings.get(table_id, {})
    effective = effective_policy(facts.patterns, subject, facts.own)
    policy = effective.policy
    changes = [at for at in (effective.changed_at, facts.mended_at) if at]
    history = {kind: history_of(recent, kind, forgive_before=max(changes, default=None)) for kind in DECIDED}
    calendars = _calendars(policy, before, withdrawn_kinds(recent), now)
    pause = paused(facts.pause, policy)
    frozen = frozen_by(facts.freezes, subject, now)
    closes_at = windows.closes_at(policy.windows, policy.time_zone, now)
    is_closed = bool(policy.windows) and closes_at is None
    objective = table_objective(connection, facts, effective, now, budgets)
    objective = replace(objective, work_seconds=work_seconds(costs, table_id))
    is_flink = has_flink(table, sightings)
    contexts = _trigger_contexts(now, calendars, history, facts, objective, has_flink=is_flink)
    plans = plan_store.open_plans(connection, table_id) if facts.has_plans else []
    of_plans = _facts(connection, table_id, plans, now, policy)
    ended = delegated.ended(plans, snapshot, contexts[JobKind.COMPACTION], of_plans)
    plans = [plan for plan in plans if all(plan is not each.plan for each in ended)]
    asked = (
        {kind: delegated.decide(kind, plans, snapshot, contexts[kind], of_plans) for kind in DECIDED} if plans else {}
    )
    situation = Situation(
        now=now,
        polled_at=snapshot.taken_at,
        ran_at=_ran_at(snapshot),
        active=[job for job in recent if job.state.is_active],
        group=policy.worker_group,
        paused=pause,
        frozen=frozen,
        misplaced_rows=_misplaced_rows(facts.unresolved),
        closed_until=windows.opens_at(policy.windows, policy.time_zone, now) if is_closed else None,
        history=history,
        wanted_since={kind: each.wanted_since for kind, each in before.items() if each.wanted_since},
        # Delegated plans do not wait for the minimum interval of the policy.
        rest={kind: 0 if asked.get(kind) else getattr(policy, kind.value).min_interval_seconds for kind in DECIDED},
    )
    counted = first_freed.Counted(
        has_sessions=WriterEngine.SPARK_SQL in table.writers.known_engines(sightings),
        has_flink=is_flink,
        retries_conflicts=table.writers.retry_conflicts,
    )
    inputs = PolicyInputs(
        policy=policy,
        snapshot=snapshot,
        context=contexts[DECIDED[0]],
        incidents=facts.unresolved,
        tried=_attempted(recent),
        hazard=writer_hazard(table, sightings, has_hashing_config=bool(stored.hashing_config)),
        consumers=facts.consumers,
        has_flink=is_flink,
        must_stop_flink=is_flink and not table.writers.are_stopped(sightings),
        unproved=_unproved(table, sightings),
        one_sided=_one_sided(connection, snapshot, policy),
        first_freed=first_freed.read(connection, snapshot, policy, facts.consumers, now, writers=counted),
        growth=bucket_trends.near_limit(connection, snapshot, policy, now),
    )
    proposals = {
        kind: asked.get(kind) or propose(replace(inputs, context=contexts[kind])) for kind, propose in POLICIES.items()
    }
    # A cleaning that executes delegated plans would be refused as well.
    proposals[JobKind.CLEANING] = unless_refused(proposals[JobKind.CLEANING], cleaning.obstacle(table.profile))
    return DecisionInputs(
        subject=subject,
        policy=policy,
        proposals=proposals,
        objective=objective,
        situation=situation,
        before=before,
        calendars=calendars,
        closes_at=min((at for at in (closes_at, next_start(facts.freezes, subject, now)) if at), default=None),
        withdrawal=_withdrawal(pause, frozen, is_closed=is_closed),
        snapshot=snapshot,
        has_gains=facts.has_gains,
        plans=plans,
        ended_plans=ended,
    )


def read_objective(connection: Connection, table_id: str, now: datetime) -> tuple[TableObjective, TableSnapshot | None]:
    """Returns the objective of a table and its snapshot; None before the first poll. Raises TableNotFoundError."""
    facts = decision_facts.read(connection, table_id, now)
    subject = Subject.of(table_store.existing(facts.table, table_id))
    objective = table_objective(connection, facts, effective_policy(facts.patterns, subject, facts.own), now)
    return objective, replace(facts.stored.snapshot, partitions=facts.partitions) if facts.stored else None


def _facts(
    connection: Connection, table_id: str, plans: Sequence[DelegatedPlan], now: datetime, policy: Policy
) -> delegated.Facts:
    if not plans:
        return delegated.Facts()
    instants = {plan.instant for plan in plans if not plan.is_metadata}
    alive = (worker for worker in worker_store.every(connection) if worker.is_alive(now))
    return delegated.Facts(
        completed=commit_store.known_of(connection, table_id, instants),
        groups={worker.info.group for worker in alive},
        stale_seconds=policy.compaction.stale_plan_seconds,
    )


def _unproved(table: Registration, sightings: Sightings) -> str | None:
    """Returns why no job can prove that a writer of the table is dead, or roll back its write; None if a job can."""
    if not is_provable(table.lock.provider):
        return "the table's lock cannot be proved, so a cleaning has to roll it back"
    if has_flink(table, sightings):
        return "Flink writes the table, and a restarted Flink job may commit it"
    return None


def paused(pause: Pause | None, policy: Policy) -> str | None:
    """Returns why nothing may start, as a sentence without a full stop; None if jobs may start."""
    if pause:
        why = f" ({pause.reason})" if pause.reason else ""
        return f"{pause.by} paused all upkeep on {utc_minute(pause.since)}{why}"
    return "the table's policy has paused it" if policy.paused else None


def frozen_by(freezes: Sequence[Freeze], table: Subject, now: datetime) -> Wait | None:
    """Returns the wait for the end of a freeze of the table; None if the table is not frozen now."""
    found = lasting(freezes, table, now)
    return Wait("frozen", str(found), found.ends_at) if found else None


def _withdrawal(pause: str | None, frozen: Wait | None, *, is_closed: bool) -> Problem | None:
    if pause:
        return WITHDRAWN_BY_PAUSE
    if frozen:
        return WITHDRAWN_BY_FREEZE
    return WITHDRAWN_BY_WINDOW if is_closed else None


def _misplaced_rows(unresolved: Sequence[Incident]) -> str | None:
    found = with_misplaced_rows(unresolved)
    return f"rows of {count(len(found), 'commit')} are misplaced" if found else None


def _one_sided(connection: Connection, snapshot: TableSnapshot, policy: Policy) -> dict[str, int]:
    """Returns the splits of no use. Reads nothing if no split is due."""
    settings = policy.bucket_resize
    largest = max((each.largest_range_bytes for each in snapshot.partitions), default=0)
    if settings.mode is Mode.OFF or largest <= settings.split_bytes:
        return {}
    return one_sided_splits(job_store.succeeded(connection, snapshot.table_id, JobKind.BUCKET_RESIZE, _RESIZES))


def has_waited(last: Decision, now: datetime) -> bool:
    """Returns whether the job must no longer wait for a quiet hour, according to the last decision. This is so if the
    job was due and waited for other jobs or limits, which may outlast the quiet hour, or if it has waited for a quiet
    hour for a day."""
    if last.verdict is Verdict.WAIT:
        return True
    return last.code == NOT_QUIET and now - last.first_at >= _QUIET_WITHIN


def _attempted(recent: Sequence[Job]) -> list[str]:
    """Returns the instants in the parameters of the last successful repair."""
    repairs = (job for job in recent if job.kind is JobKind.REPAIR and job.state is JobState.SUCCEEDED)
    last = next(repairs, None)
    return list(last.params.get("instants") or ()) if last else []


def _trigger_contexts(
    now: datetime,
    calendars: Mapping[JobKind, Calendar],
    history: Mapping[JobKind, JobHistory],
    facts: DecisionFacts,
    objective: TableObjective,
    *,
    has_flink: bool,
) -> dict[JobKind, TriggerContext]:
    before, own = facts.before, frozenset(instant for job in facts.recent for instant in job.instants)
    withheld = withheld_plans(facts.recent, now)
    return {
        kind: TriggerContext(
            now,
            calendars.get(kind),
            history[kind].began_at,
            own,
            withheld=withheld,
            is_unfinished=history[kind].is_unfinished,
            objective=objective,
            seen_instant=history[kind].last_instant,
            has_waited=kind in before and has_waited(before[kind], now),
            has_flink=has_flink,
        )
        for kind in DECIDED
    }


def _calendars(
    policy: Policy, before: Mapping[JobKind, Decision], withdrawn: Collection[JobKind], now: datetime
) -> dict[JobKind, Calendar]:
    """Returns the calendars of the kinds with a cron expression.

    If scheduled times have passed since the last decision, one job is due, and it stays due until it starts. If the job
    is withdrawn, the next job stays due in the same way.
    """
    found = {}
    for kind in DECIDED:
        # A repair has no calendar.
        expression = getattr(getattr(policy, kind.value), "cron", None)
        if expression is None:
            continue
        next_at = next_after(expression, policy.time_zone, now)
        last = before.get(kind)
        missed = next_after(expression, policy.time_zone, last.last_at) if last else None
        is_waiting = kind in withdrawn or (last is not None and last.verdict is Verdict.WAIT)
        found[kind] = Calendar(is_waiting or (missed is not None and missed <= now), next_at)
    return found


def _ran_at(snapshot: TableSnapshot) -> dict[JobKind, datetime]:
    since = {
        JobKind.COMPACTION: snapshot.since_compaction,
        JobKind.CLUSTERING: snapshot.since_clustering,
        JobKind.CLEANING: snapshot.since_cleaning,
    }
    return {kind: each.at for kind, each in since.items() if each.at}
