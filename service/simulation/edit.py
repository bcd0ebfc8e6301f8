"""A hypothetical edit of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from service.model.table_errors import TableNotFoundError
from service.policies import policy_registry, store
from service.policies.policy import PatternPolicy, Policy, TableLevel
from service.policies.precedence import Subject, effective


@dataclass(frozen=True)
class Edit:
    """A new policy of a pattern, or settings that are added to those of single tables. If `settings` is None, the
    pattern's policy is deleted."""

    settings: Mapping[str, Any] | None
    pattern: str | None = None
    precedence: int = 0
    table_ids: Sequence[str] = ()


@dataclass(frozen=True)
class EditedTable:
    subject: Subject
    now: Policy
    new: Policy


def edited(connection: Connection, edit: Edit, now: datetime) -> dict[str, EditedTable]:
    """Returns by id the tables that the edit is about: the named ones, or those whose policy would change. Raises
    TableNotFoundError, or PolicyNotFoundError if the policy to delete does not exist."""
    if edit.pattern is not None:
        return _of_pattern(connection, edit, edit.pattern, now)
    patterns = store.every(connection)
    levels = store.of_tables(connection)
    subjects = policy_registry.subjects(connection)
    found = {}
    for table_id in edit.table_ids:
        if table_id not in subjects:
            raise TableNotFoundError(f"There is no table {table_id}.")
        level, subject = levels.get(table_id), subjects[table_id]
        changed = policy_registry.merged(dict(level.settings) if level else {}, edit.settings or {})
        found[table_id] = EditedTable(
            subject,
            effective(patterns, subject, level).policy,
            effective(patterns, subject, TableLevel(changed, now)).policy,
        )
    return found


def _of_pattern(connection: Connection, edit: Edit, pattern: str, now: datetime) -> dict[str, EditedTable]:
    patterns = store.every(connection)
    if edit.settings is None:
        store.get(connection, pattern)
    kept = [each for each in patterns if each.pattern != pattern]
    policy = None if edit.settings is None else PatternPolicy(pattern, edit.settings, now, now, edit.precedence)
    before = policy_registry.effective_of_all(connection, patterns)
    after = policy_registry.effective_of_all(connection, kept if policy is None else [*kept, policy])
    subjects = policy_registry.subjects(connection)
    return {
        table_id: EditedTable(subjects[table_id], before[table_id][1].policy, found.policy)
        for table_id, (_, found) in after.items()
        if found.policy != before[table_id][1].policy
    }
