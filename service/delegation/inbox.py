"""Stores the plans that writers delegate. The call of a writer does nothing else, because the writer holds its table's
lock during the call."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine

from jobs.redaction import redacted
from jobs.storage.location import plain
from service.catalog import decision_times, table_store
from service.catalog.base_paths import find_table
from service.db.engine import reading, writing
from service.delegation import plan_store
from service.delegation.plan import DelegatedPlan, PlanRequest, PlanState, plan_id
from service.delivery import outbox
from service.events.event import Event, EventType, event_id
from service.events.notifier import Notifier
from service.model.clock import Clock

SUGGESTION = (
    "Register the table (POST /v1/tables), with the lock that its writers take. The service does not register the table"
    " by itself: no job may touch a table without its lock, and the request of a writer does not name the lock."
)

_RENEWED_AFTER = timedelta(minutes=1)
"""A repeated request for a plan is recorded only if the last recorded one is at least this old. The limit saves writes
to the database, because each request names all pending plans again."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Received:
    """The result of a request. `new` are the instants that were not stored before. `table_id` is None if no registered
    table has the base path."""

    table_id: str | None
    new: tuple[str, ...]


def receive(engine: Engine, notifier: Notifier, clock: Clock, request: PlanRequest, *, caller: str) -> Received:
    """Stores the plans that are not stored yet, and returns after the commit of the database. A repeated request
    changes nothing. If a request is lost, the writer's next request names its plans too."""
    now = clock()
    with reading(engine) as connection:
        table_id = find_table(connection, request.base_path)
        base_path = table_store.get(connection, table_id).base_path if table_id else _shown(request.base_path)
        wanted = [_plan(request, instant, base_path, table_id, caller=caller, now=now) for instant in request.instants]
        known = {plan.id: plan for plan in plan_store.find(connection, plan_store.ids_of(wanted))}
    new = [plan for plan in wanted if plan.id not in known]
    stale = [plan.id for plan in known.values() if _is_stale(plan, table_id, now)]
    if not new and not stale:
        return Received(table_id, ())
    with writing(engine) as connection:
        is_first = table_id is None and not plan_store.is_suggested(connection, base_path)
        added = plan_store.add(connection, new)
        plan_store.renew(connection, stale, table_id=table_id, now=now)
        if table_id is not None:
            decision_times.wake(connection, table_id, now)
        elif added:
            _suggest(connection, added, now, is_first=is_first)
    notifier.notify()
    if len(added) < len(new):
        log.warning(
            "%d delegated plans of %s are not kept, because there are too many", len(new) - len(added), base_path
        )
    return Received(table_id, tuple(plan.instant for plan in added))


def _suggest(connection: Connection, added: Sequence[DelegatedPlan], now: datetime, *, is_first: bool) -> None:
    plan_store.forget_suggestions(connection)
    if not is_first:
        return
    plan = added[0]
    log.warning("A writer delegates table services of %s, which is not registered", plan.base_path)
    data = {
        "base_path": plan.base_path,
        "table_name": plan.table_name,
        "service": plan.service.value,
        "instants": [each.instant for each in added],
        "what_to_do": SUGGESTION,
    }
    parts = (plan.base_path, now.isoformat())
    event = Event(
        event_id(EventType.TABLE_SUGGESTED.value, *parts), EventType.TABLE_SUGGESTED, now, None, {"suggestion": data}
    )
    outbox.publish(connection, [event], now=now)


def _is_stale(plan: DelegatedPlan, table_id: str | None, now: datetime) -> bool:
    is_misplaced = plan.table_id != table_id or plan.state is PlanState.GONE
    return is_misplaced or (plan.state.is_open and now - plan.last_requested_at > _RENEWED_AFTER)


def _plan(
    request: PlanRequest, instant: str, base_path: str, table_id: str | None, *, caller: str, now: datetime
) -> DelegatedPlan:
    return DelegatedPlan(
        id=plan_id(base_path, request.service, instant, is_metadata=request.is_metadata),
        base_path=base_path,
        service=request.service,
        instant=instant,
        is_metadata=request.is_metadata,
        table_name=redacted(request.table_name),
        requested_by=caller,
        requested_at=now,
        last_requested_at=now,
        state=PlanState.WAITING if table_id else PlanState.UNREGISTERED,
        table_id=table_id,
        hints=request.hints,
        because=None if table_id else "No table is registered with this base path.",
    )


def _shown(base_path: str) -> str:
    # Secrets are removed from this path, as they are from the base paths of registered tables.
    return redacted(plain(base_path))
