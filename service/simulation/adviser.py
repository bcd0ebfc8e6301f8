"""Computes advice in the background, applies it if the policy says so, and takes it back if the outcome is worse than
expected."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from service.catalog import commit_store, decision_times, table_store
from service.catalog.table_events import event_of_table
from service.db.engine import reading, writing
from service.delivery import outbox
from service.events.database import Database
from service.events.event import EventType
from service.model.errors import NotFoundError
from service.model.storage_errors import StorageError
from service.policies import policy_registry, store
from service.policies.policy import Policy, TableLevel
from service.policies.precedence import Subject, effective
from service.policies.settings import Mode
from service.simulation import advice_store, advisable, past_store, read_costs
from service.simulation.advice import MOST_COMMITS, PERIOD, TOO_MANY, Advice, AdviceState, advised, too_little, worse
from service.simulation.errors import AdviceOutdatedError
from service.simulation.fleet import Fleet
from service.simulation.outcome import Outcome
from service.simulation.what_if import Simulating, engine_of, learned, with_facts

TABLES_AT_ONCE = 3
"""Maximum number of tables that a round works on."""

_COMPUTED_EVERY, _COMPARED_EVERY = timedelta(days=1), timedelta(hours=1)
# The outcome is compared from this time after the change on, until the advice counts as kept.
_COMPARED_AFTER, _KEPT_AFTER = timedelta(hours=6), timedelta(days=7)
# For this long after advice was taken back or dismissed, nothing is advised, so that settings do not go to and fro.
_REST = timedelta(days=30)

# At most this many commits are read, which takes about 0.4 s of a core. The limit also counts commits of table
# services, and the commits of one day before the period.
_MOST_READ = 2 * MOST_COMMITS

log = logging.getLogger(__name__)


class AdviceWriter(Simulating):
    """Computes the advice about one table."""

    def __call__(self, table_id: str, now: datetime) -> Advice:
        """Raises TableNotFoundError."""
        with reading(engine_of(self.database)) as connection:
            return computed(connection, table_id, now, self.fleet)


Write = Callable[[str, "datetime"], Advice]


def computed(connection: Connection, table_id: str, now: datetime, fleet: Fleet) -> Advice:
    """Raises TableNotFoundError."""
    table = table_store.get(connection, table_id)
    policy = policy_registry.effective_of(connection, table).policy
    known = {table_id: (Subject.of(table), policy)}
    begin = now - PERIOD
    try:
        past = past_store.read(connection, known, begin, now, now, most=_MOST_READ)
    except past_store.TooManyCommits:
        return Advice(table_id, now, AdviceState.NONE, TOO_MANY)
    read_costs.add(connection, past.pasts, now)
    if table_id not in past.pasts:
        return Advice(table_id, now, AdviceState.NONE, "the table has not been polled yet")
    return advised(
        past.pasts[table_id], with_facts(connection, fleet, now), learned(connection), begin.timestamp(), now
    )


def run_once(database: Database, write: Write) -> str:
    """Computes the oldest advice again, and compares applied advice with its outcome. Returns a text about what it has
    done."""
    now = database.clock()
    with reading(database.engine) as connection:
        due = advice_store.due(connection, now - _COMPUTED_EVERY, now - _COMPARED_EVERY, now, TABLES_AT_ONCE)
        known = {table_id: advice_store.find(connection, table_id) for table_id in due}
        unknown = {table_id: too_little(*_written(connection, table_id, now)) for table_id in due}
    for table_id, last in known.items():
        if last and last.state in (AdviceState.APPLIED, AdviceState.KEPT) and _gives_way(database, last, now):
            continue
        if last and last.state is AdviceState.APPLIED:
            _compare(database, last, now)
            continue
        if because := unknown[table_id]:
            # A table with too few commits gets no advice, so no process needs to read all that is known about it.
            _keep(database, Advice(table_id, now, AdviceState.NONE, because), now)
            continue
        try:
            found = write(table_id, now)
        except (NotFoundError, StorageError) as error:
            found = Advice(table_id, now, AdviceState.NONE, f"it could not be computed: {error.detail}")
        except Exception:
            # A failure with one table must not keep the other tables from getting advice.
            log.exception("The advice about table %s failed", table_id)
            found = Advice(table_id, now, AdviceState.NONE, "it could not be computed")
        _keep(database, found, now)
    return f"looked at the advice about {len(due)} tables"


def _written(connection: Connection, table_id: str, now: datetime) -> tuple[int, float]:
    """Returns the number of commits of writers in the period, and the seconds since the first of them."""
    commits, first_at = commit_store.ingested(connection, table_id, now - PERIOD, now)
    return commits, (now - first_at).total_seconds() if first_at else 0.0


def _keep(database: Database, found: Advice, now: datetime) -> None:
    """Stores new advice, and applies it in the mode `auto`."""
    with writing(database.engine) as connection:
        try:
            table = table_store.get(connection, found.table_id, for_update=True)
        except NotFoundError:
            return
        mode = policy_registry.effective_of(connection, table).policy.advice.mode
        last = advice_store.find(connection, found.table_id)
        was_answered = last is not None and last.state not in (AdviceState.NONE, AdviceState.OPEN)
        # Advice that was kept does not delay advice about other settings.
        is_next = last is not None and last.state is AdviceState.KEPT and found.setting not in (None, last.setting)
        # The difference is absolute, because a clock may be set back.
        rests = last is not None and last.changed_at is not None and abs(now - last.changed_at) < _REST
        if last and was_answered and rests and not is_next:
            advice_store.put(connection, replace(last, computed_at=now))
            return
        if mode is Mode.OFF and found.state is AdviceState.OPEN:
            found = replace(found, state=AdviceState.NONE, because="the policy wants no advice")
        advice_store.put(connection, found)
        if mode is Mode.AUTO and found.state is AdviceState.OPEN:
            # If the policy was changed while the advice was computed, the next round computes the advice again.
            with suppress(AdviceOutdatedError):
                _apply(connection, found, now)


def apply(database: Database, table_id: str) -> Advice:
    """Applies the open advice about a table to the table's own level of the policy. Raises TableNotFoundError, and
    AdviceOutdatedError if there is no open advice, or if the setting has another value by now."""
    now = database.clock()
    with writing(database.engine) as connection:
        return _apply(connection, _open(connection, table_id), now)


def dismiss(database: Database, table_id: str) -> Advice:
    """Dismisses the open advice, which is then no longer shown. Raises AdviceOutdatedError if there is none."""
    with writing(database.engine) as connection:
        found = replace(_open(connection, table_id), state=AdviceState.DISMISSED, changed_at=database.clock())
        advice_store.put(connection, found)
        return found


def _open(connection: Connection, table_id: str) -> Advice:
    """Locks the table."""
    table_store.get(connection, table_id, for_update=True)
    found = advice_store.find(connection, table_id)
    if found is None or found.state is not AdviceState.OPEN:
        raise AdviceOutdatedError(f"There is no open advice about table {table_id}.")
    return found


def _apply(connection: Connection, found: Advice, now: datetime) -> Advice:
    """The caller has locked the table."""
    assert found.setting is not None
    assert found.after is not None
    table = table_store.get(connection, found.table_id)
    section, _, member = found.setting.partition(".")
    present = _value(policy_registry.effective_of(connection, table).policy, found.setting)
    if present != found.before:
        raise AdviceOutdatedError(f"{found.setting} is {present} now; the advice is about {found.before}.")
    level = store.of_table(connection, found.table_id)
    own = (level.settings if level else {}).get(section, {}).get(member)
    _set(connection, found.table_id, found.setting, found.after, now)
    found = replace(found, state=AdviceState.APPLIED, own_before=own, changed_at=now)
    advice_store.put(connection, found)
    _publish(connection, EventType.ADVICE_APPLIED, found, now)
    return found


def _compare(database: Database, applied: Advice, now: datetime) -> None:
    """Takes applied advice back if its outcome is worse than expected. After a week it counts as kept."""
    since = applied.changed_at or now
    because = None
    if now - since >= _COMPARED_AFTER:
        with reading(database.engine) as connection:
            outcome = _outcome(connection, applied.table_id, since, now)
        days = (now - since) / timedelta(days=1)
        if outcome and (about := advisable.named(applied.setting)):
            cost = outcome.gb_hours / days
            because = worse(applied.figures, about.overhead(outcome), cost, about.overhead_is)
    with writing(database.engine) as connection:
        try:
            table_store.get(connection, applied.table_id, for_update=True)
        except NotFoundError:
            return
        found = advice_store.find(connection, applied.table_id)
        if found != applied or applied.setting is None:
            return
        section, _, member = applied.setting.partition(".")
        level = store.of_table(connection, applied.table_id)
        if (level.settings if level else {}).get(section, {}).get(member) != applied.after:
            # Somebody has changed the setting since then, so the advice no longer matters.
            advice_store.put(connection, replace(applied, state=AdviceState.DISMISSED, changed_at=now))
            return
        if because is None:
            state = AdviceState.KEPT if now - since >= _KEPT_AFTER else AdviceState.APPLIED
            advice_store.put(connection, replace(applied, state=state, computed_at=now))
            return
        _take_back(connection, applied, because, now)


def _gives_way(database: Database, applied: Advice, now: datetime) -> bool:
    """Takes back advice that was applied automatically if somebody has changed the setting in a pattern's policy since
    then. Otherwise the table's own level would win over that change for ever. Returns whether it was taken back."""
    with writing(database.engine) as connection:
        try:
            table = table_store.get(connection, applied.table_id, for_update=True)
        except NotFoundError:
            return False
        if advice_store.find(connection, table.id) != applied or applied.setting is None:
            return False
        level, patterns = store.of_table(connection, table.id), store.every(connection)
        policy = effective(patterns, Subject.of(table), level).policy
        is_ours = applied.own_before is None and policy.advice.mode is Mode.AUTO
        if not is_ours or level is None or _value(policy, applied.setting) != applied.after:
            return False
        others = TableLevel(policy_registry.without(dict(level.settings), [applied.setting]), now)
        wanted = _value(effective(patterns, Subject.of(table), others).policy, applied.setting)
        if wanted == applied.before:
            return False
        _take_back(connection, applied, f"the policy of a pattern sets {applied.setting} to {wanted} now", now)
        return True


def _take_back(connection: Connection, applied: Advice, why: str, now: datetime) -> None:
    assert applied.setting is not None
    _set(connection, applied.table_id, applied.setting, applied.own_before, now)
    because = f"taken back: {why} ({applied.because})"
    taken = replace(applied, computed_at=now, state=AdviceState.TAKEN_BACK, because=because, changed_at=now)
    advice_store.put(connection, taken)
    _publish(connection, EventType.ADVICE_TAKEN_BACK, taken, now)
    log.warning("Table %s: advice %s", applied.table_id, because)


def _value(policy: Policy, setting: str) -> Any:
    section, _, member = setting.partition(".")
    return getattr(getattr(policy, section), member)


def _outcome(connection: Connection, table_id: str, since: datetime, now: datetime) -> Outcome | None:
    """Returns the real outcome since `since`."""
    try:
        table = table_store.get(connection, table_id)
    except NotFoundError:
        return None
    policy = policy_registry.effective_of(connection, table).policy
    try:
        known = {table_id: (Subject.of(table), policy)}
        return past_store.read(connection, known, since, now, now).actual
    except past_store.TooManyCommits:
        return None


def _set(connection: Connection, table_id: str, name: str, value: int | None, now: datetime) -> None:
    """Sets a setting of the table's own level. None removes the setting from this level."""
    level = store.of_table(connection, table_id)
    before = dict(level.settings) if level else {}
    section, _, member = name.partition(".")
    after: dict[str, Any] = policy_registry.merged(before, {section: {member: value}})
    if value is None:
        after = policy_registry.without(before, [name])
    if after:
        store.put_table(connection, table_id, TableLevel(after, now))
    elif level:
        store.delete_table(connection, table_id)
    decision_times.wake(connection, table_id, now)


def _publish(connection: Connection, type_: EventType, advice: Advice, now: datetime) -> None:
    table = table_store.get(connection, advice.table_id)
    shown = {
        **{name: getattr(advice, name) for name in ("because", "setting", "before", "after")},
        "figures": dict(advice.figures),
    }
    event = event_of_table(type_, table, now, (table.id, now.isoformat()), {"advice": shown})
    outbox.publish(connection, [event], now=now)
