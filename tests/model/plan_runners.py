"""Steps of Hudi's runners and of our job: each may begin a plan, write its files and complete it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tests.model.plan_rules import Check, PlanProtocol, PlanScenario, Proof
from tests.model.plan_state import ALIVE, NEXT, Job, Plan, begun_by, completed, undone, violation, works
from tests.model.search import Found, explore
from tests.model.state import COMPLETED, INFLIGHT, NOBODY, REQUESTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.model.state import Label


def search(
    protocol: PlanProtocol, scenario: PlanScenario, invariant: Callable[[Plan], str | None] | None = None
) -> Found:
    """Explores every state of the scenario under this protocol, or stops at the first violation."""
    first = Plan(("idle",) * scenario.runners, scenario.faults)
    return explore(scenario.name, first, partial(steps, protocol, scenario), invariant or violation)


def steps(protocol: PlanProtocol, scenario: PlanScenario, plan: Plan) -> Iterator[tuple[Label, Plan]]:
    """Yields the possible next steps."""
    for index, _ in enumerate(plan.runners):
        yield from _runner(scenario, plan, index)
    yield from _job(protocol, scenario, plan)
    yield from _zombie(protocol, plan)
    yield from _time(protocol, scenario, plan)
    yield from _faults(scenario, plan)


def _runner(scenario: PlanScenario, plan: Plan, index: int) -> Iterator[tuple[Label, Plan]]:
    """Yields the steps of a runner of Hudi, which checks a heartbeat if the plan has one, but never checks who else
    has begun the plan."""
    name, step = f"runner {index}", plan.runners[index]

    def to(after: Plan, new: str) -> Plan:
        return after._replace(runners=(*plan.runners[:index], new, *plan.runners[index + 1 :]))

    if step == "idle" and plan.phase == REQUESTED:
        begun = begun_by(plan, name, has_heartbeat=scenario.has_heartbeat)
        yield ("{} begins the plan.", name.capitalize()), to(begun, "begun")
    elif step == "idle" and plan.phase == INFLIGHT:
        if scenario.hijacks:
            yield ("{} finds the plan inflight.", name.capitalize()), to(plan, "hijacking")
        elif not plan.beating if scenario.has_heartbeat else not works(plan, plan.begun):
            begun = begun_by(undone(plan), name, has_heartbeat=scenario.has_heartbeat)
            text = "{} rolls back what {} has begun, and begins the plan anew."
            yield (text, name.capitalize(), plan.begun), to(begun, "begun")
    elif step == "hijacking" and plan.phase == COMPLETED:
        text = "{} rolls back the plan, which has completed meanwhile, and fails."
        yield (text, name.capitalize()), to(plan._replace(files=frozenset()), "over")
    elif step == "hijacking":
        begun = begun_by(undone(plan), name, has_heartbeat=scenario.has_heartbeat)
        yield ("{} rolls back the plan and begins it anew.", name.capitalize()), to(begun, "begun")
    elif step in NEXT:
        written = plan._replace(files=plan.files | {(name, NEXT[step])})
        yield ("{} writes files.", name.capitalize()), to(written, NEXT[step])
    elif step == "written" and plan.phase == REQUESTED:
        yield ("{} fails, since the plan is not inflight any more.", name.capitalize()), to(plan, "over")
    elif step == "written":
        yield ("{} completes the plan.", name.capitalize()), to(completed(plan, name), "over")


def _job(protocol: PlanProtocol, scenario: PlanScenario, plan: Plan) -> Iterator[tuple[Label, Plan]]:
    job = plan.job

    def to(after: Plan, step: str) -> Plan:
        return after._replace(job=job._replace(step=step))

    if job.step == "new" and scenario.hijacks and protocol.leaves_plans_to_writers:
        text = "Our job is refused, since a writer executes plans as well."
        yield (text,), to(plan, "over")
    elif job.step == "new":
        yield from _look_at_plan(protocol, plan)
    elif job.step == "taking":
        yield ("Our job rolls back what {} has begun.", plan.begun), to(_after_takeover(plan), "looked")
    elif job.step == "looked" and plan.phase == REQUESTED:
        begun = to(begun_by(plan, job.name, has_heartbeat=scenario.has_heartbeat), "unrecorded")
        yield ("Our job begins the plan in attempt {}.", job.attempt), begun
    elif job.step == "looked":
        yield ("Our job is refused, since {} has begun the plan meanwhile.", plan.begun), to(plan, "refused")
    elif job.step == "unrecorded":
        yield ("The service records the plan as its own.",), to(plan._replace(ours=job.name), "begun")
    elif job.step in NEXT:
        written = plan._replace(files=plan.files | {(job.name, NEXT[job.step])})
        yield ("Our job writes files in attempt {}.", job.attempt), to(written, NEXT[job.step])
    elif job.step == "written":
        yield from _commit(protocol, plan, job, to)
    elif job.attempt < scenario.attempts and (
        job.step == "dead" or (job.step == "refused" and not protocol.taken_is_sticky)
    ):
        again = plan._replace(job=Job(job.attempt + 1))
        yield ("The service tries again, in attempt {}.", job.attempt + 1), again


def _look_at_plan(protocol: PlanProtocol, plan: Plan) -> Iterator[tuple[Label, Plan]]:
    job = plan.job
    before = plan if protocol.owns_after_begin or plan.ours else plan._replace(ours="the instant")
    looked = before._replace(job=job._replace(step="looked"))
    if plan.phase == COMPLETED:
        yield ("Our job finds the plan completed.",), plan._replace(job=job._replace(step="over"))
    elif plan.phase == REQUESTED:
        text = "Our job finds the plan requested."
        if not protocol.owns_after_begin:
            text = "Our job finds the plan requested, and the service records it as its own."
        yield (text,), looked
    elif (is_ours := _is_ours(protocol, plan)) or _is_proved_dead(protocol, plan):
        why = "the plan is its own" if is_ours else "its runner counts as dead"
        if not protocol.takeover_is_atomic:
            taking = plan._replace(job=job._replace(step="taking"))
            yield ("Our job sets about rolling back what {} has begun, since {}.", plan.begun, why), taking
            return
        after = _after_takeover(plan)._replace(job=job._replace(step="looked"))
        yield ("Our job rolls back what {} has begun, since {}.", plan.begun, why), after
    else:
        refused = before._replace(job=job._replace(step="refused"))
        yield ("Our job is refused, since {} has begun the plan.", plan.begun), refused


def _is_ours(protocol: PlanProtocol, plan: Plan) -> bool:
    return plan.ours == plan.begun if protocol.knows_its_begin and protocol.owns_after_begin else bool(plan.ours)


def _is_proved_dead(protocol: PlanProtocol, plan: Plan) -> bool:
    return protocol.proof is Proof.NONE or plan.is_silent


def _after_takeover(plan: Plan) -> Plan:
    is_anothers = plan.begun.startswith("runner") and works(plan, plan.begun)
    return undone(plan)._replace(robbed=plan.begun if is_anothers else NOBODY)


def _commit(
    protocol: PlanProtocol, plan: Plan, job: Job, to: Callable[[Plan, str], Plan]
) -> Iterator[tuple[Label, Plan]]:
    """Commits under the lock. Other runners also need the lock to complete the plan."""
    is_inflight = plan.phase == INFLIGHT
    allowed = {
        Check.OWN: is_inflight and plan.begun == job.name,
        Check.STATE: is_inflight,
        Check.NONE: plan.phase != REQUESTED,
    }
    if allowed[protocol.check]:
        yield ("Our job completes the plan in attempt {}.", job.attempt), to(completed(plan, job.name), "over")
        return
    text = "Our job finds under the lock that the plan is not its own any more, and does not complete it."
    kept = plan.files
    if protocol.removes_its_files:
        kept = frozenset(item for item in plan.files if item[0] != job.name)
    yield (text,), to(plan._replace(files=kept), "over")


def _zombie(protocol: PlanProtocol, plan: Plan) -> Iterator[tuple[Label, Plan]]:
    """Yields the steps of a frozen attempt that continues while the next one is active."""
    zombie = plan.zombie
    if zombie is None:
        return

    def to(after: Plan, step: str) -> Plan:
        return after._replace(zombie=zombie._replace(step=step) if step != "over" else None)

    if zombie.step in NEXT:
        written = plan._replace(files=plan.files | {(zombie.name, NEXT[zombie.step])})
        yield ("The frozen attempt {} goes on and writes files.", zombie.attempt), to(written, NEXT[zombie.step])
    elif zombie.step == "written":
        yield from _commit(protocol, plan, zombie, to)


def _time(protocol: PlanProtocol, scenario: PlanScenario, plan: Plan) -> Iterator[tuple[Label, Plan]]:
    """Lets time pass, so that a dead process is detected by its heartbeat or by its silence."""
    if plan.phase != INFLIGHT or plan.is_silent:
        return
    is_alive = works(plan, plan.begun)
    if scenario.has_heartbeat:
        if not is_alive or not plan.beating:
            yield ("The heartbeat of {} has expired.", plan.begun), plan._replace(beating=NOBODY, is_silent=True)
    elif not is_alive:
        yield ("For a generous time {} has written nothing.", plan.begun), plan._replace(is_silent=True)
    elif protocol.proof is Proof.PAUSE:
        yield ("For a moment {} writes nothing.", plan.begun), plan._replace(is_silent=True)


def _faults(scenario: PlanScenario, plan: Plan) -> Iterator[tuple[Label, Plan]]:
    faults, job = plan.faults, plan.job
    if faults.crashes and job.step in ("looked", "taking", *ALIVE):
        died = plan._replace(job=job._replace(step="dead"), faults=faults._replace(crashes=faults.crashes - 1))
        yield ("Our worker dies ({}).", job.step), died
    if faults.freezes and job.step in (*NEXT, "written") and plan.zombie is None:
        beating = NOBODY if plan.beating == job.name else plan.beating
        frozen = plan._replace(zombie=job, job=job._replace(step="dead"), beating=beating)
        text = "Our worker is frozen ({}), and the service takes it for dead."
        yield (text, job.step), frozen._replace(faults=faults._replace(freezes=faults.freezes - 1))
    for index, step in enumerate(plan.runners):
        if step not in ALIVE:
            continue
        if faults.deaths:
            died = plan._replace(runners=(*plan.runners[:index], "dead", *plan.runners[index + 1 :]))
            died = died._replace(faults=faults._replace(deaths=faults.deaths - 1))
            yield ("Runner {} dies ({}).", index, step), died
        if faults.stalls and plan.begun == f"runner {index}" and not plan.is_silent:
            stalled = plan._replace(beating=NOBODY, is_silent=True)
            text = "Runner {} is stalled ({}) for so long that it looks dead."
            yield (text, index, step), stalled._replace(faults=faults._replace(stalls=faults.stalls - 1))
