"""A hypothetical edit of policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from service.model.table_errors import TableNotFoundError
from service.policies import policy_registry, store
from service.policies.policy import PatternPolicy, TableLevel
from service.policies.precedence import Effective, Subject, effective_of_each


@dataclass(frozen=True)
class Edit:
    """The edit is either a new policy of a pattern, or settings that are added to those of single tables. If `settings`
    is None, the pattern's policy is deleted."""

    settings: Mapping[str, Any] | None
    pattern: str | None = None
    precedence: int = 0
    table_ids: Sequence[str] = ()


@dataclass(frozen=True)
class Side:
    """The policies before or after an edit: the levels of all patterns; the levels of single tables, by table id; and
    the effective policies of the tables that the edit is about, by table id."""

    patterns: Sequence[PatternPolicy] = ()
    own: Mapping[str, TableLevel] = field(default_factory=dict)
    effective: Mapping[str, Effective] = field(default_factory=dict)

    def of(self, subjects: Mapping[str, Subject]) -> Side:
        return replace(self, effective=effective_of_each(self.patterns, self.own, subjects))

    def only(self, table_ids: Collection[str]) -> Side:
        return replace(self, effective={each: self.effective[each] for each in table_ids})


@dataclass(frozen=True)
class Edited:
    """Both sides of an edit, and the subjects of all tables by id."""

    now: Side
    new: Side
    subjects: Mapping[str, Subject]


def edited(connection: Connection, edit: Edit, now: datetime) -> Edited:
    """Returns the policies before and after the edit, for the tables that it names, or else for those whose policy
    would change. Raises TableNotFoundError, or PolicyNotFoundError if the policy to delete does not exist."""
    before = Side(store.every(connection), store.of_tables(connection))
    subjects = policy_registry.subjects(connection)
    if edit.pattern is None:
        if unknown := next((each for each in edit.table_ids if each not in subjects), None):
            raise TableNotFoundError(f"There is no table {unknown}.")
        named = {each: subjects[each] for each in edit.table_ids}
        return Edited(before.of(named), _with_tables(before, edit, now).of(named), subjects)
    if edit.settings is None:
        store.get(connection, edit.pattern)
    old, new = before.of(subjects), _with_pattern(before, edit, edit.pattern, now).of(subjects)
    changed = [each for each in new.effective if new.effective[each].policy != old.effective[each].policy]
    return Edited(old.only(changed), new.only(changed), subjects)


def _with_tables(before: Side, edit: Edit, now: datetime) -> Side:
    settings = {each: before.own[each].settings if each in before.own else {} for each in edit.table_ids}
    merged = {key: policy_registry.merged(dict(each), edit.settings or {}) for key, each in settings.items()}
    return Side(before.patterns, {**before.own, **{key: TableLevel(each, now) for key, each in merged.items()}})


def _with_pattern(before: Side, edit: Edit, pattern: str, now: datetime) -> Side:
    kept = [each for each in before.patterns if each.pattern != pattern]
    added = [] if edit.settings is None else [PatternPolicy(pattern, edit.settings, now, now, edit.precedence)]
    return Side([*kept, *added], before.own)
