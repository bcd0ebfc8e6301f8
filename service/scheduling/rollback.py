"""Policy of rollback: whether to roll back the write of a dead writer now instead of waiting for a cleaning."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from jobs.contract import JobKind
from jobs.kinds.words import ABANDONED_AFTER_SECONDS
from service.lake.commit import BATCH_ACTIONS
from service.lake.snapshot import TableSnapshot
from service.model.formatting import count, duration
from service.policies.settings import RollbackSettings
from service.scheduling.decision import Proposal, Run, Skip
from service.scheduling.policy_inputs import PolicyInputs
from service.scheduling.trigger_context import TriggerContext


class Silent(NamedTuple):
    """Pending writes whose writers send no more heartbeats, each with the last heartbeat, the oldest write first; and
    when the next writer may count as silent. Writes in `requested` have the time of their request instead."""

    dead: Sequence[tuple[str, datetime]] = ()
    until: datetime | None = None
    requested: frozenset[str] = frozenset()


NOBODY = Silent()


def propose(inputs: PolicyInputs) -> Proposal:
    return decide(inputs.policy.rollback, inputs.snapshot, inputs.context, obstacle=inputs.unproved)


def decide(
    settings: RollbackSettings, snapshot: TableSnapshot, context: TriggerContext, *, obstacle: str | None = None
) -> Run | Skip:
    """Returns the proposal for the oldest write of a dead writer. A job is due when the writer sent heartbeats, but has
    sent none for `after_seconds`; or when it requested a replacecommit and has done nothing for an hour. The job itself
    checks again, under the table's lock, whether the writer is dead.

    `obstacle` says why no writer of this table can be proved dead, as a sentence without a full stop.
    """
    if not settings.enabled:
        return Skip("off", "rollback of dead writers is switched off")
    dead, until, requested = silent(settings, snapshot, context)
    if not dead:
        return Skip("nothing-dead", "no writer with a pending write has stopped sending heartbeats", until)
    instant, at = dead[0]
    age = duration(context.now - at)
    is_request = instant in requested
    because = (
        f"{instant} was requested {age} ago" if is_request else f"the writer of {instant} has been silent for {age}"
    )
    because += " and never begun" if is_request else ""
    if len(dead) > 1:
        because += f"; {count(len(dead) - 1, 'more writer')} too"
    if obstacle:
        return Skip("not-provable", f"{because}; but {obstacle}")
    return Run(JobKind.ROLLBACK, {"instant": instant}, because)


def silent(settings: RollbackSettings, snapshot: TableSnapshot, context: TriggerContext) -> Silent:
    """Returns the pending writes whose writers sent heartbeats, but have sent none for `after_seconds`, and the
    replacecommits that were requested an hour ago and never begun."""
    # The next job of the same kind settles an instant of this service's own jobs.
    pending = [each for each in snapshot.pending if each.requested_time not in context.own_instants]
    beats = {
        each.requested_time: each.heartbeat_at
        for each in pending
        if each.heartbeat_at and each.action in BATCH_ACTIONS and not each.is_plan
    }
    requests = {
        each.requested_time: each.requested_at for each in pending if each.requested_at and each.awaits_writer()
    }
    dead_at = {instant: at + timedelta(seconds=settings.after_seconds) for instant, at in beats.items()}
    dead_at |= {instant: at + timedelta(seconds=ABANDONED_AFTER_SECONDS) for instant, at in requests.items()}
    dead = [(instant, at) for instant, at in sorted({**beats, **requests}.items()) if context.now >= dead_at[instant]]
    until = min((at for at in dead_at.values() if context.now < at), default=None)
    return Silent(dead, until, frozenset(requests))


def left_to_cleanings(inputs: PolicyInputs) -> Silent:
    """Returns the writes of dead writers that cleanings roll back, because this policy does not."""
    is_cured = inputs.policy.rollback.enabled and inputs.unproved is None
    if is_cured or inputs.has_flink:  # No cleaning rolls back a write of Flink.
        return NOBODY
    return silent(inputs.policy.rollback, inputs.snapshot, inputs.context)
