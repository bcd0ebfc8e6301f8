"""Admission decides which of the due jobs start: by rules for one table, and by limits for all tables.

A table has at most one active job that writes. If several kinds of jobs are due, they start in the order of `DECIDED`.
If one kind has run while another kind waited, however, the kind that waited goes first, so that each kind gets its
turn. Whatever prevents a job from starting is a `Wait` with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from jobs.contract import DEFAULT_GROUP, JobKind
from service.incidents.incident import HELD_BACK
from service.model.formatting import count, duration, utc_minute
from service.queue.job import Job, mutates
from service.scheduling.decision import DECIDED, Admission, Proposal, Run, Wait
from service.scheduling.job_history import JobHistory

_POLL_PATIENCE = timedelta(minutes=5)
"""How long to wait for a poll that shows the result of a successful job. The wait must end, because polls are recorded
only when something has changed, and a job that had nothing to do changes nothing."""

_NEVER = JobHistory()


@dataclass(frozen=True)
class Limits:
    """Maximum numbers of jobs.

    The limits are nested: for all tables, for a worker group, and for a kind in that group. Limits that overlapped in
    another way might never have capacity at the same moment, so a job could wait for ever.
    """

    active: int = 100  # Active on all tables.
    per_group: Mapping[str, int] = field(default_factory=dict)  # Active in a worker group.
    per_kind: Mapping[JobKind, int] = field(default_factory=dict)  # Active of a kind in each worker group.
    at_once: int = 20  # Started in one round.

    def has_capacity(self, wanted: str, load: Load) -> bool:
        """Returns whether the capacity `wanted`, a value of `capacity_wanted`, is available."""
        group, _, kind = wanted.partition("/")
        if load.total >= self.active:
            return False
        if wanted == ANY_CAPACITY:
            return True
        return not self._is_group_full(group, load) and not (kind and self._is_kind_full(group, JobKind(kind), load))

    def over(self, kind: JobKind, group: str, load: Load) -> Wait | None:
        """Returns the reason why no further job of this kind may start in this group, or None."""
        if load.started >= self.at_once:
            return Wait(LIMITED, f"{count(load.started, 'job')} started a moment ago, the limit of one round")
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
    """Numbers that count against `Limits`: active jobs by kind and worker group, and jobs started in this round."""

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
"""Codes of waits for jobs of other tables: for any jobs, for jobs of the worker group, or for jobs of the same kind in
the group."""

ANY_CAPACITY = "*"


def capacity_wanted(code: str, kind: JobKind, group: str) -> str | None:
    """Returns the capacity that a wait with this code needs, as a string to store; None if it does not wait for other
    tables' jobs."""
    return {LIMITED: ANY_CAPACITY, GROUP_LIMITED: group, KIND_LIMITED: f"{group}/{kind.value}"}.get(code)


@dataclass(frozen=True)
class Situation:
    """What admission has to know about one table, besides the proposals. A mapping has no entry for a kind without a
    value."""

    now: datetime
    polled_at: datetime  # The time of the last poll result.
    # When each table service last ran, according to this poll result.
    ran_at: Mapping[JobKind, datetime] = field(default_factory=dict)
    active: Sequence[Job] = ()  # Active jobs without dry runs.
    group: str = DEFAULT_GROUP  # The worker group that runs them.
    paused: str | None = None  # Why nothing may start, as a sentence without a full stop.
    frozen: Wait | None = None  # The wait for the end of a freeze, while one lasts.
    misplaced_rows: str | None = None  # A sentence without a full stop about stale writes that are not repaired.
    closed_until: datetime | None = None  # When the next maintenance window opens; None while one is open.
    history: Mapping[JobKind, JobHistory] = field(default_factory=dict)
    wanted_since: Mapping[JobKind, datetime] = field(default_factory=dict)
    rest: Mapping[JobKind, int] = field(default_factory=dict)  # Minimum seconds between two jobs of a kind.


def admit(
    proposals: Mapping[JobKind, Proposal], situation: Situation, limits: Limits, load: Load
) -> dict[JobKind, Admission]:
    """Returns the admissions of a table's proposals: at most one `Run` remains, the others become `Wait`."""
    admissions: dict[JobKind, Admission] = dict(proposals)
    due = {kind: proposal for kind, proposal in proposals.items() if isinstance(proposal, Run)}
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
        elif full := limits.over(kind, due[kind].worker_group or situation.group, load):
            admissions[kind] = _waiting(full, due[kind])
        else:
            chosen = kind
    return admissions


def _obstacle(kind: JobKind, situation: Situation) -> Wait | None:
    """Returns the reason, other than limits, that keeps a kind from starting; None without one."""
    history = situation.history.get(kind, _NEVER)
    rested_at = history.ended_at + timedelta(seconds=situation.rest.get(kind, 0)) if history.ended_at else None
    if situation.paused:
        return Wait("paused", situation.paused)
    if situation.frozen:
        return situation.frozen
    # A job that does not write, such as a diagnosis, excludes only other jobs of its kind.
    busy = (job for job in situation.active if job.kind is kind or mutates(job.kind, dry_run=job.dry_run))
    if obstacle := next(busy, None):
        return Wait("table-busy", f"{_name(obstacle.kind)} {obstacle.id} is {obstacle.state.value}")
    if situation.misplaced_rows and kind in HELD_BACK:
        return Wait("incident-open", f"{situation.misplaced_rows}; a repair goes first and needs the present files")
    if history.next_try_at and history.next_try_at > situation.now:
        next_try = utc_minute(history.next_try_at)
        description = f"the last {_name(kind)} {history.description(situation.now)}; next try at {next_try}"
        return Wait("failed-before", description, history.next_try_at)
    if rested_at and rested_at > situation.now and history.ended_at:
        ago = duration(situation.now - history.ended_at)
        description = f"the last {_name(kind)} ended {ago} ago; the next may start at {utc_minute(rested_at)}"
        return Wait("too-soon", description, rested_at)
    seldom_until = history.seldom_until
    # Delegated plans have no minimum interval, and do not wait for this reason either.
    if seldom_until and seldom_until > situation.now and situation.rest.get(kind, 0):
        description = (
            f"the last {count(history.fruitless, f'{_name(kind)} job')} gained nothing; the next may start at"
            f" {utc_minute(seldom_until)}"
        )
        return Wait("gained-nothing", description, seldom_until)
    if situation.closed_until:
        at = situation.closed_until
        return Wait("outside-window", f"the next maintenance window opens at {utc_minute(at)}", at)
    if history.ended_at and not _is_shown(kind, history, situation):
        until = history.ended_at + _POLL_PATIENCE
        if until > situation.now:
            because = f"no poll has seen the table since the last {_name(kind)} ended"
            return Wait("not-looked-at", because, until)
    return None


def _is_shown(kind: JobKind, history: JobHistory, situation: Situation) -> bool:
    """Returns whether the poll result shows the last successful job."""
    ran_at = situation.ran_at.get(kind)
    is_seen = ran_at is not None and history.began_at is not None and ran_at >= history.began_at
    return is_seen or (history.ended_at is not None and situation.polled_at > history.ended_at)


def _turn(kind: JobKind, due: Sequence[JobKind], situation: Situation) -> tuple[bool, int]:
    """Returns the sort key of a due kind: kinds that have run while another one waited come last."""
    asked_at = situation.history.get(kind, _NEVER).asked_at
    others = [situation.wanted_since[other] for other in due if other is not kind and other in situation.wanted_since]
    had_its_turn = asked_at is not None and any(asked_at >= since for since in others)
    return had_its_turn, DECIDED.index(kind)


def _waiting(wait: Wait, run: Run) -> Wait:
    return Wait(wait.code, f"{run.because}; but {wait.because}", wait.until, run.warning)


def _name(kind: JobKind) -> str:
    return kind.value.replace("_", " ")
