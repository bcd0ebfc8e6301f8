"""What a policy knows beside the table, and when thresholds and calendars say that it is time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from service.model.formatting import count, duration
from service.policies.policy import Trigger

if TYPE_CHECKING:
    from datetime import datetime

    from service.lake.snapshot import Since, TableSnapshot


@dataclass(frozen=True)
class Calendar:
    """What a cron expression says. It stays due until somebody has acted on it; `next_at` is the time after that."""

    is_due: bool
    next_at: datetime | None = None


@dataclass(frozen=True)
class TriggerContext:
    """`calendar` is None where no cron expression is set.

    `last_run_at` is the start of the last successful job of the kind: such a job may have found nothing to do, and
    then the timeline does not know of it. `own_instants` are those that jobs of this service made.
    """

    now: datetime
    calendar: Calendar | None = None
    last_run_at: datetime | None = None
    own_instants: frozenset[str] = frozenset()

    def is_anything_new(self, snapshot: TableSnapshot) -> bool:
        """Whether something was committed since the last run."""
        return self.last_run_at is None or snapshot.last_commit_at is None or snapshot.last_commit_at > self.last_run_at


@dataclass(frozen=True)
class Timing:
    """Whether it is time, with the figures; and until when it is not, if time alone can change that."""

    is_due: bool
    because: str
    until: datetime | None = None


def by_calendar(calendar: Calendar) -> Timing:
    if calendar.is_due:
        return Timing(True, "its time by the calendar has come")
    when = f"{calendar.next_at:%Y-%m-%d %H:%M} UTC" if calendar.next_at else "never"
    return Timing(False, f"its next time by the calendar is {when}", calendar.next_at)


def by_thresholds(
    trigger: Trigger,
    commits: int,
    seconds: int,
    since: Since,
    first_commit_at: datetime | None,
    context: TriggerContext,
    what: str,
) -> Timing:
    """`what` is the kind as people call it. Time counts from the last run, or from the first commit."""
    enough = since.commits >= commits
    begin = max(filter(None, (since.at, context.last_run_at)), default=None)
    start = begin or first_commit_at or context.now
    ripe_at = start + timedelta(seconds=seconds)
    ripe = context.now >= ripe_at
    behind = f"since the last {what}" if begin else f"and no {what} yet"
    by_count = f"{count(since.commits, 'commit')} {behind}, {commits} asked for"
    passed = duration(context.now - start)
    by_time = f"{passed} since the {f'last {what}' if begin else 'first commit'}, {duration(seconds)} asked for"
    until = None if ripe else ripe_at
    match trigger:
        case Trigger.COMMITS:
            return Timing(enough, by_count)
        case Trigger.SECONDS:
            return Timing(ripe, by_time, until)
        case Trigger.BOTH:
            return Timing(enough and ripe, f"{by_count}; {by_time}", until)
        case Trigger.EITHER:
            if enough or ripe:
                return Timing(True, by_count if enough else by_time)
            return Timing(False, f"{by_count}; {by_time}", until)
