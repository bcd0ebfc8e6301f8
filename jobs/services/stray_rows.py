"""Compares stray rows with the current table, and decides which of them would be in it if they had been written
correctly. A stray row loses against rows that were written after it, and replaces rows that were written before it. If
the table orders by a field, the ordering value decides first, as in Hudi's merge (`EventTimeBasedMerger`). A key that
existed when the stray row was committed, but does not exist now, was deleted since then and stays deleted."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.format.meta_columns import COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.format.stale_writes import dated
from jobs.hudi import rows
from jobs.hudi.jvm import translated
from jobs.hudi.stale_slices import deleted_keys
from jobs.services.checks import row_counts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from jobs.format.stale_writes import Group
    from jobs.hudi.records import Commit
    from jobs.hudi.stale_slices import DeletedKey
    from jobs.hudi.table import HudiTable

KEY = [PARTITION_PATH, RECORD_KEY]
FILE_ID = "_file_id"
# Operations of statements that change only existing rows.
_OF_FOUND_ROWS = ("UPSERT_PREPPED", "DELETE_PREPPED")


@dataclass(frozen=True)
class Decided:
    """The rows to write. `upserts` and `deletes` have the table's columns; counted data frames are cached.

    `deletes` is None if there are none. `superseded` counts stray rows and deletes that newer ones have overtaken.
    `written_by` and `deleted_by` are the instants from which the rows and the deletes come, and `delete_records` Hudi's
    `DeleteRecord`s of the deletes with ordering values, by partition path and key.
    """

    upserts: DataFrame
    deletes: DataFrame | None
    upsert_count: int
    delete_count: int
    superseded: int
    written_by: tuple[str, ...] = ()
    deleted_by: tuple[str, ...] = ()
    delete_records: Mapping[tuple[str, str], Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Misplaced:
    """Rows in files of wrong buckets, each key once, and the file groups (partition path, file id) that hold them. The
    `places` are the key and the file id of each such row, and `instants` wrote these rows. Such a group may be the
    right one for other rows."""

    rows: DataFrame
    places: DataFrame
    groups: frozenset[Group]
    instants: frozenset[str]


def latest(table: HudiTable, merged: DataFrame, instants: Sequence[str]) -> DataFrame:
    """Returns the rows of stale slices that these instants wrote. If there are several rows with one key, the last one
    is returned."""
    mine = merged.where(F.col(COMMIT_TIME).isin(list(instants)))
    last = Window.partitionBy(*KEY).orderBy(F.col(COMMIT_TIME).desc())
    columns = rows.current(table).columns
    # A column that was added later is null in older rows.
    aligned = [F.col(name) if name in mine.columns else F.lit(None).alias(name) for name in columns]
    return mine.withColumn("_rank", F.row_number().over(last)).where("_rank = 1").select(*aligned).cache()


def decide(
    table: HudiTable,
    strays: DataFrame,
    deletes: Sequence[DeletedKey],
    commits: Sequence[Commit],
    *,
    is_visible: bool = False,
    dropped: Collection[str] = (),
) -> Decided:
    """Decides between stray rows or deleted keys and the table. The lock must be held, so the table does not change.

    `dropped` are the ids of file groups that only a repair took out of use: readers saw their rows, and no writer of
    the bucket index could delete them, so a key that the table lacks is new.
    `is_visible`: the stray rows are in the table, in wrong buckets, so a row with the same file is the stray row
    itself.
    """
    with translated("comparing stray rows with the table"):
        now = _current_rows(table, strays, commits, is_visible=is_visible)
        wins, was_there = _wins(table, strays, now, commits, is_visible=is_visible, dropped=dropped)
        columns = [name for name in strays.columns if name not in rows.META_COLUMNS]
        wins = wins.cache()
        written_by = _instants(wins.select(COMMIT_TIME))
        upserts = wins.select(*KEY, *columns).cache()
        upsert_count, stray_count = upserts.count(), strays.count()
        last = _last_of(deletes)
        gone = _deleted(table, last.values(), strays, now)
        delete_count = gone.count() if gone is not None else 0
        deleted_by = _instants(gone.select("deleted_at")) if gone is not None else ()
    superseded = max(stray_count - upsert_count + len(last) - delete_count, 0)
    was_there.unpersist()
    by_value = table.orders_by_field and table.is_merge_on_read
    records = {key: item.record for key, item in last.items() if by_value and item.ordering is not None and item.record}
    found = gone.drop("deleted_at") if gone is not None and delete_count else None
    return Decided(upserts, found, upsert_count, delete_count, superseded, written_by, deleted_by, records)


def misplaced(table: HudiTable, partitions: Sequence[str]) -> Misplaced:
    """Returns rows of these partitions that are not in the file of their bucket; each key once.

    The current number of buckets decides.
    """
    index, rules = table.declared.index, table.bucket_rules()
    if index is None or rules is None:
        frame = rows.current(table)
        return Misplaced(frame.limit(0), frame.limit(0).select(*KEY, file_id()), frozenset(), frozenset())
    hash_fields = index.hash_fields

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            paths, keys, files, _ = batch.columns
            wrong = pa.array(row_counts.misplaced(keys, paths, files, rules, hash_fields))
            yield batch.filter(wrong)

    with translated("finding rows in wrong buckets"):
        frame = rows.current(table).where(F.col(PARTITION_PATH).isin(list(partitions)))
        names = [*KEY, FILE_NAME, COMMIT_TIME]
        wrong = frame.select(*names).mapInArrow(judge, ", ".join(f"`{name}` string" for name in names)).cache()
        written = wrong.select(PARTITION_PATH, FILE_NAME, COMMIT_TIME).distinct().collect()
        files = {(row[0], row[1]) for row in written}
        strays = frame.join(wrong, names, "left_semi").select(*frame.columns)
        last = Window.partitionBy(*KEY).orderBy(F.col(COMMIT_TIME).desc())
        once = strays.withColumn("_rank", F.row_number().over(last)).where("_rank = 1").drop("_rank").cache()
    slices = {item.key for item in table.file_slices()}
    return Misplaced(
        once,
        wrong.select(*KEY, file_id()),
        frozenset(key for key in slices if any(_is_of(key, found) for found in files)),
        frozenset(row[2] for row in written),
    )


def without_deleted(table: HudiTable, strays: DataFrame, deletes: Sequence[DeletedKey]) -> DataFrame:
    """Returns the rows without those that these deletes, made elsewhere since, would have removed."""
    if not deletes:
        return strays
    own = [F.col(name).alias(f"now_{name}") for name in table.ordering_fields]
    keys = strays.select(*KEY, FILE_NAME, F.col(COMMIT_TIME).alias("now_at"), *own)
    gone = _last_deletes(strays, _last_of(deletes).values()).join(keys, KEY)
    return strays.join(gone.where(_is_older(table, gone)), [*KEY, FILE_NAME], "left_anti").cache()


def file_id() -> Column:
    """Returns the file id of a row's file; in a log `_hoodie_file_name` is the file id already."""
    return F.regexp_extract(FILE_NAME, "^[^_]+", 0).alias(FILE_ID)


def _is_of(group: Group, found: tuple[str, str]) -> bool:
    """Returns whether a row's `_hoodie_file_name` (in a log: its file id) belongs to this file group."""
    return group[0] == found[0] and found[1].startswith(group[1])


def _current_rows(table: HudiTable, strays: DataFrame, commits: Sequence[Commit], *, is_visible: bool) -> DataFrame:
    """Returns the rows of the table: key, commit time, ordering values. The time of a row that a repair wrote is that
    of the write which it repaired."""
    frame = rows.current(table)
    if is_visible:
        frame = frame.join(strays.select(*KEY, FILE_NAME, COMMIT_TIME), [*KEY, FILE_NAME, COMMIT_TIME], "left_anti")
    since = F.col(COMMIT_TIME)
    repairs = {each.write.instant: dated(each.write.instant, each.extra) for each in commits if not each.write.replaced}
    if others := [F.lit(part) for pair in repairs.items() if pair[0] != pair[1] for part in pair]:
        since = F.coalesce(F.create_map(*others)[since], since)
    return frame.select(*KEY, since.alias("now_at"), *_ordering(table, "now")).cache()


def _wins(
    table: HudiTable,
    strays: DataFrame,
    now: DataFrame,
    commits: Sequence[Commit],
    *,
    is_visible: bool,
    dropped: Collection[str],
) -> tuple[DataFrame, DataFrame]:
    joined = strays.join(now, KEY, "left")
    is_newer = F.col(COMMIT_TIME) > F.col("now_at")
    names = table.ordering_fields if table.orders_by_field else ()
    if names:
        mine = F.struct(*[F.col(name).alias(f"_{number}") for number, name in enumerate(names)])
        theirs = F.struct(*[F.col(f"now_{name}").alias(f"_{number}") for number, name in enumerate(names)])
        is_newer = (mine > theirs) | ((mine == theirs) & is_newer)
    # A struct of nulls is not null, but less than any other struct.
    is_newer = F.col("now_at").isNotNull() & is_newer
    is_dropped = F.substring_index(FILE_NAME, "_", 1).isin(sorted(dropped))
    was_there = now if is_visible else _keys_at(table, strays.where(~is_dropped), now, commits)
    if is_visible:
        return joined.where(F.col("now_at").isNull() | is_newer), was_there
    with_past = joined.join(was_there, [*KEY, COMMIT_TIME], "left")
    of_found = [each.write.instant for each in commits if each.write.operation in _OF_FOUND_ROWS]
    is_new = is_dropped | (F.col("was_there").isNull() & ~F.col(COMMIT_TIME).isin(of_found))
    return with_past.where((F.col("now_at").isNull() & is_new) | is_newer), was_there


def _keys_at(table: HudiTable, strays: DataFrame, now: DataFrame, commits: Sequence[Commit]) -> DataFrame:
    """Returns keys of stray rows that the table lacks now but had when the row's instant was committed, so that they
    were deleted since. A delete that a repair has made since is not a later one if it repaired an earlier write."""
    absent = strays.join(now, KEY, "left_anti").select(*KEY, COMMIT_TIME, *_ordering(table, "now")).cache()
    found: list[DataFrame] = []
    instants = _instants(absent.select(COMMIT_TIME))
    for instant in instants:
        at = next((each.completed or each.write.instant for each in commits if each.write.instant == instant), instant)
        # The stray rows themselves may have been visible then, in file groups that are out of use now.
        past = rows.current(table, as_of=at).where(F.col(COMMIT_TIME) != instant).select(*KEY)
        found.append(absent.where(F.col(COMMIT_TIME) == instant).join(past, KEY, "left_semi"))
    past_keys = reduce(lambda one, other: one.union(other), found) if found else absent.limit(0)
    last = max(instants, default="")
    repairs = [each for each in commits if dated(each.write.instant, each.extra) < min(each.write.instant, last)]
    if repaired := _last_of([key for each in repairs for key in deleted_keys(table, each)]):
        deletes = _last_deletes(strays, repaired.values())
        deleted = deletes.join(past_keys.withColumn("now_at", F.col(COMMIT_TIME)), KEY)
        past_keys = past_keys.join(deleted.where(~_is_older(table, deleted)), [*KEY, COMMIT_TIME], "left_anti")
    return past_keys.select(*KEY, COMMIT_TIME).withColumn("was_there", F.lit("yes"))


def _deleted(table: HudiTable, deletes: Collection[DeletedKey], strays: DataFrame, now: DataFrame) -> DataFrame | None:
    """Returns the rows to delete: rows older than the delete, unless a later stray row wrote their keys again.
    `deleted_at` is the instant of the delete."""
    if not deletes:
        return None
    keys = _last_deletes(strays, deletes).join(now, KEY).join(strays.select(*KEY), KEY, "left_anti")
    whole = rows.current(table).join(keys.where(_is_older(table, keys)).select(*KEY, "deleted_at").distinct(), KEY)
    columns = [name for name in strays.columns if name not in rows.META_COLUMNS]
    return whole.select(*KEY, *columns, "deleted_at").cache()


def _last_of(deletes: Sequence[DeletedKey]) -> dict[tuple[str, str], DeletedKey]:
    """Returns the last delete of each key, by partition path and key."""
    return {(item.partition, item.key): item for item in sorted(deletes, key=lambda each: each.instant)}


def _instants(frame: DataFrame) -> tuple[str, ...]:
    return tuple(sorted(str(row[0]) for row in frame.distinct().collect()))


def _last_deletes(strays: DataFrame, deletes: Iterable[DeletedKey]) -> DataFrame:
    """Returns deletes as rows; each key once."""
    found = [(item.partition, item.key, item.instant, item.ordering) for item in deletes]
    return strays.sparkSession.createDataFrame(
        found, f"`{PARTITION_PATH}` string, `{RECORD_KEY}` string, deleted_at string, deleted_by string"
    )


def _is_older(table: HudiTable, deleted: DataFrame) -> Column:
    """Returns whether a row (`now_at`, `now_` with the ordering field) is older than the delete of its key."""
    is_older = F.col("now_at") <= F.col("deleted_at")
    names = table.ordering_fields if table.orders_by_field else ()
    if len(names) != 1:
        return is_older
    theirs = F.col(f"now_{names[0]}")
    mine = F.col("deleted_by").cast(dict(deleted.dtypes)[f"now_{names[0]}"])
    by_value = (mine > theirs) | ((mine == theirs) & is_older)
    return F.when(F.col("deleted_by").isNull(), is_older).otherwise(by_value)


def _ordering(table: HudiTable, prefix: str) -> list[Column]:
    return [F.col(name).alias(f"{prefix}_{name}") for name in table.ordering_fields]
