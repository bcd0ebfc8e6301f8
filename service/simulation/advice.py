"""Advice: the cheapest setting of a table that keeps reads cheap enough, found by simulating its past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from jobs.contract import JobKind
from jobs.kinds.results import NO_WORK
from jobs.spec import Spec
from service.lake.table import TableType
from service.model.formatting import count
from service.model.record import Record
from service.policies.settings import Trigger
from service.queue.cost_model import Basis
from service.simulation.simulator import simulated

if TYPE_CHECKING:
    from service.policies.policy import Policy
    from service.simulation.outcome import TableOutcome
    from service.simulation.simulator import Expected, Fleet
    from service.simulation.table_past import TablePast

SETTING = "compaction.commits"

PERIOD = timedelta(days=7)
"""The past that is simulated."""

MOST_COMMITS = 20_000
"""A table with more commits in the period gets no advice, because each simulation would take too long."""

_STEPS = (2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
_LEAST_COMMITS = 30
_LEAST_SECONDS = 86_400.0
_LEAST_SAVING = 0.1


class AdviceState(StrEnum):
    """`none`: nothing better is known, `because` says why. `kept`: it was applied, and a week was as foreseen."""

    NONE = "none"
    OPEN = "open"
    APPLIED = "applied"
    KEPT = "kept"
    TAKEN_BACK = "taken-back"
    DISMISSED = "dismissed"


@dataclass(frozen=True)
class Figures:
    """What a setting costs in a day, by the simulation. `overhead` is the read overhead that is not exceeded in 95 % of
    the time."""

    jobs: float
    seconds: float
    gb_hours: float
    overhead: float

    @classmethod
    def of(cls, outcome: TableOutcome, days: float) -> Figures:
        return cls(outcome.jobs / days, outcome.seconds / days, outcome.gb_hours / days, outcome.overhead)

    @property
    def cost(self) -> float:
        """GB-hours, or hours where workers do not report their memory."""
        return self.gb_hours or self.seconds / 3600


@dataclass(frozen=True)
class Advice(Record):
    """The last advice about a table. `figures` are those of the present setting (`now_...`) and of the advised one
    (`new_...`), and the read overhead that is allowed (`most_overhead`)."""

    table_id: str
    computed_at: Annotated[datetime, Spec("When it was computed", examples=("2026-01-01T12:00:00Z",))]
    state: Annotated[AdviceState, Spec("What has become of it")]
    because: Annotated[
        str,
        Spec(
            "The advice with its figures, or why there is none",
            examples=("compaction every 12 commits instead of 5: -58 % GB-hours, read overhead 1.14",),
        ),
    ]
    setting: Annotated[str | None, Spec("The setting of the policy; null without advice", examples=(SETTING,))] = None
    before: Annotated[int | None, Spec("Its value when the advice was computed", examples=(5,))] = None
    after: Annotated[int | None, Spec("The value that is advised", examples=(12,))] = None
    figures: Annotated[
        Mapping[str, float],
        Spec("A day of the setting now and of the new one", examples=({"now_gb_hours": 1.2, "new_gb_hours": 0.5},)),
    ] = field(default_factory=dict)
    own_before: int | None = None  # The value of the table's own level before it was applied; None if it had none.
    changed_at: Annotated[datetime | None, Spec("When it was applied, dismissed or taken back")] = None


def advised(past: TablePast, fleet: Fleet, expected: Expected, begin: float, now: datetime) -> Advice:
    """Returns the advice about a table, from its commits since `begin`."""
    none = Advice(past.id, now, AdviceState.NONE, "")
    most = past.policy.advice.read_overhead
    if obstacle := _obstacle(past, begin, now.timestamp()):
        return replace(none, because=obstacle)
    if expected(past.id, JobKind.COMPACTION.value, NO_WORK, dry_run=False).basis is Basis.DEFAULT:
        return replace(
            none, because="too little is known: no compaction has ended, so that nobody knows what one costs"
        )
    begin = max(begin, past.writes[0].at)
    days = (now.timestamp() - begin) / 86_400

    def figures(commits: int) -> Figures:
        policy = replace(past.policy, compaction=replace(past.policy.compaction, commits=commits))
        outcome = simulated([replace(past, policy=policy)], fleet, expected, begin, now.timestamp())
        return Figures.of(outcome.tables[past.id], days)

    present = past.policy.compaction.commits
    today = figures(present)
    best, found = present, today
    # The overhead grows with the number of commits, and the cost falls.
    if today.overhead <= most:
        for each in (step for step in _STEPS if step > present):
            if (next_one := figures(each)).overhead > most:
                break
            best, found = each, next_one
        if found.cost > (1 - _LEAST_SAVING) * today.cost:
            return replace(none, because=f"compaction every {count(present, 'commit')} is about the cheapest")
    else:
        for each in (step for step in reversed(_STEPS) if step < present):
            best, found = each, figures(each)
            if found.overhead <= most:
                break
        if found.overhead >= today.overhead:
            because = f"no setting brings the read overhead of {today.overhead:.2f} to {most:g}"
            return replace(none, because=because)
    saved = f"{found.cost / today.cost - 1:+.0%}".replace("%", " %") if today.cost else "no"
    unit = "GB-hours" if today.gb_hours else "work"
    because = (
        f"compaction every {count(best, 'commit')} instead of {present}: {saved} {unit}, read overhead"
        f" {found.overhead:.2f}"
    )
    told = {f"now_{name}": value for name, value in vars(today).items()}
    told |= {f"new_{name}": value for name, value in vars(found).items()}
    return Advice(
        *(past.id, now, AdviceState.OPEN, because, SETTING, present, best), figures={**told, "most_overhead": most}
    )


def worse(figures: Mapping[str, float], overhead: float | None, gb_hours_per_day: float) -> str | None:
    """Returns how the outcome is worse than foreseen, as a clause; None if it is not."""
    try:
        before, foreseen = figures["now_gb_hours"], figures["new_gb_hours"]
        expected, allowed = figures["new_overhead"], figures["most_overhead"]
    except KeyError:
        return "what was foreseen is not known any more"
    most = 1 + 1.25 * (max(expected, allowed) - 1)
    if overhead is not None and overhead > most:
        return f"the read overhead is {overhead:.2f}, {expected:.2f} was foreseen"
    # An advice that costs more makes reads cheaper.
    if foreseen and gb_hours_per_day > 1.25 * max(before, foreseen):
        return f"jobs cost {gb_hours_per_day:.2g} GB-hours a day, {foreseen:.2g} were foreseen"
    return None


def _obstacle(past: TablePast, begin: float, end: float) -> str | None:
    policy: Policy = past.policy
    compaction = policy.compaction
    if past.table_type is not TableType.MERGE_ON_READ or not compaction.enabled:
        return "only compactions are advised on, and the table has none"
    if policy.objective.concerns_reads:
        return "the objective says when logs are compacted"
    if compaction.cron is not None or compaction.trigger is not Trigger.COMMITS:
        return "compactions do not start by the number of commits alone"
    if len(past.writes) > MOST_COMMITS:
        return f"the table has more than {MOST_COMMITS} commits in {PERIOD.days} days"
    if len(past.writes) < _LEAST_COMMITS or end - max(begin, past.writes[0].at) < _LEAST_SECONDS:
        return (
            f"too little is known: {count(len(past.writes), 'commit')}; {_LEAST_COMMITS} in more than a day are needed"
        )
    return None
