"""Previews of policies: the tables that an edit changes, and the jobs that would start there now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from jobs.spec import Documented, Spec
from service.db.engine import reading, writing
from service.policies import store
from service.policies.policy import SECTIONS, PatternPolicy
from service.policies.policy_registry import effective_of_all
from service.scheduling import scheduler
from service.scheduling.decision import Decision, Verdict
from service.scheduling.expected_costs import costs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.events.database import Database
    from service.policies.precedence import Effective
    from service.queue.forecaster import Forecaster
    from service.scheduling.expected_costs import Costs
    from service.scheduling.scheduler import SchedulerConfig


@dataclass(frozen=True)
class ChangedSetting(Documented):
    """A setting of a table's effective policy before and after an edit, and the level that sets it after the edit."""

    setting: Annotated[str, Spec("Name of the setting", examples=("compaction.commits",))]
    before: Any
    after: Any
    source: Annotated[str, Spec("The level that would set the value", examples=("pattern orders_*",))]


@dataclass(frozen=True)
class ChangedTable:
    """A table whose policy an edit changes. `starts` are the jobs that would start now."""

    id: str
    name: str
    settings: Sequence[ChangedSetting]
    starts: Sequence[Decision]


class _UndoneError(Exception):
    """Ends the transaction of a preview without a commit."""


def of_pattern(
    database: Database,
    config: SchedulerConfig,
    pattern: str,
    policy: PatternPolicy | None,
    *,
    limit: int,
    forecaster: Forecaster | None = None,
) -> tuple[list[ChangedTable], int]:
    """Returns at most `limit` tables whose policy would change, and the number of all such tables. A `policy` of None
    previews the deletion. Raises PolicyNotFoundError.

    For each table, the edit is made in a separate transaction that is never committed. So the preview decides exactly
    as the service would, and others wait for one table at most.
    """
    with reading(database.engine) as connection:
        patterns = store.every(connection)
        if policy is None:
            store.get(connection, pattern)
        kept = [each for each in patterns if each.pattern != pattern]
        before = effective_of_all(connection, patterns)
        after = effective_of_all(connection, kept if policy is None else [*kept, policy])
        changed = [table_id for table_id, (_, found) in after.items() if found.policy != before[table_id][1].policy]
        costs = costs_of(connection, forecaster, changed[:limit])
    shown = []
    for table_id in changed[:limit]:
        (name, new), (_, old) = after[table_id], before[table_id]
        starts = _starts(database, config, table_id, policy or pattern, costs)
        shown.append(ChangedTable(table_id, name, _changes(old, new), starts))
    return shown, len(changed)


def _starts(
    database: Database,
    config: SchedulerConfig,
    table_id: str,
    edit: PatternPolicy | str,
    costs: Costs,
) -> Sequence[Decision]:
    """Returns the jobs that would start after the edit: a new policy, or the deletion of a pattern's policy."""
    starts: Sequence[Decision] = ()
    try:
        with writing(database.engine) as connection:
            if isinstance(edit, str):
                store.delete(connection, edit)
            else:
                store.put(connection, edit)
            found = scheduler.evaluated(connection, table_id, database.clock(), config, costs)
            starts = [each for each in found.decisions if each.verdict is Verdict.RUN]
            raise _UndoneError
    except _UndoneError:
        return starts


def _changes(before: Effective, after: Effective) -> list[ChangedSetting]:
    old, new = before.policy.to_json(), after.policy.to_json()
    found = []
    for name, source in after.sources.items():
        section, _, member = name.partition(".")
        values = [each[section][member] if section in SECTIONS else each[section] for each in (old, new)]
        if values[0] != values[1]:
            found.append(ChangedSetting(name, values[0], values[1], source))
    return found
