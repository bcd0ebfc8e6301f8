"""Store of table snapshots. Each partition is a row, so that a poll writes only the partitions that have changed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from jobs.contract import converted, json_of
from service.db import bulk, schema
from service.db.documents import Reading, pairs_of, rows_of
from service.lake.backlog import extended
from service.lake.snapshot import (
    Bucket,
    PartitionDetail,
    PartitionState,
    TableSnapshot,
    Totals,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from sqlalchemy import Connection

_s = schema.snapshots
_p = schema.partitions


@dataclass(frozen=True)
class Stored:
    """A snapshot without its partitions."""

    snapshot: TableSnapshot
    # The hashing config in force (its instant, expressions and default), and those before it.
    hashing_config: Mapping[str, Any] | None = field(default=None)


def find(connection: Connection, table_id: str) -> Stored | None:
    """Returns the snapshot without its partitions; None before the first poll."""
    return OF_TABLE.read(connection, {"of_table": table_id})


def of_tables(connection: Connection, table_ids: Collection[str]) -> dict[str, TableSnapshot]:
    """Returns the snapshots of these tables without their partitions, by table id."""
    rows = connection.execute(_OF_TABLES, {"of_tables": list(table_ids)})
    return {row.table_id: _snapshot(row.table_id, row.taken_at, row.summary) for row in rows}


def totals(connection: Connection, table_ids: Collection[str]) -> dict[str, Totals]:
    """Returns the totals of these tables, as far as they have been polled."""
    return _TOTALS_OF_TABLES.read(connection, {"of_tables": list(table_ids)})


def get(connection: Connection, table_id: str) -> TableSnapshot | None:
    """Returns the snapshot with its partitions (`with_partitions`); None before the first poll."""
    stored = find(connection, table_id)
    return with_partitions(connection, stored.snapshot) if stored else None


def with_partitions(connection: Connection, snapshot: TableSnapshot) -> TableSnapshot:
    """Returns the snapshot with the partitions that have files, in the order of their paths."""
    return dataclasses.replace(snapshot, partitions=STATES.read(connection, {"of_table": snapshot.table_id}))


def number_of_partitions(connection: Connection, table_id: str) -> int:
    """Returns the number of partitions that have file groups."""
    return connection.execute(_NUMBER, {"of_table": table_id}).scalar_one()


def details(connection: Connection, table_id: str, paths: Collection[str] | None = None) -> dict[str, PartitionDetail]:
    given: dict[str, Any] = {"of_table": table_id}
    if paths is None:
        rows = connection.execute(_DETAILS, given)
    else:
        rows = connection.execute(_DETAILS_OF, {**given, "paths": list(paths)})
    return {row.path: _detail(row) for row in rows}


def save(connection: Connection, stored: Stored) -> TableSnapshot:
    """Saves everything but the partitions. Returns the snapshot with the fields that are computed from the stored
    partitions: `totals`, `large`, `skewed` and `cycles`."""
    snapshot = _completed(connection, stored.snapshot)
    values = _values(snapshot, stored.hashing_config)
    changed = connection.execute(_UPDATE, {"of_table": snapshot.table_id, **values})
    if not changed.rowcount:
        connection.execute(_INSERT, {"table_id": snapshot.table_id, **values})
    return snapshot


def add(connection: Connection, found: Iterable[tuple[Stored, Sequence[PartitionDetail]]]) -> list[TableSnapshot]:
    """Saves the first snapshots of tables, with all partitions. Returns the completed snapshots, as `save` does, but
    without reading the partitions again."""
    snapshots, rows, partitions = [], [], []
    for stored, details in found:
        snapshot = _with_totals(stored.snapshot, [each.state for each in details])
        snapshots.append(snapshot)
        rows.append({"table_id": snapshot.table_id, **_values(snapshot, stored.hashing_config)})
        partitions += [_partition_values(snapshot.table_id, each) for each in details]
    bulk.write(connection, _s, rows)
    bulk.write(connection, _p, partitions)
    return snapshots


def _values(snapshot: TableSnapshot, hashing_config: Mapping[str, Any] | None) -> dict[str, Any]:
    sizes = {"base_bytes": snapshot.totals.base_bytes, "log_bytes": snapshot.totals.log_bytes}
    # The columns that `table_statistics` reads are derived from the sizes.
    return {"taken_at": snapshot.taken_at, "summary": {**_summary(snapshot, hashing_config), **sizes}}


def save_partitions(
    connection: Connection, table_id: str, listed: Collection[str] | None, found: Iterable[PartitionDetail]
) -> None:
    """Stores the partitions in `found`. `listed` are the paths that were listed; None means all. A listed partition
    that is not in `found` is deleted."""
    rows = [_partition_values(table_id, detail) for detail in found]
    if listed is None:
        connection.execute(_DELETE_PARTITIONS, {"of_table": table_id})
    elif gone := {*listed} - {each["path"] for each in rows}:
        connection.execute(_DELETE_LISTED, {"of_table": table_id, "listed": list(gone)})
    bulk.write(connection, _p, rows, key=("table_id", "path"))


def _with_totals(snapshot: TableSnapshot, states: Sequence[PartitionState]) -> TableSnapshot:
    """Does the same as `_completed`, with all partitions of a table at hand instead of in the database."""
    by_path = sorted((each for each in states if each.largest_bucket_bytes), key=lambda each: each.path)
    totals = Totals.of(states)
    return dataclasses.replace(
        snapshot,
        totals=totals,
        large=max(by_path, key=lambda each: each.largest_bucket_bytes, default=None),
        skewed=max(by_path, key=lambda each: each.skew, default=None),
        cycles=extended(snapshot.cycles, totals.log_bytes, snapshot.since_compaction.at, snapshot.taken_at),
    )


def _completed(connection: Connection, snapshot: TableSnapshot) -> TableSnapshot:
    *sums, large, skewed = connection.execute(_TOTALS, {"of_table": snapshot.table_id}).one()
    totals = Totals(*(int(number or 0) for number in sums))
    return dataclasses.replace(
        snapshot,
        totals=totals,
        large=None if large is None else partition_state(large),
        skewed=None if skewed is None else partition_state(skewed),
        cycles=extended(snapshot.cycles, totals.log_bytes, snapshot.since_compaction.at, snapshot.taken_at),
    )


def _number(name: str) -> sa.ColumnElement[int]:
    """Returns a number in the state of a partition, 0 if the state lacks it."""
    # The value is passed as text, because PostgreSQL would take a number as an integer of 32 bits.
    return sa.func.coalesce(sa.cast(_p.c.state[name].as_string(), sa.BigInteger), 0)


def _totals() -> sa.Select[Any]:
    small, logs, groups = _number("small_files"), _number("log_files"), _number("file_groups")
    # The product may be too large for an integer of the database, so it is computed as a float.
    has_logs = sa.case((logs < groups, sa.cast(logs, sa.Float) / sa.func.nullif(groups, 0)), else_=1.0)
    derived = {
        "mergeable_files": sa.case((small > 1, small), else_=0),
        "logged_bytes": _number("log_bytes") + _number("base_bytes") * has_logs,
    }
    names = [each.name for each in dataclasses.fields(Totals)]
    sums = [sa.func.sum(derived[name] if name in derived else _number(name)) for name in names]
    return sa.select(*sums, _first(_LARGEST), _first(_SKEW)).where(_IS_OF_TABLE)


def _first(order: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    is_known = _number("largest_bucket_bytes") > 0
    query = sa.select(_p.c.state).where(_IS_OF_TABLE, is_known).order_by(order.desc(), _p.c.path).limit(1)
    return query.correlate(None).scalar_subquery()


# Statements are built once, because building takes longer than executing.
_IS_OF_TABLE = _p.c.table_id == sa.bindparam("of_table")
_LARGEST = _number("largest_bucket_bytes")
_SKEW = sa.cast(_LARGEST * _number("num_buckets"), sa.Float) / sa.func.nullif(
    _number("base_bytes") + _number("log_bytes"), 0
)
_TOTALS = _totals()
_STORED = sa.select(_s.c.table_id, _s.c.taken_at, _s.c.summary)
_OF_TABLES = _STORED.where(schema.among(_s.c.table_id, "of_tables"))
CLOCKS: Reading[dict[str, Mapping[str, Any]]]
"""Reads the `clock` of the snapshots of the tables `of_tables`, without the tables that have none."""
_TOTALS_OF_TABLES: Reading[dict[str, Totals]]
CLOCKS, _TOTALS_OF_TABLES = (
    pairs_of(kind, sa.select(_s.c.table_id, _s.c.summary[name]).where(schema.among(_s.c.table_id, "of_tables")))
    for name, kind in (("clock", dict[str, Any]), ("totals", Totals))
)
_INSERT = _s.insert()
_UPDATE = _s.update().where(_s.c.table_id == sa.bindparam("of_table"))
_DETAILS = sa.select(_p).where(_IS_OF_TABLE).order_by(_p.c.path)
_DETAILS_OF = _DETAILS.where(schema.among(_p.c.path, "paths"))
_NUMBER = sa.select(sa.func.count()).where(_IS_OF_TABLE, _p.c.state["file_groups"].as_integer() > 0)
_DELETE_PARTITIONS = _p.delete().where(_IS_OF_TABLE)
_DELETE_LISTED = _DELETE_PARTITIONS.where(schema.among(_p.c.path, "listed"))


def _found(rows: Sequence[tuple[str, datetime, dict[str, Any]]]) -> Stored | None:
    found = (Stored(_snapshot(*row), row[2]["hashing_config"]) for row in rows)
    return next(found, None)


OF_TABLE: Reading[Stored | None] = rows_of(
    tuple[str, datetime, dict[str, Any]], _STORED.where(_s.c.table_id == sa.bindparam("of_table"))
).then(_found)
"""Reads what `find` returns."""
STATES: Reading[tuple[PartitionState, ...]] = rows_of(
    tuple[PartitionState], sa.select(_p.c.state).where(_IS_OF_TABLE).order_by(_p.c.path)
).then(lambda rows: tuple(state for (state,) in rows if state.has_files))
"""Reads the states of the partitions that have files, in the order of their paths."""


def forget(connection: Connection, table_id: str) -> None:
    """Deletes the snapshot, so that the next poll lists the whole table."""
    for part in (_s, _p):
        connection.execute(part.delete().where(part.c.table_id == table_id))


def forget_metadata_table(connection: Connection, table_id: str) -> None:
    """Deletes the state of the metadata table, so that the next poll that finds the table changed reads it again."""
    stored = find(connection, table_id)
    if stored is not None and stored.snapshot.metadata_table is not None:
        save(
            connection, dataclasses.replace(stored, snapshot=dataclasses.replace(stored.snapshot, metadata_table=None))
        )


def partition_state(data: Mapping[str, Any]) -> PartitionState:
    return converted(data, PartitionState)


def _partition_values(table_id: str, detail: PartitionDetail) -> dict[str, Any]:
    return {
        "table_id": table_id,
        "path": detail.state.path,
        "state": dict(vars(detail.state)),
        "buckets": [[bucket.number, bucket.bytes, bucket.rows] for bucket in detail.buckets],
        "base_rows": dict(detail.base_rows),
        "replaced": dict(detail.replaced),
    }


def _detail(row: sa.Row[Any]) -> PartitionDetail:
    return PartitionDetail(
        state=partition_state(row.state),
        buckets=tuple(Bucket(*bucket) for bucket in row.buckets),
        base_rows=row.base_rows,
        # Earlier versions of the service stored only the file ids.
        replaced=row.replaced if isinstance(row.replaced, dict) else dict.fromkeys(row.replaced, ""),
    )


def _summary(snapshot: TableSnapshot, hashing_config: Mapping[str, Any] | None) -> dict[str, Any]:
    members = json_of(snapshot)
    return {
        **{name: value for name, value in members.items() if name not in ("table_id", "taken_at", "partitions")},
        "hashing_config": dict(hashing_config) if hashing_config else None,
    }


def _snapshot(table_id: str, taken_at: datetime, summary: Mapping[str, Any]) -> TableSnapshot:
    return converted({**summary, "table_id": table_id, "taken_at": taken_at}, TableSnapshot)
