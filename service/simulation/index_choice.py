"""Finds out whether a bucket index would suit the writers of a table that has none, by the rules of the guide to
indexes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Annotated

from sqlalchemy import Connection

from jobs.contract import JobKind, WriterEngine
from jobs.format.index_definitions import RECORDS
from jobs.spec import Documented, Spec
from service.catalog import commit_store, snapshot_store, watch_store
from service.catalog.registration import Registration
from service.lake.snapshot import TableSnapshot

MOST_UPSERTS = 200
"""At most this many upserts of the last week are read, the latest ones."""

_PAST = timedelta(days=7)
_LEAST_UPSERTS = 10
_LEAST_FILE_GROUPS = 4
_SCATTERED = 0.5
"""If upserts touch at least this share of the file groups, keys count as scattered over their partitions."""


@dataclass(frozen=True)
class Written:
    """A table without a bucket index: the numbers of partitions and file groups that each upsert of a week touched, the
    numbers that the table has, and the parts of its metadata table."""

    upserts: Sequence[tuple[int, int]]
    partitions: int
    file_groups: int
    metadata: Collection[str] = ()


@dataclass(frozen=True)
class IndexChoice(Documented):
    """Whether a bucket index would suit the writers, by their upserts of a week."""

    kind: Annotated[
        JobKind | None,
        Spec("The job that would change the index; null if the index may stay", examples=("bucket_index",)),
    ]
    upserts: Annotated[int, Spec(f"Upserts of the last week, the latest {MOST_UPSERTS} of them", examples=(96,))]
    touched: Annotated[
        float, Spec("Share of the file groups of its partitions that the median upsert touches", examples=(0.9,))
    ]
    text: Annotated[
        str, Spec("The same in words", examples=("the index may stay: an upsert touches 4 % of the file groups",))
    ]


def of_table(connection: Connection, table: Registration, snapshot: TableSnapshot, now: datetime) -> IndexChoice | None:
    """Returns the choice. Returns None if the table has a bucket index, if Flink writes the table (Flink's state is
    then the index), or while too little is known."""
    engines = table.writers.known_engines(watch_store.engines_of(connection, table.id))
    if table.has_buckets or snapshot.num_buckets or WriterEngine.FLINK in engines:
        return None
    return chosen(
        Written(
            commit_store.upserts(connection, table.id, now - _PAST, MOST_UPSERTS),
            snapshot_store.number_of_partitions(connection, table.id),
            snapshot.totals.file_groups,
            table.profile.get("metadata_partitions") or (),
        )
    )


def chosen(written: Written) -> IndexChoice | None:
    """Returns the choice; None while too little is known."""
    if len(written.upserts) < _LEAST_UPSERTS or not written.partitions or not written.file_groups:
        return None
    of_partition = written.file_groups / written.partitions
    shares = (file_groups / (max(partitions, 1) * of_partition) for partitions, file_groups in written.upserts)
    touched = min(1.0, median(shares))
    share = f"an upsert touches {touched:.0%} of the file groups of its partitions".replace("%", " %")
    kind = None
    if RECORDS in written.metadata:
        text = "the index may stay: the table has a record index, which looks for keys in the whole table"
    elif of_partition < _LEAST_FILE_GROUPS:
        text = f"the index may stay: a partition has {of_partition:.1f} file groups, so that keys are found quickly"
    elif touched < _SCATTERED:
        text = f"the index may stay: {share}"
    else:
        kind = JobKind.BUCKET_INDEX
        text = (
            f"a bucket index would need no look-ups: {share}, so that a Bloom or simple index reads the keys of most of"
            " them. Keys would then be unique only within a partition, and all writers have to stop for the change"
        )
    return IndexChoice(kind, len(written.upserts), round(touched, 3), text)
