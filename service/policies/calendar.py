"""A calendar of freezes, in which no automatic job starts, and of maintenance windows, in which jobs may start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from sqlalchemy import Connection

from jobs.spec import Documented, Spec
from service.policies import freeze_store, policy_registry, store, windows
from service.policies.freeze import Freeze
from service.policies.policy import Window


@dataclass(frozen=True)
class OpenWindows(Documented):
    """The maintenance windows that some tables share. `spans` are the times in which at least one window is open."""

    source: Annotated[
        str,
        Spec(
            "The level of the policy that has set the windows: `pattern <glob>` or `table`",
            examples=("pattern orders_*",),
        ),
    ]
    time_zone: Annotated[str, Spec("Time zone of the windows' times of day", examples=("Europe/Berlin",))]
    windows: Sequence[Window]
    names: Sequence[str]
    spans: Sequence[tuple[datetime, datetime]]


@dataclass(frozen=True)
class FrozenTables:
    """A freeze, and the names of the tables on which no automatic job starts."""

    freeze: Freeze
    names: Sequence[str]


@dataclass(frozen=True)
class Calendar:
    freezes: Sequence[FrozenTables]
    windows: Sequence[OpenWindows]
    always: int
    """Number of tables without windows, whose jobs may start at any time except in freezes."""


def between(connection: Connection, since: datetime, until: datetime) -> Calendar:
    """Returns the freezes and windows in a period; the windows of the most tables come first."""
    known = policy_registry.effective_of_all(connection, store.every(connection))
    subjects = policy_registry.subjects(connection).values()
    groups: dict[tuple[str, str, tuple[Window, ...]], list[str]] = defaultdict(list)
    for name, found in known.values():
        if found.policy.windows:
            groups[found.sources["windows"], found.policy.time_zone, found.policy.windows].append(name)
    opened = [
        OpenWindows(source, zone, shared, names, windows.spans(shared, zone, since, until))
        for (source, zone, shared), names in groups.items()
    ]
    frozen = [
        FrozenTables(each, [subject.name for subject in subjects if each.is_about(subject)])
        for each in freeze_store.every(connection)
        if each.starts_at < until and each.ends_at > since
    ]
    always = len(known) - sum(len(each.names) for each in opened)
    return Calendar(frozen, sorted(opened, key=lambda each: -len(each.names)), always)
