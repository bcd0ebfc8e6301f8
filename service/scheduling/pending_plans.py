"""Pending plans of table services on the timeline, from any process: which can be executed now, and which are stuck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobs.contract import JobKind
from service.lake.snapshot import Pending, TableSnapshot
from service.model.formatting import count, duration
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
    warning: str | None = None  # A sentence about stale and withheld plans.


_NO_PLANS = Plans()

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
        warning=_withheld(withheld, kind) or _stale([item for item in every if is_stale(item)], kind, context.now),
    )


def _withheld(instants: tuple[str, ...], kind: JobKind) -> str | None:
    if not instants:
        return None
    would = "it would harm" if len(instants) == 1 else "they would harm"
    return (
        f"{count(len(instants), f'{kind.value} plan')} withheld, since {would} the table ({_names(instants)}). The last"
        " job says why. Their file groups stay as they are meanwhile."
    )


def _stale(stale: list[Pending], kind: JobKind, now: datetime) -> str | None:
    ages = [now - item.requested_at for item in stale if item.requested_at]
    if not ages:
        return None
    names = _names([item.requested_time for item in stale])
    are = "has" if len(stale) == 1 else "have"
    return f"{count(len(stale), f'{kind.value} plan')} {are} been pending for up to {duration(max(ages))} ({names})."


def _names(instants: Sequence[str]) -> str:
    return ", ".join(instants[:3]) + (" ..." if len(instants) > 3 else "")
