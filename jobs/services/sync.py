"""Sync to a Hive metastore, by Hudi's own tool, or to AWS Glue: tables, columns, partitions, and the commit that was
synced last.

The job only reads the table, so it needs no lock; the service never runs two syncs of a table at once. Each sync
compares everything, so it corrects what a dead attempt has left and what others have changed in the metastore.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import UNSET

from jobs.contract import Outcome, Problem, Result, WorkOrder
from jobs.errors import MetastoreError, RefusedError, refuse
from jobs.format.partition_values import (
    PartitionChanges,
    changes,
    extractor_for,
    misfit,
    values_of,
    without_scheme,
)
from jobs.format.server_addresses import is_glue
from jobs.hudi.glue_sync import Glue
from jobs.hudi.hive_sync import Metastore
from jobs.hudi.metastore_table import MetastoreTable, Target, timeline_of
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.job_params import PartitionExtractor, SyncStrategy
from jobs.kinds.sync import SyncedInstants, SyncedTable, SyncParams, SyncResult
from jobs.problems.syncs import (
    METASTORE_COLUMNS_INCOMPATIBLE,
    METASTORE_DATABASE_MISSING,
    METASTORE_NAME_UNSUITED,
    METASTORE_PARTITIONING_DIFFERS,
    METASTORE_TABLE_ELSEWHERE,
    METASTORE_TABLE_NOT_HUDI,
    NO_COMMIT,
    PARTITION_VALUES_UNSUITED,
)

if TYPE_CHECKING:
    from msgspec import UnsetType


_MOST_LISTED = 100
_ROUNDS = 4
_NAME = re.compile(r"[A-Za-z0-9_]{1,128}", re.ASCII)


@dataclass(frozen=True)
class Wanted:
    """The tables, columns and properties that the metastore should have, without the partitions."""

    names: tuple[str, ...]
    columns: Mapping[str, str]
    partition_columns: Mapping[str, str]
    extractor: PartitionExtractor


@dataclass(frozen=True)
class Difference:
    """The differences of one table of the metastore. `changed` maps columns to their types before and after."""

    name: str
    found: MetastoreTable | None
    added: Mapping[str, str]
    changed: Mapping[str, tuple[str, str]]
    partitions: PartitionChanges

    def __bool__(self) -> bool:
        return bool(self.found is None or self.added or self.changed or self.partitions)

    def to_result(self, database: str, *, synced: str | None) -> SyncedTable:
        """Returns the differences for a result, with at most a hundred names each."""
        dropped = ["/".join(values) for values in self.partitions.dropped]
        return SyncedTable(
            table=f"{database}.{self.name}",
            created=self.found is None,
            columns_added=tuple(f"{name} {kind}" for name, kind in self.added.items()) if self.found else (),
            columns_changed=tuple(f"{name} {old} to {new}" for name, (old, new) in self.changed.items()),
            partitions_added=len(self.partitions.added),
            partitions_moved=len(self.partitions.moved),
            partitions_dropped=len(dropped),
            added_partitions=_first(self.partitions.added),
            moved_partitions=_first(self.partitions.moved),
            dropped_partitions=_first(dropped),
            synced=SyncedInstants(before=self.found.synced if self.found else None, after=synced),
        )


def _first(names: Collection[str]) -> tuple[str, ...] | UnsetType:
    return tuple(names)[:_MOST_LISTED] or UNSET


def run(table: HudiTable, order: WorkOrder[SyncParams], context: JobContext) -> Result[SyncResult]:
    """Plans by comparing, syncs, and compares again until nothing differs. A dry run returns the differences."""
    context.step("comparing with the metastore")
    # The order matters: the instants are read first, then the timeline to sync, then the listings. So a later step
    # knows at least what an earlier one has seen.
    instants = [item.requested for item in table.instants() if item.state == "COMPLETED"]
    timeline = timeline_of(table)
    if not table.commits():
        raise RefusedError([NO_COMMIT.because()])
    target = _target(table, order.params)
    metastore = (Glue if is_glue(target.uris) else Metastore)(table, target, timeline)
    try:
        if problems := _unnamed(metastore):
            found: list[Difference] = []
        else:
            wanted = Wanted(_names(table, target), *metastore.columns(), target.extractor)
            found, problems = _compared(table, metastore, wanted)
        if order.dry_run:
            return Result(Outcome.SUCCEEDED, details=_result(target, found, instants).having(refusals=tuple(problems)))
        refuse(problems)
        context.step("syncing with the metastore")
        # Partitions are dropped here before the tool runs, because the tool does not escape their names.
        for each in found:
            metastore.change(each.name, PartitionChanges(dropped=each.partitions.dropped))
        context.checkpoint()
        metastore.sync()
        context.step("comparing the partitions")
        _reconcile(table, metastore, wanted, context)
        metastore.complete(wanted.names)
        after = metastore.tables(wanted.names)
    finally:
        metastore.close()
    return Result(Outcome.SUCCEEDED, details=_result(target, found, instants, after))


def _reconcile(table: HudiTable, metastore: Metastore | Glue, wanted: Wanted, context: JobContext) -> None:
    """Removes remaining differences. Writers may add partitions meanwhile, so this may take a second round."""
    for _ in range(_ROUNDS):
        found, problems = _compared(table, metastore, wanted)
        refuse(problems)
        left = [each for each in found if each]
        if not left:
            return
        for each in left:
            context.checkpoint()
            metastore.change(each.name, each.partitions)
    names = ", ".join(f"{metastore.target.database}.{each.name}" for each in left)
    raise MetastoreError(f"After the sync the metastore still differs from the table: {names}.")


def _live_partitions(table: HudiTable) -> list[str]:
    """Returns the partitions that may have rows: all except those whose file groups were all replaced.

    Such a partition keeps its folder and its place in the metadata table until it is cleaned.
    """
    table.reload()
    paths = table.partitions()
    replaced = {partition for commit in table.commits() for partition, _ in commit.write.replaced}
    if not replaced.intersection(paths):
        return paths
    filled = {each.partition for each in table.file_slices()}
    return [path for path in paths if path not in replaced or path in filled]


def _target(table: HudiTable, params: SyncParams) -> Target:
    fields = params.partition_fields or tuple(table.partition_fields)
    extractor = params.partition_extractor or extractor_for(fields, table.partitions())
    return Target(
        uris=params.metastore_uris,
        database=params.database,
        table=params.table or table.name,
        strategy=params.strategy.value,
        partition_fields=fields,
        extractor=extractor,
        create_database=params.create_database,
    )


def _names(table: HudiTable, target: Target) -> tuple[str, ...]:
    """Returns the names of the metastore tables that `HiveSyncTool.doSync` creates for a table."""
    if not table.is_merge_on_read or target.strategy != SyncStrategy.ALL:
        return (target.table,)
    return (f"{target.table}_ro", f"{target.table}_rt", target.table)


def _unnamed(metastore: Metastore | Glue) -> list[Problem]:
    target = metastore.target
    if not _NAME.fullmatch(target.table):
        return [METASTORE_NAME_UNSUITED.because(target.table)]
    if not target.create_database and not metastore.has_database():
        return [METASTORE_DATABASE_MISSING.because(target.database)]
    return []


def _values(wanted: Wanted, paths: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """Returns the values of the partition paths, and the problems if they do not fit the partition columns."""
    keys = wanted.partition_columns
    values: dict[str, tuple[str, ...]] = {}
    for path in paths if keys else ():
        try:
            values[path] = values_of(wanted.extractor, path)
        except ValueError as error:
            return {}, [_unsuited(str(error))]
        if len(values[path]) != len(keys):
            return {}, [_unsuited(f"'{path}' has {len(values[path])} values for {', '.join(keys)}")]
        if reason := misfit(values[path], list(keys.values())):
            return {}, [_unsuited(f"'{path}' has {reason}")]
    if len(set(values.values())) < len(values):
        return {}, [_unsuited("two paths have the same values")]
    return values, []


def _unsuited(detail: str) -> Problem:
    return PARTITION_VALUES_UNSUITED.because(detail)


def _compared(table: HudiTable, metastore: Metastore | Glue, wanted: Wanted) -> tuple[list[Difference], list[Problem]]:
    """Returns the differences, and the problems if they cannot be removed."""
    existing = metastore.tables(wanted.names)
    # The metastore is listed before the table. In the other order, a partition that a writer adds to both in between
    # would look deleted.
    values, problems = _values(wanted, _live_partitions(table))
    if problems:
        return [], problems
    found = []
    for name, current in existing.items():
        before = current.columns if current else {}
        changed = {
            column: (before[column], kind)
            for column, kind in wanted.columns.items()
            if column in before and before[column] != kind
        }
        added = {column: kind for column, kind in wanted.columns.items() if column not in before}
        partitions = changes(table.base_path, values, current.partitions if current else {})
        found.append(Difference(name, current, added, changed, partitions))
    return found, [problem for each in found for problem in _refusals(table, metastore, wanted, each)]


def _refusals(
    table: HudiTable, metastore: Metastore | Glue, wanted: Wanted, difference: Difference
) -> Iterator[Problem]:
    current, name = difference.found, f"{metastore.target.database}.{difference.name}"
    keys = ", ".join(wanted.partition_columns) or "none"
    if current is None:
        return
    if without_scheme(current.location) != without_scheme(table.base_path):
        yield METASTORE_TABLE_ELSEWHERE.because(f"{name}: {current.location or 'a view'}")
    elif not current.is_hudi:
        yield METASTORE_TABLE_NOT_HUDI.because(name)
    elif list(current.partition_columns) != list(wanted.partition_columns):
        yield METASTORE_PARTITIONING_DIFFERS.because(
            f"{name}: {', '.join(current.partition_columns) or 'none'}, not {keys}"
        )
    elif (difference.added or difference.changed) and metastore.refuses(current.columns, wanted.columns):
        changed = ", ".join(f"{column} {old} to {new}" for column, (old, new) in difference.changed.items())
        yield METASTORE_COLUMNS_INCOMPATIBLE.because(f"{name}: {changed or 'their order'}")


def _result(
    target: Target,
    found: Sequence[Difference],
    instants: Sequence[str],
    after: Mapping[str, MetastoreTable | None] | None = None,
) -> SyncResult:
    tables = []
    for each in found:
        current = (after or {}).get(each.name)
        tables.append(each.to_result(target.database, synced=current.synced if current else None))
    is_changed = any(map(bool, found))
    return SyncResult(
        metastore=target.uris,
        changed=is_changed,
        nothing_to_do=not is_changed,
        tables=tuple(tables),
        # The service starts another sync when it sees a later instant.
        last_instant=max(instants, default=None),
    )
