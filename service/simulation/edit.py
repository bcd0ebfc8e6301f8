"""A hypothetical edit of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from service.model.table_errors import TableNotFoundError
from service.policies import policy_registry, store
from service.policies.policy import PatternPolicy, TableLevel
from service.policies.precedence import Effective, Subject, effective_of_each


@dataclass(frozen=True)
class Edit:
    """A new policy of a pattern, or settings that are added to those of single tables. If `settings` is None, the
    pattern's policy is deleted."""

    settings: Mapping[str, Any] | None
    pattern: str | None = None
    precedence: int = 0
    table_ids: Sequence[str] = ()


@dataclass(frozen=True)
class Levels:
    """All levels of policies: those of patterns, and by table id those of single tables."""

    patterns: Sequence[PatternPolicy] = ()
    tables: Mapping[str, TableLevel] = field(default_factory=dict)


@dataclass(frozen=True)
class Edited:
    """The levels before and after an edit, the subjects of all tables, and the effective policies of those that the
    edit is about, all by table id."""

    now: Levels
    new: Levels
    subjects: Mapping[str, Subject]
    policies_now: Mapping[str, Effective]
    policies_new: Mapping[str, Effective]


def edited(connection: Connection, edit: Edit, now: datetime) -> Edited:
    """Returns what the edit changes for the named tables, or for those whose policy would change. Raises
    TableNotFoundError, or PolicyNotFoundError if the policy to delete does not exist."""
    before = Levels(store.every(connection), store.of_tables(connection))
    subjects = policy_registry.subjects(connection)
    if edit.pattern is None:
        if unknown := next((each for each in edit.table_ids if each not in subjects), None):
            raise TableNotFoundError(f"There is no table {unknown}.")
        after = _with_tables(before, edit, now)
    else:
        if edit.settings is None:
            store.get(connection, edit.pattern)
        after = _with_pattern(before, edit, edit.pattern, now)
    about = subjects if edit.pattern is not None else {each: subjects[each] for each in edit.table_ids}
    old, new = (effective_of_each(each.patterns, each.tables, about) for each in (before, after))
    if edit.pattern is not None:
        new = {table_id: found for table_id, found in new.items() if found.policy != old[table_id].policy}
    return Edited(before, after, subjects, {each: old[each] for each in new}, new)


def _with_tables(before: Levels, edit: Edit, now: datetime) -> Levels:
    settings = {each: before.tables[each].settings if each in before.tables else {} for each in edit.table_ids}
    merged = {key: policy_registry.merged(dict(each), edit.settings or {}) for key, each in settings.items()}
    return Levels(before.patterns, {**before.tables, **{key: TableLevel(each, now) for key, each in merged.items()}})


def _with_pattern(before: Levels, edit: Edit, pattern: str, now: datetime) -> Levels:
    kept = [each for each in before.patterns if each.pattern != pattern]
    added = [] if edit.settings is None else [PatternPolicy(pattern, edit.settings, now, now, edit.precedence)]
    return Levels([*kept, *added], before.tables)
