"""Which of the jobs that are due may start, beside everything else that goes on: rules for one table, and for all.

On one table at most one job that writes is active. If several are due they go in the order of `DECIDED`, but a kind
that has had its turn since another one began to wait lets that one go first; so each gets its turn, however often the
others are due. Everything that keeps a job from starting is a `Wait` with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from jobs.contract import DEFAULT_GROUP, JobKind
from service.incidents.incident import HELD_BACK
from service.model.formatting import count, duration
from service.queue.job import mutates
from service.scheduling.decision import DECIDED, Run, Wait
from service.scheduling.job_history import JobHistory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from service.queue.job import Job
    from service.scheduling.decision import Admission, Proposal

_LOOK_PATIENCE = timedelta(minutes=5)
"""How long a job that succeeded is waited for to show in what is known of the table. One that had nothing to do never
shows, for a table is only looked at when something has happened."""

_NEVER = JobHistory()


@dataclass(frozen=True)
class Limits:
    """Jobs active at once: on all tables, for single worker groups, and in each group of single kinds; and jobs started
    in one round.

    Each limit lies within the one before, and so room for whoever has waited longest is room everywhere: limits that
    cross could each have room at another moment, for ever.
    """

    active: int = 100
    per_group: Mapping[str, int] = field(default_factory=dict)
    per_kind: Mapping[JobKind, int] = field(default_factory=dict)
    at_once: int = 20

    def has_capacity(self, wanted: str, load: Load) -> bool:
        """Whether there is what a job waits for, as `capacity_wanted` calls it."""
        group, _, kind = wanted.partition("/")
        if load.total >= self.active:
            return False
        if wanted == ANY_CAPACITY:
            return True
        return not self._is_group_full(group, load) and not (kind and self._is_kind_full(group, JobKind(kind), load))

    def over(self, kind: JobKind, group: str, load: Load) -> Wait | None:
        """Why no more job of this kind may be started for this group."""
        if load.started >= self.at_once:
            return Wait(LIMITED, f"{count(load.started, 'job')} started a moment ago, no more at once")
        if load.total >= self.active:
            return Wait(LIMITED, f"{count(load.total, 'job')} active on all tables, {self.active} allowed")
        if self._is_group_full(group, load):
            of_group = count(load.of_group(group), "job")
            return Wait(GROUP_LIMITED, f"{of_group} active in worker group '{group}', {self.per_group[group]} allowed")
        if self._is_kind_full(group, kind, load):
            of_kind = count(load.of_kind(group, kind), f"{_name(kind)} job")
            return Wait(KIND_LIMITED, f"{of_kind} active in worker group '{group}', {self.per_kind[kind]} allowed")
        return None

    def _is_group_full(self, group: str, load: Load) -> bool:
        return group in self.per_group and load.of_group(group) >= self.per_group[group]

    def _is_kind_full(self, group: str, kind: JobKind, load: Load) -> bool:
        return kind in self.per_kind and load.of_kind(group, kind) >= self.per_kind[kind]


@dataclass(frozen=True)
class Load:
    """What there is of that: active jobs by kind and worker group, and those started in this round."""

    active: Mapping[tuple[JobKind, str], int] = field(default_factory=dict)
    started: int = 0

    @property
    def total(self) -> int:
        return sum(self.active.values())

    def of_group(self, group: str) -> int:
        return sum(number for (_, each), number in self.active.items() if each == group)

    def of_kind(self, group: str, kind: JobKind) -> int:
        return self.active.get((kind, group), 0)


LIMITED = "limit-reached"
GROUP_LIMITED = "group-limit-reached"
KIND_LIMITED = "kind-limit-reached"
"""The codes of waits for other tables' jobs: for any, for those of the worker group, for those of the kind in it."""

ANY_CAPACITY = "*"


def capacity_wanted(code: str, kind: JobKind, group: str) -> str | None:
    """What a job that waits with this code waits for, to be kept and compared; None if not for other tables' jobs."""
    return {LIMITED: ANY_CAPACITY, GROUP_LIMITED: group, KIND_LIMITED: f"{group}/{kind.value}"}.get(code)


@dataclass(frozen=True)
class Situation:
    """One table, beside its answers. Where a mapping has no entry for a kind, there is nothing to tell of it.

    `looked_at` is when the table was last looked at, `ran_at` when each service last ran on it, as far as that look
    could tell. `active` are its active jobs, dry runs left out. `group` is the worker group that runs them. `paused` is
    why nothing may start, `astray` what went astray, as sentences without their ends. `closed_until` is when the next
    maintenance window opens, None while one is open. `rest` are seconds between two jobs of a kind.
    """

    now: datetime
    looked_at: datetime
    ran_at: Mapping[JobKind, datetime] = field(default_factory=dict)
    active: Sequence[Job] = ()
    group: str = DEFAULT_GROUP
    paused: str | None = None
    astray: str | None = None
    closed_until: datetime | None = None
    history: Mapping[JobKind, JobHistory] = field(default_factory=dict)
    wanted_since: Mapping[JobKind, datetime] = field(default_factory=dict)
    rest: Mapping[JobKind, int] = field(default_factory=dict)


def admit(
    proposals: Mapping[JobKind, Proposal], situation: Situation, limits: Limits, load: Load
) -> dict[JobKind, Admission]:
    """Of all that is due on a table at most one is left to run."""
    admissions: dict[JobKind, Admission] = dict(proposals)
    due = {kind: answer for kind, answer in proposals.items() if isinstance(answer, Run)}
    free: list[JobKind] = []
    for kind, run in due.items():
        if obstacle := _obstacle(kind, situation):
            admissions[kind] = _waiting(obstacle, run)
        else:
            free.append(kind)
    chosen: JobKind | None = None
    for kind in sorted(free, key=lambda kind: _turn(kind, free, situation)):
        if chosen:
            admissions[kind] = _waiting(Wait("not-its-turn", f"{_name(chosen)} goes first"), due[kind])
        elif full := limits.over(kind, situation.group, load):
            admissions[kind] = _waiting(full, due[kind])
        else:
            chosen = kind
    return admissions


def _obstacle(kind: JobKind, situation: Situation) -> Wait | None:
    """What of the table itself keeps a kind from starting."""
    history = situation.history.get(kind, _NEVER)
    rested_at = history.ended_at + timedelta(seconds=situation.rest.get(kind, 0)) if history.ended_at else None
    if situation.paused:
        return Wait("paused", situation.paused)
    standing = next((job for job in situation.active if mutates(job.kind, dry_run=job.dry_run)), None)
    if standing:
        return Wait("table-busy", f"{_name(standing.kind)} {standing.id} is {standing.state.value}")
    if situation.astray and kind in HELD_BACK:
        return Wait("incident-open", f"{situation.astray}; a repair goes first, and needs what is there")
    if history.next_try_at and history.next_try_at > situation.now:
        description = (
            f"the last {_name(kind)} {history.description(situation.now)}; next try at {_at(history.next_try_at)}"
        )
        return Wait("failed-before", description, history.next_try_at)
    if rested_at and rested_at > situation.now and history.ended_at:
        ago = duration(situation.now - history.ended_at)
        description = f"the last {_name(kind)} ended {ago} ago; the next may start at {_at(rested_at)}"
        return Wait("too-soon", description, rested_at)
    if situation.closed_until:
        at = situation.closed_until
        return Wait("outside-window", f"the next maintenance window opens at {_at(at)}", at)
    if history.ended_at and not _is_shown(kind, history, situation):
        until = history.ended_at + _LOOK_PATIENCE
        if until > situation.now:
            because = f"the table has not been looked at since the last {_name(kind)} ended"
            return Wait("not-looked-at", because, until)
    return None


def _is_shown(kind: JobKind, history: JobHistory, situation: Situation) -> bool:
    """Whether the figures are of after the last successful job."""
    ran_at = situation.ran_at.get(kind)
    is_seen = ran_at is not None and history.began_at is not None and ran_at >= history.began_at
    return is_seen or (history.ended_at is not None and situation.looked_at > history.ended_at)


def _turn(kind: JobKind, due: Sequence[JobKind], situation: Situation) -> tuple[bool, int]:
    """Sorts the kinds that are due: those that had their turn while another one waited come last."""
    asked_at = situation.history.get(kind, _NEVER).asked_at
    others = [situation.wanted_since[other] for other in due if other is not kind and other in situation.wanted_since]
    had_its_turn = asked_at is not None and any(asked_at >= since for since in others)
    return had_its_turn, DECIDED.index(kind)


def _waiting(wait: Wait, run: Run) -> Wait:
    return Wait(wait.code, f"{run.because}; but {wait.because}", wait.until, run.warning)


def _name(kind: JobKind) -> str:
    return kind.value.replace("_", " ")


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
