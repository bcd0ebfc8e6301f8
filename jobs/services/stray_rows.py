"""Compares stray rows with the current table, and decides which of them would be in it if they had been written
correctly. A stray row loses against rows that were written after it, and replaces rows that were written before it. If
the table orders by a field, the ordering value decides first, as in Hudi's merge (`EventTimeBasedMerger`). A key that
existed when the stray row was committed, but does not exist now, was deleted since then and stays deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import refuse
from jobs.format.meta_columns import COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.format.stale_writes import Group, dated
from jobs.hudi import rows
from jobs.hudi.jvm import translated
from jobs.hudi.records import Commit
from jobs.hudi.stale_slices import DeletedKey, deleted_keys
from jobs.hudi.table import HudiTable
from jobs.services import keys_elsewhere
from jobs.services.checks import bucket_number, row_counts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


KEY = [PARTITION_PATH, RECORD_KEY]
# Columns that only a repair has. No table has a column with this prefix.
_OURS = "_groundskeeper_"
FILE_ID = f"{_OURS}file_id"
INSTANT = f"{_OURS}instant"
# Before the name of an ordering field, which may have dots: its value in the table.
_NOW = f"{_OURS}now_"
NOW_AT = f"{_OURS}now_at"
_WAS_THERE = f"{_OURS}was_there"
_DELETED_BY = f"{_OURS}deleted_by"
_RANK = f"{_OURS}rank"
# Operations of statements that change only existing rows.
_OF_FOUND_ROWS = ("UPSERT_PREPPED", "DELETE_PREPPED")


@dataclass(frozen=True)
class Decided:
    """The rows to write. `upserts` and `deletes` have the table's columns, and in `INSTANT` the instant from which the
    row or the delete comes; counted data frames are cached.

    `deletes` is None if there are none. `superseded` counts stray rows and deletes that newer ones have overtaken.
    `written_by` and `deleted_by` are all these instants, and `delete_records` are Hudi's `DeleteRecord`s of the deletes
    with ordering values, by partition path and key.
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
    """Rows in files of wrong buckets, their `count`, and the file groups (partition path, file id) that hold them. The
    `places` are the key and the file id of each such row, and `instants` wrote these rows. Such a group may be the
    right one for other rows."""

    rows: DataFrame
    count: int
    places: DataFrame
    groups: frozenset[Group]
    instants: frozenset[str]


def written_by(table: HudiTable, merged: DataFrame, instants: Sequence[str]) -> DataFrame:
    """Returns the rows of stale slices that these instants wrote. Several file groups may have rows with one key."""
    written = merged.where(F.col(COMMIT_TIME).isin(list(instants)))
    columns = rows.current(table).columns
    # A column that was added later is null in older rows.
    aligned = [F.col(name) if name in written.columns else F.lit(None).alias(name) for name in columns]
    return written.select(*aligned).cache()


def decide(
    table: HudiTable,
    strays: DataFrame,
    deletes: Sequence[DeletedKey],
    commits: Sequence[Commit],
    *,
    apart: DataFrame | None = None,
    dropped: Collection[str] = (),
) -> Decided:
    """Decides between stray rows or deleted keys and the table. The lock must be held, so the table does not change.
    If several stray rows have one key, the one that Hudi would keep is written.

    `dropped` are the ids of file groups that only a repair took out of use. Readers saw their rows, and no writer with
    the bucket index could delete them. So if the table lacks the key of such a row, nobody has deleted the key. `apart`
    are the places of the stray rows if these are in the table (`Misplaced`); rows at these places are not compared with
    the stray rows.
    """
    with translated("comparing stray rows with the table"):
        now = current_rows(table, commits, apart)
        wins, was_there = _wins(table, strays, now, commits, is_visible=apart is not None, dropped=dropped)
        standing = _standing(deletes)
        gone = _deleted(table, standing, strays, now)
        kept = now if gone is None else now.join(gone.select(*KEY), KEY, "left_anti")
        wins = keys_elsewhere.without_overtaken(table, wins, kept, _is_newer(table))
        columns = [name for name in strays.columns if name not in rows.META_COLUMNS]
        by_value = [F.col(name).desc_nulls_last() for name in _order(table)]
        wins = _first(wins, *by_value, F.col(COMMIT_TIME).desc())
        upserts = wins.select(*KEY, *columns, F.col(COMMIT_TIME).alias(INSTANT)).cache()
        written_by, upsert_count = _instants(upserts)
        stray_count = strays.select(*KEY).distinct().count()
        deleted_by, delete_count = _instants(gone) if gone is not None else ((), 0)
        records = _records(table, standing, gone) if gone is not None else {}
    deleted_keys_count = len({(item.partition, item.key) for item in standing})
    superseded = max(stray_count - upsert_count + deleted_keys_count - delete_count, 0)
    was_there.unpersist()
    found = gone.drop(_DELETED_BY) if gone is not None and delete_count else None
    return Decided(upserts, found, upsert_count, delete_count, superseded, written_by, deleted_by, records)


def misplaced(table: HudiTable, partitions: Sequence[str]) -> Misplaced:
    """Returns rows of these partitions that are not in the file of their bucket, by the current number of buckets.
    Raises RefusedError if the whole table has another number."""
    index, rules = table.declared.index, table.bucket_rules()
    if index is None or rules is None:
        frame = rows.current(table)
        return Misplaced(frame.limit(0), 0, frame.limit(0).select(*KEY, file_id()), frozenset(), frozenset())
    hash_fields = index.hash_fields

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            paths, keys, files, _ = batch.columns
            wrong = pa.array(row_counts.misplaced(keys, paths, files, rules, hash_fields))
            yield batch.filter(wrong)

    with translated("finding rows in wrong buckets"):
        frame = rows.of_partitions(table, partitions)
        names = [*KEY, FILE_NAME, COMMIT_TIME]
        wrong = frame.select(*names).mapInArrow(judge, ", ".join(f"`{name}` string" for name in names)).cache()
        written = wrong.groupBy(PARTITION_PATH, FILE_NAME, COMMIT_TIME).count().collect()
        files = {(row[0], row[1]) for row in written}
        strays = frame.join(wrong, names, "left_semi").select(*frame.columns).cache()
    slices = {item.key for item in table.file_slices()}
    count = sum(row[3] for row in written)
    refuse(bucket_number.refusals(table, count))
    return Misplaced(
        strays,
        count,
        wrong.select(*KEY, file_id()),
        frozenset(key for key in slices if any(_is_of(key, found) for found in files)),
        frozenset(row[2] for row in written),
    )


def without_deleted(table: HudiTable, strays: DataFrame, deletes: Sequence[DeletedKey]) -> DataFrame:
    """Returns the rows that these deletes, which were made in other places since, would not have removed."""
    if not deletes:
        return strays
    keys = strays.select(*KEY, FILE_NAME, F.col(COMMIT_TIME).alias(NOW_AT), *_ordering(table))
    gone = _frame_of(strays, _standing(deletes)).join(keys, KEY)
    return strays.join(gone.where(_is_older(table, gone)), [*KEY, FILE_NAME], "left_anti").cache()


def fewer_keys(strays: DataFrame, alive: DataFrame) -> int:
    """Returns how many keys of stray rows `without_deleted` has removed."""
    return 0 if alive is strays else strays.select(*KEY).subtract(alive.select(*KEY)).count()


def file_id() -> Column:
    """Returns the file id of a row's file; in a log `_hoodie_file_name` is the file id already."""
    return F.regexp_extract(FILE_NAME, "^[^_]+", 0).alias(FILE_ID)


def _is_of(group: Group, found: tuple[str, str]) -> bool:
    """Returns whether a row's `_hoodie_file_name` (in a log: its file id) belongs to this file group."""
    return group[0] == found[0] and found[1].startswith(group[1])


def without(frame: DataFrame, places: DataFrame | None) -> DataFrame:
    """Returns the rows of the table without those at these places (`Misplaced`), if any."""
    if places is None:
        return frame
    return frame.withColumn(FILE_ID, file_id()).join(places, [*KEY, FILE_ID], "left_anti")


def current_rows(table: HudiTable, commits: Sequence[Commit], apart: DataFrame | None) -> DataFrame:
    """Returns the rows of the table: key, commit time, ordering values. The time of a row that a repair wrote is the
    time of the repaired write."""
    frame = without(rows.current(table), apart)
    since = F.col(COMMIT_TIME)
    repairs = {each.write.instant: dated(each.write.instant, each.extra) for each in commits if not each.write.replaced}
    if others := [F.lit(part) for pair in repairs.items() if pair[0] != pair[1] for part in pair]:
        since = F.coalesce(F.create_map(*others)[since], since)
    return frame.select(*KEY, since.alias(NOW_AT), *_ordering(table)).cache()


def _wins(
    table: HudiTable,
    strays: DataFrame,
    now: DataFrame,
    commits: Sequence[Commit],
    *,
    is_visible: bool,
    dropped: Collection[str],
) -> tuple[DataFrame, DataFrame]:
    joined, is_newer = strays.join(now, KEY, "left"), _is_newer(table)
    is_dropped = F.substring_index(FILE_NAME, "_", 1).isin(sorted(dropped))
    was_there = now if is_visible else _keys_at(table, strays.where(~is_dropped), now, commits, is_dropped)
    if is_visible:
        return joined.where(F.col(NOW_AT).isNull() | is_newer), was_there
    with_past = joined.join(was_there, [*KEY, COMMIT_TIME], "left")
    of_found = [each.write.instant for each in commits if each.write.operation in _OF_FOUND_ROWS]
    is_new = is_dropped | (F.col(_WAS_THERE).isNull() & ~F.col(COMMIT_TIME).isin(of_found))
    return with_past.where((F.col(NOW_AT).isNull() & is_new) | is_newer), was_there


def _is_newer(table: HudiTable) -> Column:
    """Returns whether a stray row is newer than the row of the table that is joined to it, if there is one."""
    is_newer = F.col(COMMIT_TIME) > F.col(NOW_AT)
    if names := _order(table):
        of_stray = F.struct(*[F.col(name).alias(f"_{number}") for number, name in enumerate(names)])
        of_table = F.struct(*[F.col(f"`{_NOW}{name}`").alias(f"_{number}") for number, name in enumerate(names)])
        is_newer = (of_stray > of_table) | ((of_stray == of_table) & is_newer)
    # A struct of nulls is not null, but less than any other struct.
    return F.col(NOW_AT).isNotNull() & is_newer


def _keys_at(
    table: HudiTable, strays: DataFrame, now: DataFrame, commits: Sequence[Commit], is_dropped: Column
) -> DataFrame:
    """Returns keys of stray rows that were deleted since: the table lacks them now, but had them when the row's instant
    was committed. Keys of rows that `is_dropped` finds were not deleted, because only a repair took the rows out of
    use. A delete by a repair has the time of the repaired write, so it may be earlier than the row."""
    absent = strays.join(now, KEY, "left_anti").select(*KEY, COMMIT_TIME, *_ordering(table)).cache()
    found: list[DataFrame] = []
    instants, _ = _instants(absent, COMMIT_TIME)
    for instant in instants:
        at = next((each.completed or each.write.instant for each in commits if each.write.instant == instant), instant)
        if not rows.is_kept(table, at):
            continue  # If the files that name later deletes are gone as well, the repair is refused (`unread_deletes`).
        # The stray rows themselves may have been visible then, in file groups that are out of use now.
        past = rows.current(table, as_of=at).where((F.col(COMMIT_TIME) != instant) & ~is_dropped).select(*KEY)
        found.append(absent.where(F.col(COMMIT_TIME) == instant).join(past, KEY, "left_semi"))
    past_keys = reduce(lambda one, other: one.union(other), found) if found else absent.limit(0)
    last = max(instants, default="")
    repairs = [each for each in commits if dated(each.write.instant, each.extra) < min(each.write.instant, last)]
    if repaired := _standing([key for each in repairs for key in deleted_keys(table, each)]):
        deleted = _frame_of(strays, repaired).join(past_keys.withColumn(NOW_AT, F.col(COMMIT_TIME)), KEY)
        judged = deleted.groupBy(*KEY, COMMIT_TIME).agg(F.max(_is_older(table, deleted)).alias(_WAS_THERE))
        past_keys = past_keys.join(judged.where(~F.col(_WAS_THERE)), [*KEY, COMMIT_TIME], "left_anti")
    return past_keys.select(*KEY, COMMIT_TIME).withColumn(_WAS_THERE, F.lit("yes"))


def _deleted(table: HudiTable, deletes: Collection[DeletedKey], strays: DataFrame, now: DataFrame) -> DataFrame | None:
    """Returns the rows to delete, each with the delete that counts: rows older than the delete, unless a later stray
    row wrote their keys again."""
    if not deletes:
        return None
    keys = _frame_of(strays, deletes).join(now, KEY).join(strays.select(*KEY), KEY, "left_anti")
    older = keys.where(_is_older(table, keys))
    names = _order(table)
    value = [_value(keys, names[0]).desc_nulls_last()] if len(names) == 1 else []
    once = _first(older, *value, F.col(INSTANT).desc()).select(*KEY, INSTANT, _DELETED_BY)
    columns = [name for name in strays.columns if name not in rows.META_COLUMNS]
    return rows.current(table).join(once, KEY).select(*KEY, *columns, INSTANT, _DELETED_BY).cache()


def _records(table: HudiTable, deletes: Sequence[DeletedKey], gone: DataFrame) -> dict[tuple[str, str], Any]:
    """Returns Hudi's records of those deletes in `gone` that have ordering values, by partition path and key."""
    if not (table.orders_by_field and table.is_merge_on_read):
        return {}
    counting = {tuple(row) for row in gone.select(*KEY, INSTANT, _DELETED_BY).collect()}
    return {
        (item.partition, item.key): item.record
        for item in deletes
        if item.record
        and item.ordering is not None
        and (item.partition, item.key, item.instant, item.ordering) in counting
    }


def _standing(deletes: Sequence[DeletedKey]) -> list[DeletedKey]:
    """Returns the deletes with which rows have to be compared. A delete is left out if a later one of its key applies
    to every row, or has the same ordering value. A later delete of a lesser value does not take back one of a greater
    value (`EventTimeRecordMerger`, Hudi 1.2.0)."""
    last = {(item.partition, item.key, item.ordering): item for item in sorted(deletes, key=lambda each: each.instant)}
    since = {(path, key): item.instant for (path, key, ordering), item in last.items() if ordering is None}
    return [item for item in last.values() if item.instant >= since.get((item.partition, item.key), "")]


def _first(frame: DataFrame, *order: Column) -> DataFrame:
    """Returns the first row of each key in this order."""
    ranked = frame.withColumn(_RANK, F.row_number().over(Window.partitionBy(*KEY).orderBy(*order)))
    return ranked.where(F.col(_RANK) == 1).drop(_RANK)


def _instants(frame: DataFrame, column: str = INSTANT) -> tuple[tuple[str, ...], int]:
    """Returns the instants in this column, and the number of rows: one query for both."""
    counts = {str(row[0]): int(row[1]) for row in frame.groupBy(column).count().collect()}
    return tuple(sorted(counts)), sum(counts.values())


def _frame_of(strays: DataFrame, deletes: Iterable[DeletedKey]) -> DataFrame:
    """Returns deletes as rows, with their instants and their ordering values as text."""
    found = [(item.partition, item.key, item.instant, item.ordering) for item in deletes]
    names = (PARTITION_PATH, RECORD_KEY, INSTANT, _DELETED_BY)
    return strays.sparkSession.createDataFrame(found, ", ".join(f"`{name}` string" for name in names))


def _is_older(table: HudiTable, deleted: DataFrame) -> Column:
    """Returns whether a row (`NOW_AT`, `_NOW` with the ordering field) is older than the delete of its key."""
    is_older = F.col(NOW_AT) <= F.col(INSTANT)
    names = _order(table)
    if len(names) != 1:
        return is_older
    of_row, of_delete = F.col(f"`{_NOW}{names[0]}`"), _value(deleted, names[0])
    by_value = (of_delete > of_row) | ((of_delete == of_row) & is_older)
    return F.when(F.col(_DELETED_BY).isNull(), is_older).otherwise(by_value)


def _value(deleted: DataFrame, name: str) -> Column:
    """Returns the ordering value of a delete, in the type of the field."""
    return F.col(_DELETED_BY).cast(dict(deleted.dtypes)[f"{_NOW}{name}"])


def _order(table: HudiTable) -> Sequence[str]:
    """Returns the fields by which Hudi chooses between two rows with one key, before the time of their commits."""
    return table.ordering_fields if table.orders_by_field else ()


def _ordering(table: HudiTable) -> list[Column]:
    return [F.col(name).alias(f"{_NOW}{name}") for name in table.ordering_fields]
