"""Store of table snapshots, kept by partition so that a poll writes only what changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from service.db import schema
from service.lake.snapshot import Bucket, PartitionDetail, PartitionState, Pending, Since, TableSnapshot
from service.lake.table import TableType

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sqlalchemy import Connection

_s = schema.snapshots
_p = schema.partitions


@dataclass(frozen=True)
class Stored:
    """A snapshot without its partitions. `hashing_config` is the config in force (its instant, expressions and default)
    and those before it."""

    snapshot: TableSnapshot
    hashing_config: Mapping[str, Any] | None = field(default=None)


def find(connection: Connection, table_id: str) -> Stored | None:
    """Returns the snapshot without its partitions; None before the first poll."""
    row = connection.execute(sa.select(_s).where(_s.c.table_id == table_id)).one_or_none()
    if row is None:
        return None
    return Stored(_snapshot(table_id, row.taken_at, row.summary), row.summary["hashing_config"])


def every(connection: Connection, table_id: str | None = None) -> dict[str, TableSnapshot]:
    """Returns the snapshots without their partitions, by table id, of all tables or of one."""
    query = sa.select(_s) if table_id is None else sa.select(_s).where(_s.c.table_id == table_id)
    return {row.table_id: _snapshot(row.table_id, row.taken_at, row.summary) for row in connection.execute(query)}


def get(connection: Connection, table_id: str) -> TableSnapshot | None:
    """Returns the snapshot with the partitions that have files, in the order of their paths; None before the first
    poll."""
    stored = find(connection, table_id)
    if stored is None:
        return None
    rows = connection.execute(sa.select(_p.c.state).where(_p.c.table_id == table_id).order_by(_p.c.path))
    states = tuple(state for state in map(partition_state, rows.scalars()) if state.has_files)
    return dataclasses.replace(stored.snapshot, partitions=states)


def details(connection: Connection, table_id: str, paths: Collection[str] | None = None) -> dict[str, PartitionDetail]:
    """Returns the details of these partitions, or of all."""
    query = sa.select(_p).where(_p.c.table_id == table_id).order_by(_p.c.path)
    if paths is not None:
        query = query.where(_p.c.path.in_(paths))
    return {row.path: _detail(row) for row in connection.execute(query)}


def save(connection: Connection, stored: Stored) -> None:
    """Saves everything but the partitions, and the sizes of those that are stored (see `table_statistics`)."""
    snapshot = stored.snapshot
    summary = {**_summary(snapshot, stored.hashing_config), **_sizes(connection, snapshot.table_id)}
    values = {"taken_at": snapshot.taken_at, "summary": summary}
    changed = connection.execute(_s.update().where(_s.c.table_id == snapshot.table_id).values(**values))
    if not changed.rowcount:
        connection.execute(_s.insert().values(table_id=snapshot.table_id, **values))


def save_partitions(
    connection: Connection, table_id: str, listed: Collection[str] | None, found: Iterable[PartitionDetail]
) -> None:
    """Replaces the stored partitions. `listed` are the paths that were listed, None for all: those that are not among
    `found` are deleted."""
    old = _p.delete().where(_p.c.table_id == table_id)
    connection.execute(old if listed is None else old.where(_p.c.path.in_(listed)))
    rows = [_partition_values(table_id, detail) for detail in found]
    if rows:
        connection.execute(_p.insert(), rows)


def _sizes(connection: Connection, table_id: str) -> dict[str, int]:
    """Returns the sums over the table's partitions."""
    query = sa.select(
        *(
            sa.func.sum(sa.cast(_p.c.state[name].as_string(), sa.BigInteger)).label(name)
            for name in ("base_bytes", "log_bytes")
        )
    )
    row = connection.execute(query.where(_p.c.table_id == table_id)).one()
    return {name: int(number or 0) for name, number in row._mapping.items()}


def forget(connection: Connection, table_id: str) -> None:
    """Deletes the snapshot, so that the next poll lists the whole table."""
    for part in (_s, _p):
        connection.execute(part.delete().where(part.c.table_id == table_id))


def partition_state(data: Mapping[str, Any]) -> PartitionState:
    """Returns the stored state of a partition."""
    return PartitionState(**_known(PartitionState, data))


def _known(cls: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """Drops fields that another version of the service has stored."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in data.items() if name in names}


def _partition_values(table_id: str, detail: PartitionDetail) -> dict[str, Any]:
    return {
        "table_id": table_id,
        "path": detail.state.path,
        "state": dataclasses.asdict(detail.state),
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
    kept = {
        each.name: getattr(snapshot, each.name)
        for each in dataclasses.fields(snapshot)
        if each.name not in ("table_id", "taken_at", "partitions")
    }
    kept["pending"] = [dataclasses.asdict(each) for each in snapshot.pending]
    for name in _SINCE:
        kept[name] = dataclasses.asdict(kept[name])
    summary: dict[str, Any] = _storable({**kept, "hashing_config": dict(hashing_config) if hashing_config else None})
    return summary


def _snapshot(table_id: str, taken_at: datetime, summary: Mapping[str, Any]) -> TableSnapshot:
    data = _known(TableSnapshot, summary)
    data["table_type"] = TableType(data["table_type"])
    data["pending"] = tuple(Pending(**_restored(each, _PENDING_MOMENTS)) for each in data["pending"])
    for name in _SINCE:
        data[name] = Since(**_restored(data[name], ("at",)))
    return TableSnapshot(table_id=table_id, taken_at=taken_at, **_restored(data, _MOMENTS))


_SINCE = ("since_compaction", "since_cleaning", "since_clustering")
_PENDING_MOMENTS = ("requested_at", "heartbeat_at")
_MOMENTS = ("last_commit_at", "first_commit_at")


def _storable(value: Any) -> Any:
    """Converts datetimes to text for JSON."""
    match value:
        case datetime():
            return value.isoformat()
        case Mapping():
            return {key: _storable(each) for key, each in value.items()}
        case list():
            return [_storable(each) for each in value]
    return value


def _restored(data: Mapping[str, Any], moments: tuple[str, ...]) -> dict[str, Any]:
    return {name: datetime.fromisoformat(value) if name in moments and value else value for name, value in data.items()}
