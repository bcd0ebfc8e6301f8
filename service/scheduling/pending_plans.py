"""Pending plans of table services on the timeline, whichever process made them: which can be executed now, and which
are stuck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.contract import JobKind
from jobs.problems.left_plan import LeftPlan, Maker, advice, take_over
from service.lake.snapshot import Pending, TableSnapshot
from service.model.formatting import count, duration, first_of
from service.scheduling.trigger_context import TriggerContext


@dataclass(frozen=True)
class Plans:
    """The pending plans of a table for one kind of job."""

    waiting: tuple[str, ...] = ()  # Plans that can be executed.
    # Plans that another process seems to execute. Nobody else may execute them, because two executions of one plan
    # corrupt the table.
    running: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()  # Plans whose execution would harm the table; the next due job tries them again.
    running_until: datetime | None = None  # When the first running plan counts as stuck.
    running_text: str = ""  # A sentence about the running plans, without a full stop.
    warning: str | None = None  # A sentence about stale and withheld plans.


_NO_PLANS = Plans()
_MOST_NAMED = 3

ACTIONS = {
    JobKind.COMPACTION: frozenset({"compaction"}),
    # Before table version 8 the action of a pending clustering is already replacecommit.
    JobKind.CLUSTERING: frozenset({"clustering", "replacecommit"}),
    JobKind.CLEANING: frozenset({"clean"}),
}
"""The actions of pending plans, as on the timeline, by the kind of the job that executes them."""


def plans_of(snapshot: TableSnapshot, kind: JobKind, stale_seconds: int, context: TriggerContext) -> Plans:
    """Returns the pending plans of one kind.

    An inflight plan counts as pending if a job of this service began it, or if it is older than `stale_seconds`: then a
    job has to find out whether the process that began it is dead.
    """
    if not snapshot.pending:
        return _NO_PLANS
    every = [item for item in snapshot.pending if item.is_plan and item.action in ACTIONS[kind]]
    stale_after = timedelta(seconds=stale_seconds)

    def is_stale(item: Pending) -> bool:
        return item.requested_at is not None and context.now - item.requested_at >= stale_after

    running = [
        item
        for item in every
        if item.state == "inflight" and item.requested_time not in context.own_instants and not is_stale(item)
    ]
    idle = [item.requested_time for item in every if item not in running]
    withheld = tuple(instant for instant in idle if instant in context.withheld)
    ends = [item.requested_at + stale_after for item in running if item.requested_at]
    return Plans(
        waiting=tuple(instant for instant in idle if instant not in withheld),
        running=tuple(item.requested_time for item in running),
        withheld=withheld,
        running_until=min(ends, default=None),
        running_text=_running([described(item, context) for item in running], kind, snapshot.table_id),
        warning=_withheld(withheld, kind) or _stale([item for item in every if is_stale(item)], kind, context.now),
    )


def described(item: Pending, context: TriggerContext) -> LeftPlan:
    """Describes a pending plan for users."""
    age = None if item.requested_at is None else duration(context.now - item.requested_at)
    action = "clustering" if item.action in ACTIONS[JobKind.CLUSTERING] else item.action
    others = Maker.FLINK if context.has_flink else Maker.OTHER
    maker = Maker.OURS if item.requested_time in context.own_instants else others
    return LeftPlan(item.requested_time, action, item.state, age, maker)


def going_first(snapshot: TableSnapshot, context: TriggerContext) -> str | None:
    """Returns why a job that replaces file groups has to wait for pending plans; None if there are none. The result is
    a sentence without a full stop, and says what to do about plans of other processes."""
    plans = [described(item, context) for item in snapshot.pending if item.is_plan]
    if not plans:
        return None
    others = [each for each in plans if each.maker is not Maker.OURS]
    what = advice(others, snapshot.table_id, has_buckets=bool(snapshot.num_buckets))
    go = "goes" if len(plans) == 1 else "go"
    return f"{first_of(plans, _MOST_NAMED)} {go} first. {what}".rstrip(". ")


def _withheld(instants: tuple[str, ...], kind: JobKind) -> str | None:
    if not instants:
        return None
    would = "it would harm" if len(instants) == 1 else "they would harm"
    return (
        f"{count(len(instants), f'{kind.value} plan')} withheld, since {would} the table"
        f" ({first_of(instants, _MOST_NAMED)}). The last"
        " job says why. File groups of such plans stay as they are meanwhile."
    )


def _running(plans: Sequence[LeftPlan], kind: JobKind, table_id: str) -> str:
    if not plans:
        return ""
    command = take_over(kind.value, [each.instant for each in plans], table_id)
    return f"another process is executing {first_of(plans, _MOST_NAMED)}; if it is dead, {command} takes the plan over"


def _stale(stale: list[Pending], kind: JobKind, now: datetime) -> str | None:
    ages = [now - item.requested_at for item in stale if item.requested_at]
    if not ages:
        return None
    names = first_of([item.requested_time for item in stale], _MOST_NAMED)
    are = "has" if len(stale) == 1 else "have"
    return f"{count(len(stale), f'{kind.value} plan')} {are} been pending for up to {duration(max(ages))} ({names})."
