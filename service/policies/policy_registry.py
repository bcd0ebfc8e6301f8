"""Sets policies, and computes the effective policy of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from service.catalog import decision_times, table_store
from service.catalog.registration import Registration
from service.db.documents import AtOnce
from service.db.engine import writing
from service.model.clock import Clock
from service.policies import store
from service.policies.policy import PatternPolicy, TableLevel
from service.policies.precedence import PATTERN, Effective, Subject, effective, effective_of_each

_LEVELS = AtOnce(store.EVERY, store.OF_TABLE)
_TABLE_AND_LEVELS = AtOnce(table_store.OF_ID, store.EVERY, store.OF_TABLE)


def levels_of(connection: Connection, table_id: str) -> tuple[Effective, TableLevel | None]:
    """Returns the effective policy of a table, and its own level. Raises TableNotFoundError."""
    table, patterns, own = _TABLE_AND_LEVELS.read(connection, {"of_table": table_id})
    return effective(patterns, Subject.of(table_store.existing(table, table_id)), own), own


def effective_of(connection: Connection, table: Registration) -> Effective:
    patterns, own = _LEVELS.read(connection, {"of_table": table.id})
    return effective(patterns, Subject.of(table), own)


def subjects(connection: Connection) -> dict[str, Subject]:
    """Returns, by table id and in the order of registration, the names, owners and tags with which patterns are
    compared."""
    return {row.id: Subject.of(row) for row in table_store.owned(connection)}


def effective_of_all(
    connection: Connection, patterns: Sequence[PatternPolicy], only: Collection[str] | None = None
) -> dict[str, tuple[str, Effective]]:
    """Returns, by table id and in the order of registration, the name and the effective policy under these patterns.
    `only` are the ids of the wanted tables; None selects all."""
    known = {key: each for key, each in subjects(connection).items() if only is None or key in only}
    policies = effective_of_each(patterns, store.of_tables(connection), known)
    return {table_id: (known[table_id].name, policy) for table_id, policy in policies.items()}


def decided_for(connection: Connection) -> dict[str, list[str]]:
    """Returns, for each pattern, the names of the tables whose effective policy has a setting from this pattern."""
    patterns = store.every(connection)
    found: dict[str, list[str]] = {each.pattern: [] for each in patterns}
    if not patterns:
        return found
    # The sources are collected once for each distinct policy, because most tables share a few policies.
    deciding: dict[int, list[str]] = {}
    for name, policy in effective_of_all(connection, patterns).values():
        if id(policy) not in deciding:
            sources = set(policy.sources.values())
            deciding[id(policy)] = [each.removeprefix(PATTERN) for each in sources if each.startswith(PATTERN)]
        for pattern in deciding[id(policy)]:
            found[pattern].append(name)
    return found


def put_pattern(
    engine: Engine, clock: Clock, pattern: str, *, precedence: int, settings: Mapping[str, Any]
) -> tuple[PatternPolicy, bool]:
    """Sets or replaces a pattern's policy and schedules a decision about every table.

    Returns the policy and whether it is new.
    """
    now = clock()
    with writing(engine) as connection:
        policy = PatternPolicy(pattern, settings, now, now, precedence)
        is_new = store.put(connection, policy)
        decision_times.wake_all(connection, now)
        return store.get(connection, pattern), is_new


def delete_pattern(engine: Engine, clock: Clock, pattern: str) -> None:
    """Deletes a pattern's policy and schedules a decision about every table. Raises PolicyNotFoundError."""
    with writing(engine) as connection:
        store.delete(connection, pattern)
        decision_times.wake_all(connection, clock())


def put_table(engine: Engine, clock: Clock, table_id: str, settings: Mapping[str, Any]) -> Effective:
    """Sets or replaces the settings of one table and schedules a decision about it. Raises TableNotFoundError."""
    now = clock()
    with writing(engine) as connection:
        table = table_store.get(connection, table_id, for_update=True)
        store.put_table(connection, table_id, TableLevel(settings, now))
        decision_times.wake(connection, table_id, now)
        return effective_of(connection, table)


def set_paused(engine: Engine, clock: Clock, table_id: str, *, paused: bool) -> bool:
    """Pauses or resumes the automatic jobs of one table, whatever its patterns say. All other settings stay. Returns
    whether that changed anything. Raises TableNotFoundError."""
    now = clock()
    with writing(engine) as connection:
        table = table_store.get(connection, table_id, for_update=True)
        if effective_of(connection, table).policy.paused is paused:
            return False
        level = store.of_table(connection, table_id)
        settings = {name: value for name, value in (level.settings if level else {}).items() if name != "paused"}
        store.put_table(connection, table_id, TableLevel(settings, now))
        if effective_of(connection, table).policy.paused is not paused:
            store.put_table(connection, table_id, TableLevel({**settings, "paused": paused}, now))
        elif not settings:
            store.delete_table(connection, table_id)
        decision_times.wake(connection, table_id, now)
        return True


def change_table(
    engine: Engine, clock: Clock, table_id: str, settings: Mapping[str, Any], unset: Sequence[str]
) -> bool:
    """Sets some settings of one table, and removes others, such as `compaction.commits` or `compaction`, from the
    table's own level. Returns whether this changed anything. Raises TableNotFoundError."""
    now = clock()
    with writing(engine) as connection:
        table_store.get(connection, table_id, for_update=True)
        level = store.of_table(connection, table_id)
        before = dict(level.settings) if level else {}
        after = without(merged(before, settings), unset)
        if after == before:
            return False
        if after:
            store.put_table(connection, table_id, TableLevel(after, now))
        else:
            store.delete_table(connection, table_id)
        decision_times.wake(connection, table_id, now)
        return True


def merged(before: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a level with some settings changed; all others stay."""
    return {**before, **{name: _merged(before.get(name), each) for name, each in settings.items()}}


def _merged(before: Any, after: Any) -> Any:
    return {**before, **after} if isinstance(before, dict) and isinstance(after, dict) else after


def without(settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns the settings without the named ones. A kind of job without any remaining setting is removed too."""
    left = {}
    for name, value in settings.items():
        kept = value
        if isinstance(value, dict):
            kept = {member: each for member, each in value.items() if f"{name}.{member}" not in names}
        if name not in names and kept != {}:
            left[name] = kept
    return left


def delete_table(engine: Engine, clock: Clock, table_id: str) -> None:
    """Deletes the settings of one table and schedules a decision about it.

    Raises TableNotFoundError, or PolicyNotFoundError when the table has no policy of its own.
    """
    with writing(engine) as connection:
        table_store.get(connection, table_id, for_update=True)
        store.delete_table(connection, table_id)
        decision_times.wake(connection, table_id, clock())
