"""Decides which jobs each table needs now and why, and starts those that may run."""

from __future__ import annotations

import logging
import math
import secrets
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from jobs import tracing
from jobs.logs import log_context
from service.access.errors import SecretUnreadableError
from service.catalog import decision_times, table_store, watch_store
from service.db.engine import may_find, reading, writing
from service.delegation import plan_store
from service.delegation.plan import PlanState
from service.delivery import outbox
from service.model.calls import calls
from service.model.errors import DatabaseUnavailableError
from service.model.job_errors import FenceLosesFlinkError, JobConflictError
from service.policies import freeze_store, pause_store
from service.queue import breaker_store, gain_store, job_changes, job_store
from service.queue.hand_over import wait_for_writers
from service.queue.hand_over.policy import loses_batches
from service.queue.job import Job
from service.queue.job_events import job_ended, job_queued
from service.scheduling import budgets, decision_store, delegated, outcome_records
from service.scheduling.admission import ANY_CAPACITY, Limits, Load, admit, capacity_wanted
from service.scheduling.decision import DECIDED, Decision, Run, Skip, Suggest, Verdict, Wait
from service.scheduling.decision_inputs import frozen_by, inputs_of, paused
from service.scheduling.expected_costs import NO_COSTS, costs_of
from service.scheduling.worth import RoundFacts, renew, weighed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import Connection, Engine

    from jobs.contract import JobKind
    from service.access.secret_cipher import SecretCipher
    from service.events.database import Database
    from service.queue.forecaster import Forecaster
    from service.scheduling.decision import Admission
    from service.scheduling.decision_inputs import DecisionInputs
    from service.scheduling.expected_costs import Costs

BY_POLICY = "policy"
"""Value of `Job.requested_by` for a job that the service started by itself."""

_AT_LEAST_EVERY = timedelta(hours=1)
"""Longest time between two decisions about a table, even if nothing wakes it."""
_AFTER_ERROR = timedelta(minutes=10)
_GIVEN_WAY_SECONDS = 0.02  # Each decision waits at most this long for calls that are being answered.

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SchedulerConfig:
    """The settings of the scheduler. `tables_at_once` and `seconds_at_once` (of processor time) limit a round, so that
    decisions about very many tables leave time for calls and polls. A round decides about at least one table."""

    limits: Limits = field(default_factory=Limits)
    worker_hours_by_group: Mapping[str, float] = field(default_factory=dict)  # The budgets, as for `budgets.read`.
    max_attempts: int = 3
    tables_at_once: int = 200
    seconds_at_once: float = math.inf


@dataclass(frozen=True)
class SchedulerResult:
    """The number of tables decided about, and the ids of the jobs started."""

    tables: int = 0
    jobs: tuple[str, ...] = ()
    has_events: bool = False  # Whether events were published, for which others may wait.

    def __str__(self) -> str:
        return f"decided about {self.tables} tables; started: {', '.join(self.jobs) or 'nothing'}"


@dataclass(frozen=True)
class Evaluation:
    """The decisions that would be made now, one of each kind. Before the first poll of the table there are none, and
    `polled_at` is None."""

    decisions: tuple[Decision, ...] = ()
    polled_at: datetime | None = None


def run_once(database: Database, config: SchedulerConfig, forecaster: Forecaster | None = None) -> SchedulerResult:
    """Decides about the tables that are due, each in its own transaction. Every replica may run it at any time.
    `forecaster` knows the expected cost of jobs."""
    now = database.clock()
    _wake_deferred(database.engine, now, config.limits)
    with reading(database.engine) as connection:
        due = decision_times.due(connection, now, config.tables_at_once)
        spent = budgets.read(connection, now, due, config.worker_hours_by_group) if due else budgets.Budgets()
        facts = RoundFacts(costs_of(connection, forecaster, due), spent)
    decided, has_events = 0, False
    started: list[str] = []
    until = time.thread_time() + config.seconds_at_once
    for table_id in due:
        if decided and time.thread_time() > until:
            break
        calls.give_way(_GIVEN_WAY_SECONDS)
        try:
            with log_context(table_id=table_id), writing(database.engine, quietly=True) as connection:
                if not decision_times.claim(connection, table_id, now):
                    continue
                job, of_table = _decide(
                    connection, table_id, now, config, cipher=database.cipher, started=len(started), facts=facts
                )
                started += [job.id] if job else []
                has_events |= of_table
            if of_table:
                database.notifier.notify()
        except DatabaseUnavailableError:
            raise
        except Exception:
            # A failure with one table must not stop the others.
            log.exception("The decision about table %s failed", table_id)
            with writing(database.engine) as connection:
                decision_times.settle(connection, table_id, next_decision_at=now + _AFTER_ERROR)
        decided += 1
    outcome_records.wake_displaced(database.engine, now)
    if started:
        log.info("Started by policy: %s", ", ".join(started))
    return SchedulerResult(decided, tuple(started), has_events)


def evaluate(
    database: Database, table_id: str, config: SchedulerConfig, forecaster: Forecaster | None = None
) -> Evaluation:
    """Returns the decisions that would be made about a table now. Writes nothing. Raises TableNotFoundError."""
    with reading(database.engine) as connection:
        costs = costs_of(connection, forecaster, [table_id])
        return evaluated(connection, table_id, database.clock(), config, costs)


def evaluated(
    connection: Connection, table_id: str, now: datetime, config: SchedulerConfig, costs: Costs = NO_COSTS
) -> Evaluation:
    """Does the same as `evaluate`, in a transaction of the caller. `costs` are the known expected costs of jobs."""
    spent = budgets.read(connection, now, [table_id], config.worker_hours_by_group)
    inputs = inputs_of(connection, table_id, now, spent, costs)
    if inputs is None:
        return Evaluation()
    admissions = admit(inputs.proposals, inputs.situation, config.limits, Load(job_store.count_active(connection)))
    found = tuple(_decision(kind, admissions[kind], inputs) for kind in DECIDED)
    return Evaluation(found, inputs.situation.polled_at)


def _wake_deferred(engine: Engine, now: datetime, limits: Limits) -> None:
    """Wakes as many tables that wait for other tables' jobs as there is capacity for."""
    if not may_find(engine, decision_times.ANY_DEFERRED):
        return
    with reading(engine) as connection:
        wanted = decision_times.wanted_capacity(connection, now)
        load = Load(job_store.count_active(connection))
    if free := [each for each in wanted if limits.has_capacity(each, load)]:
        with writing(engine) as connection:
            decision_times.wake_deferred(
                connection, now, min(limits.active - load.total, limits.at_once), capacities=free
            )


def _decide(
    connection: Connection,
    table_id: str,
    now: datetime,
    config: SchedulerConfig,
    *,
    cipher: SecretCipher,
    started: int,
    facts: RoundFacts,
) -> tuple[Job | None, bool]:
    """Decides about a claimed table. Returns the job that was started, and whether events were published. `started`
    counts the jobs of this round."""
    inputs = inputs_of(connection, table_id, now, facts.budgets, facts.costs)
    withdrawn: list[str] = []
    if inputs and inputs.withdrawal and inputs.withdrawable:
        withdrawn = job_store.withdraw(connection, error=inputs.withdrawal, now=now, table_id=table_id)
        inputs = inputs_of(connection, table_id, now, facts.budgets, facts.costs)
    if inputs is None:
        decision_times.settle(connection, table_id, next_decision_at=now + _AT_LEAST_EVERY)
        return None, False
    admissions = _admit(connection, inputs, config.limits, started)
    job = _start(connection, table_id, inputs, admissions, cipher=cipher, max_attempts=config.max_attempts, facts=facts)
    decisions = [_decision(kind, admissions[kind], inputs) for kind in DECIDED]
    if job:
        decisions = [replace(each, job_id=job.id) if each.kind is job.kind else each for each in decisions]
    for decision in decisions:
        before = inputs.before.get(decision.kind)
        if decision.warning and not (before and before.warning):
            log.warning("Table %s: %s", table_id, decision.warning)
    decision_store.record(connection, table_id, decisions, inputs.before)
    renew(connection, inputs, facts)
    outcome_records.record(connection, table_id, inputs)
    _record_plans(connection, inputs, admissions, job)
    _settle(connection, table_id, inputs, admissions, _next_decision_at(inputs, admissions, job))
    events = [job_changes.of_job(connection, job_id, now, job_ended) for job_id in withdrawn]
    if job:
        table = table_store.get(connection, table_id)
        events += [job_queued(job, table, now), *wait_for_writers.draining_events(job, table, now)]
    outbox.publish(connection, events, now=now)
    return job, bool(events)


def _record_plans(
    connection: Connection, inputs: DecisionInputs, admissions: Mapping[JobKind, Admission], job: Job | None
) -> None:
    """Records the states of the plans that writers delegate."""
    now = inputs.situation.now
    submitted = set(job.params.get("plans") or ()) if job else set()
    active = inputs.plans_of_active_jobs | submitted
    for seen in [
        *inputs.ended_plans,
        *delegated.waiting(inputs.plans, inputs.snapshot, admissions, active),
    ]:
        plan_store.record(connection, seen.plan, seen.state, seen.because, now)
    for plan in inputs.plans:
        if job and plan.instant in submitted and plan.service.kind is job.kind and not plan.is_metadata:
            plan_store.record(connection, plan, PlanState.SUBMITTED, None, now, job_id=job.id)


def _settle(
    connection: Connection,
    table_id: str,
    inputs: DecisionInputs,
    admissions: Mapping[JobKind, Admission],
    next_decision_at: datetime,
) -> None:
    codes = {kind: admission.code for kind, admission in admissions.items() if isinstance(admission, Wait)}
    waits_for = {
        wanted for kind, code in codes.items() if (wanted := capacity_wanted(code, kind, inputs.group_of(kind)))
    }
    if waits_for:
        # A table that waits for several capacities is woken by any of them.
        wanted = waits_for.pop() if len(waits_for) == 1 else ANY_CAPACITY
        decision_times.defer(connection, table_id, next_decision_at=next_decision_at, wanted=wanted)
    else:
        decision_times.settle(connection, table_id, next_decision_at=next_decision_at)


def _admit(connection: Connection, inputs: DecisionInputs, limits: Limits, started: int) -> dict[JobKind, Admission]:
    if not any(isinstance(proposal, Run) for proposal in inputs.proposals.values()):
        return admit(inputs.proposals, inputs.situation, limits, Load())
    # The lock on the pause keeps other replicas from starting or pausing automatic jobs until the transaction ends, so
    # these values stay valid.
    pause = pause_store.pause_of(connection, for_update=True)
    now = inputs.situation.now
    frozen = frozen_by(freeze_store.not_ended(connection, now), inputs.subject, now)
    situation = replace(inputs.situation, paused=paused(pause, inputs.policy), frozen=frozen)
    return admit(inputs.proposals, situation, limits, Load(job_store.count_active(connection), started))


def _start(
    connection: Connection,
    table_id: str,
    inputs: DecisionInputs,
    admissions: dict[JobKind, Admission],
    *,
    cipher: SecretCipher,
    max_attempts: int,
    facts: RoundFacts,
) -> Job | None:
    """Queues the admitted job, if any. If a conflicting job was queued meanwhile, the admission becomes `Wait`."""
    run = next((each for each in admissions.values() if isinstance(each, Run)), None)
    if run is None:
        return None
    now = inputs.situation.now
    table = table_store.get(connection, table_id)
    try:
        table.check_readable(cipher)
    except SecretUnreadableError as error:
        admissions[run.kind] = Wait(error.type, f"{run.because}; but {error.title}", warning=run.warning)
        return None
    if loses_batches(run.kind, run.params, table, sightings := watch_store.engines_of(connection, table_id)):
        because = f"{run.because}; but the policy fences writers, which would lose the batch of a Flink job"
        admissions[run.kind] = Wait(FenceLosesFlinkError.type, because, warning=run.warning)
        return None
    breaker = breaker_store.find(connection, table_id, run.kind, now)
    job = Job(
        id=f"job_{secrets.token_hex(8)}",
        table_id=table_id,
        kind=run.kind,
        params=run.params,
        max_attempts=max_attempts,
        created_at=now,
        not_before=max(now, breaker.next_try_at) if breaker else now,
        priority=inputs.policy.priority,
        worker_group=run.worker_group or inputs.policy.worker_group,
        timeout_seconds=inputs.policy.timeout_seconds,
        requested_by=BY_POLICY,
        traceparent=tracing.for_new_job(),
        reason=run.because,
    )
    found = weighed(connection, job, inputs, facts.costs.get((table_id, job.kind)))
    job = found.job
    try:
        queued = job_store.submit(connection, wait_for_writers.made_to_wait(connection, job, table, sightings, now))
    except JobConflictError as error:
        admissions[run.kind] = Wait("table-busy", f"{run.because}; but {error.detail}", warning=run.warning)
        return None
    admissions[run.kind] = replace(run, because=job.reason or run.because)
    if found.gain:
        gain_store.expect(connection, queued, found.gain, found.overhead)
    return queued


def _decision(kind: JobKind, admission: Admission, inputs: DecisionInputs) -> Decision:
    now = inputs.situation.now
    last = inputs.before.get(kind)
    code, params, since = "due", getattr(admission, "params", {}), None
    match admission:
        case Run():
            verdict = Verdict.RUN
        case Suggest():
            verdict = Verdict.SUGGEST
        case Skip(code=code):
            verdict = Verdict.SKIP
        case Wait(code=code):
            verdict = Verdict.WAIT
            since = (last.wanted_since if last and last.verdict is Verdict.WAIT else None) or now
    return Decision(
        kind, verdict, code, admission.because, now, now, params=params, warning=admission.warning, wanted_since=since
    )


def _next_decision_at(inputs: DecisionInputs, admissions: Mapping[JobKind, Admission], job: Job | None) -> datetime:
    """Returns the first moment at which the passing of time alone may change a decision. Any other change makes a new
    decision due by itself."""
    now = inputs.situation.now
    moments = [admission.until for admission in admissions.values() if isinstance(admission, Skip | Wait)]
    moments += [calendar.next_at for calendar in inputs.calendars.values()]
    if job or inputs.withdrawable:
        moments.append(inputs.closes_at)
    return min(at for at in (*moments, now + _AT_LEAST_EVERY) if at and at > now)
