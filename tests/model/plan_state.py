"""A plan on the timeline, with its files and the processes that work on it; and the conditions for its files. The step
from requested to inflight is a compare-and-set, because the file can be created only once. Completion is not: the
inflight file stays, and each completion makes another file (table version 8 and later name it by the completion time).
A rollback makes an inflight plan requested again and removes its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.model.state import COMPLETED, INFLIGHT, NOBODY, REQUESTED

if TYPE_CHECKING:
    from tests.model.plan_rules import PlanFaults

NEXT = {"begun": "half", "half": "written"}  # the steps in which files are written
ALIVE = ("unrecorded", "begun", "half", "written", "committing")


class Job(NamedTuple):
    """One attempt of our job."""

    attempt: int = 1
    step: str = "new"

    @property
    def name(self) -> str:
        return f"job {self.attempt}"


class Plan(NamedTuple):
    """A plan; processes have names."""

    runners: tuple[str, ...]
    faults: PlanFaults
    phase: str = REQUESTED
    begun: str = NOBODY  # The process that made the plan inflight.
    beating: str = NOBODY  # The process that writes the heartbeat.
    files: frozenset[tuple[str, str]] = frozenset()  # The files that the processes have written, in two steps each.
    completed: tuple[str, ...] = ()  # The processes that have completed the plan.
    job: Job = Job()
    zombie: Job | None = None
    ours: str = NOBODY  # The process that has begun the plan, according to the record of the service.
    is_silent: bool = False  # Whether nobody has written for a long time.
    robbed: str = NOBODY  # A process that is alive although the service has undone its work.


def violation(plan: Plan) -> str | None:
    """Returns the first violation, or None."""
    if plan.robbed:
        return f"The service has undone the work of {plan.robbed}, which is alive."
    return of_files(plan)


def of_completions(plan: Plan) -> str | None:
    """Returns a violation if the plan has completed more than once, because a clustering that completes twice doubles
    its rows."""
    return f"The plan was completed by {' and by '.join(plan.completed)}." if len(plan.completed) > 1 else None


def of_files(plan: Plan) -> str | None:
    """Returns a violation unless exactly the files of the completing process exist."""
    if twice := of_completions(plan):
        return twice
    if plan.phase != COMPLETED:
        return None
    (winner,) = plan.completed
    if not {(winner, "half"), (winner, "written")} <= plan.files:
        return f"The plan was completed by {winner}, whose files were removed: they cannot be read."
    others = sorted({owner for owner, _ in plan.files} - {winner})
    if others and not any(works(plan, owner) for owner in others):
        return f"The plan was completed by {winner}, and a listing finds the files of {others[0]} as well."
    return None


def works(plan: Plan, name: str) -> bool:
    """Returns whether the process with this name is alive and works on the plan."""
    if name.startswith("runner"):
        return plan.runners[int(name.split()[1])] in ALIVE
    return any(job is not None and job.name == name and job.step in ALIVE for job in (plan.job, plan.zombie))


def begun_by(plan: Plan, name: str, *, has_heartbeat: bool) -> Plan:
    """Returns the plan after the process with this name has made it inflight."""
    return plan._replace(phase=INFLIGHT, begun=name, beating=name if has_heartbeat else NOBODY, is_silent=False)


def undone(plan: Plan) -> Plan:
    """Returns the plan after a rollback: requested again, without heartbeat and files."""
    return plan._replace(phase=REQUESTED, begun=NOBODY, beating=NOBODY, files=frozenset(), is_silent=False)


def completed(plan: Plan, name: str) -> Plan:
    """Returns the plan after a completion. Hudi removes files that have markers but are not part of the commit
    (`reconcileAgainstMarkers`)."""
    completed = (*plan.completed, name)
    kept = frozenset(item for item in plan.files if item[0] in completed)
    return plan._replace(phase=COMPLETED, completed=completed, files=kept, beating=NOBODY)
