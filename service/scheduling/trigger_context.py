"""Trigger context of a policy, and the evaluation of calendars and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import Any, Protocol

from jobs.contract import JobKind
from service.lake.snapshot import Since, TableSnapshot
from service.model.formatting import count, duration, utc_minute
from service.outcome.table_objective import TableObjective
from service.policies.settings import Trigger
from service.scheduling.decision import Run, Skip


@dataclass(frozen=True)
class Calendar:
    """Status of a cron expression. `is_due` is true until the job has started; `next_at` is the next scheduled time."""

    is_due: bool
    next_at: datetime | None = None


@dataclass(frozen=True)
class TriggerContext:
    """Inputs of a policy besides the state of the table."""

    now: datetime
    calendar: Calendar | None = None  # None without a cron expression.
    # The start of the last successful job of the kind. The timeline does not show a job that had nothing to do.
    last_run_at: datetime | None = None
    own_instants: frozenset[str] = frozenset()  # Instants that jobs of this service created.
    withheld: frozenset[str] = frozenset()  # Plans that a job left out a short while ago, because they harm the table.
    is_unfinished: bool = False  # Whether the policy's last successful job reached its limit and left work.
    objective: TableObjective = field(default_factory=TableObjective)
    # The last completed instant that the last successful job saw, according to its result.
    seen_instant: str | None = None
    # Whether the job need not wait for a quiet hour, because it has done so for a day, or because it is already due and
    # waits for other jobs.
    has_waited: bool = False
    has_flink: bool = False  # Whether Flink is a declared or detected writer, stopped or not.

    def is_anything_new(self, snapshot: TableSnapshot) -> bool:
        """Returns whether something was committed since the last run."""
        return self.last_run_at is None or snapshot.last_commit_at is None or snapshot.last_commit_at > self.last_run_at


@dataclass(frozen=True)
class Timing:
    """Whether a job is due, and the figures that show it. `until` is when the passing of time alone changes this; None
    if it cannot. `commits` are as in `Skip`."""

    is_due: bool
    because: str
    until: datetime | None = None
    commits: float = 0

    def proposal(
        self, kind: JobKind, params: Mapping[str, Any], further: str = "", warning: str | None = None
    ) -> Run | Skip:
        """Returns the job if it is due; `further` are additional figures for the reason."""
        if not self.is_due:
            return Skip("not-yet", self.because, self.until, warning, self.commits)
        return Run(kind, params, f"{self.because}; {further}" if further else self.because, warning)


def by_calendar(calendar: Calendar) -> Timing:
    if calendar.is_due:
        return Timing(True, "its scheduled time has come")
    when = utc_minute(calendar.next_at) if calendar.next_at else "never"
    return Timing(False, f"its next scheduled time is {when}", calendar.next_at, inf)


def by_time(seconds: int, first_commit_at: datetime | None, context: TriggerContext, noun: str) -> Timing:
    """Returns whether this number of seconds has passed since the last run, or since the first commit if there was no
    run.

    `noun` names the kind in sentences.
    """
    start = context.last_run_at or first_commit_at or context.now
    begin = f"last {noun}" if context.last_run_at else "first commit"
    because = f"{duration(context.now - start)} since the {begin}, threshold {duration(seconds)}"
    due_at = start + timedelta(seconds=seconds)
    return Timing(context.now >= due_at, because, None if context.now >= due_at else due_at, inf)


class Thresholds(Protocol):
    """Thresholds for commits and seconds since the last run, and whether one of them or both must be reached."""

    @property
    def trigger(self) -> Trigger: ...
    @property
    def commits(self) -> int: ...
    @property
    def seconds(self) -> int: ...


def by_thresholds(
    thresholds: Thresholds, since: Since, first_commit_at: datetime | None, context: TriggerContext, noun: str
) -> Timing:
    """Evaluates the thresholds. Time counts from the last run, or from the first commit if there was no run.

    `noun` names the kind in sentences.
    """
    trigger, commits, seconds = thresholds.trigger, thresholds.commits, thresholds.seconds
    enough = since.commits >= commits
    last_run = max(filter(None, (since.at, context.last_run_at)), default=None)
    start = last_run or first_commit_at or context.now
    due_at = start + timedelta(seconds=seconds)
    is_old = context.now >= due_at
    until = None if is_old else due_at

    def by_count() -> str:
        origin = f"since the last {noun}" if last_run else f"and no {noun} yet"
        return f"{count(since.commits, 'commit')} {origin}, threshold {commits}"

    def by_time() -> str:
        begin = f"last {noun}" if last_run else "first commit"
        return f"{duration(context.now - start)} since the {begin}, threshold {duration(seconds)}"

    match trigger:
        case Trigger.COMMITS:
            return Timing(enough, by_count(), commits=commits - since.commits)
        case Trigger.SECONDS:
            return Timing(is_old, by_time(), until, inf)
        case Trigger.BOTH:
            to_go = inf if enough else commits - since.commits
            return Timing(enough and is_old, f"{by_count()}; {by_time()}", until, to_go)
        case Trigger.EITHER:
            if enough or is_old:
                return Timing(True, by_count() if enough else by_time())
            return Timing(False, f"{by_count()}; {by_time()}", until, commits - since.commits)


def commits_to_go(thresholds: Thresholds, since: Since) -> int:
    """Returns how many more commits the thresholds need at least, even if much time passes."""
    needs_commits = thresholds.trigger in (Trigger.COMMITS, Trigger.BOTH)
    return max(0, thresholds.commits - since.commits) if needs_commits else 0
