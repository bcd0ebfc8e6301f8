"""Previews of policies: the tables that an edit changes, and the jobs that would start there now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from jobs.spec import Spec, Told
from service.db.engine import writing
from service.policies import store
from service.policies.policy import SECTIONS, PatternPolicy
from service.policies.policy_registry import effective_of_all
from service.scheduling import scheduler
from service.scheduling.decision import Decision, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.events.database import Database
    from service.policies.precedence import Effective
    from service.scheduling.scheduler import SchedulerConfig


@dataclass(frozen=True)
class ChangedSetting(Told):
    """A setting of a table's effective policy before and after an edit, and the level that it would come from."""

    setting: Annotated[str, Spec("Name of the setting", examples=("compaction.commits",))]
    before: Any
    after: Any
    source: Annotated[str, Spec("The level that it would come from", examples=("pattern orders_*",))]


@dataclass(frozen=True)
class ChangedTable:
    """`starts` are the jobs that would start now."""

    id: str
    name: str
    settings: Sequence[ChangedSetting]
    starts: Sequence[Decision]


class _UndoneError(Exception):
    """Ends the transaction of a preview without a commit."""


def of_pattern(
    database: Database, config: SchedulerConfig, pattern: str, policy: PatternPolicy | None, *, limit: int
) -> tuple[list[ChangedTable], int]:
    """Returns at most `limit` tables that would have another policy, and the number of all; without a `policy` for its
    deletion. Raises PolicyNotFoundError.

    The edit is made in a transaction that is never committed, so a preview decides exactly as the service would.
    """
    changed: list[ChangedTable] = []
    number = 0
    now = database.clock()
    try:
        with writing(database.engine) as connection:
            before = effective_of_all(connection)
            if policy is None:
                store.delete(connection, pattern)
            else:
                store.put(connection, policy)
            for table_id, (name, after) in effective_of_all(connection).items():
                settings = _changes(before[table_id][1], after)
                number += bool(settings)
                if settings and len(changed) < limit:
                    found = scheduler.evaluated(connection, table_id, now, config)
                    starts = [each for each in found.decisions if each.verdict is Verdict.RUN]
                    changed.append(ChangedTable(table_id, name, settings, starts))
            raise _UndoneError
    except _UndoneError:
        pass
    return changed, number


def _changes(before: Effective, after: Effective) -> list[ChangedSetting]:
    old, new = before.policy.to_json(), after.policy.to_json()
    found = []
    for name, source in after.sources.items():
        section, _, member = name.partition(".")
        values = [each[section][member] if section in SECTIONS else each[section] for each in (old, new)]
        if values[0] != values[1]:
            found.append(ChangedSetting(name, values[0], values[1], source))
    return found
