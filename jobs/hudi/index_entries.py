"""Compares the entries of record and secondary indexes with the rows that a scan finds (Hudi 1.2.0). Writers find the
file group of a key by the record index, so a wrong entry makes their rows invisible or duplicate. Queries find rows by
a secondary index, so a missing entry hides rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import StringType, StructField, StructType

from jobs.format.index_definitions import RECORDS, SECONDARY, IndexDefinition
from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.hudi import indexes
from jobs.hudi.jvm import translated
from jobs.hudi.metadata_table import FOLDER
from jobs.hudi.records import FileSlice
from jobs.hudi.rows import META_COLUMNS, current
from jobs.hudi.table import HudiTable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_MOST_BYTES = 4 << 30
MOST_NAMED = 100
# `SecondaryIndexKeyUtils`: the escaped value, a dollar sign, and the escaped record key.
_SPECIAL, _OF_RECORD_KEY = r"([\\$\x00])", r"\$((?:[^\\$]|\\.)*)$"
# Types whose values have the same text in the index as in Spark.
SAME_TEXT = frozenset({"string", "tinyint", "smallint", "int", "bigint"})
_META_FIELDS = META_COLUMNS[:5]  # `HoodieRecord.HOODIE_META_COLUMNS`
_PARTS_OF_UUID = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


@dataclass(frozen=True)
class Differences:
    """The differences between one index and the rows, at most `MOST_NAMED` of each kind, as texts for users. `missing`
    are rows without a correct entry, `beyond` are entries without such a row."""

    index: str
    missing: tuple[str, ...]
    beyond: tuple[str, ...]


def compare(table: HudiTable, slices: Sequence[FileSlice], names: Collection[str] | None = None) -> list[Differences]:
    """Returns the indexes that differ from the rows. Without `names` all indexes are compared. Reads the keys of all
    rows and all entries; in a table larger than `_MOST_BYTES` only every n-th key, so that about that amount is
    compared."""
    defined = indexes.definitions(table)
    every = -(-sum(item.bytes for item in slices) // _MOST_BYTES) or 1
    found = []
    for name in sorted(table.metadata_partitions.intersection(names) if names else table.metadata_partitions):
        if name == RECORDS:
            compared = _of_records(table, every)
        elif name.startswith(SECONDARY) and name in defined:
            compared = _of_values(table, defined[name], every)
        else:
            continue
        if compared.missing or compared.beyond:
            found.append(compared)
    return found


def partitions_of_keys(table: HudiTable, keys: DataFrame) -> DataFrame:
    """Returns these rows, which have record keys, with the partition path that the global record index has for the key
    in the column `there`. Keys without an entry are left out."""
    entries = _entries_of(table, RECORDS).select(
        F.col("key").alias(RECORD_KEY), F.col("recordIndexMetadata.partitionName").alias("there")
    )
    return keys.join(entries, RECORD_KEY)


def has_right_records(table: HudiTable) -> bool:
    """Returns whether the record index agrees with all rows whose key occurs once. Reads the keys of all rows."""
    found = _of_records(table, 1, alone=True)
    return not (found.missing or found.beyond)


def _of_records(table: HudiTable, every: int, *, alone: bool = False) -> Differences:
    """Compares partition path, key and file group of each row with the record index. If `alone`, leaves out keys that
    have several rows."""
    with translated("comparing the record index with the rows"):
        group = F.substring_index(FILE_NAME, "_", 1)
        rows = current(table).select(F.col(PARTITION_PATH), F.col(RECORD_KEY), group)
        info = F.col("recordIndexMetadata")
        entries = _entries_of(table, RECORDS).select(info["partitionName"], F.col("key"), _file_id(info))
        names = ("partition", "key", "file")
        rows, entries = rows.toDF(*names), entries.toDF(*names)
        if alone:
            of_key = names[:2] if indexes.indexes_of(table).has_records_by_partition else names[1:2]
            twice = rows.groupBy(*of_key).count().where("count > 1")
            rows, entries = (each.join(twice, [*of_key], "left_anti").select(*names) for each in (rows, entries))
        return _differences(RECORDS, rows, entries, names, every)


def _of_values(table: HudiTable, defined: IndexDefinition, every: int) -> Differences:
    """Compares record keys and their values with a secondary index. Ignores the values if Hudi and Spark write their
    type as different texts."""
    with translated(f"comparing the index {defined.name} with the rows"):
        (column,) = defined.columns
        frame = current(table)
        key, value = _escaped(F.col(RECORD_KEY)), F.col(f"`{column}`")
        is_same = dict(frame.dtypes).get(column) in SAME_TEXT
        text = F.coalesce(_escaped(value.cast("string")), F.lit("\0")) if is_same else F.lit("")
        rows = frame.select(text, key)
        kept = _entries_of(table, defined.name).where(~F.col("SecondaryIndexMetadata.isDeleted"))
        record = F.regexp_extract("key", _OF_RECORD_KEY, 1)
        before = F.expr("substring(key, 1, length(key) - length(record) - 1)") if is_same else F.lit("")
        entries = kept.withColumn("record", record).select(before, F.col("record"))
        return _differences(defined.name, rows, entries, ("value", "key"), every)


def _differences(index: str, rows: DataFrame, entries: DataFrame, names: tuple[str, ...], every: int) -> Differences:
    sides = [side.toDF(*names).withColumn("is_row", F.lit(is_row)) for side, is_row in ((rows, 1), (entries, 0))]
    both = sides[0].unionAll(sides[1])
    if every > 1:
        both = both.where(F.pmod(F.crc32("key"), F.lit(every)) == 0)
    counted = both.groupBy(*names).agg(
        F.max("is_row").alias("row"), F.min("is_row").alias("entry"), F.sum("is_row").alias("rows")
    )
    is_wrong = F.col("row") == F.col("entry")
    if index == RECORDS:  # The one entry of a key serves one row.
        is_wrong |= F.col("rows") > 1
    differing = counted.where(is_wrong).orderBy("key", *names)
    found = differing.limit(MOST_NAMED).collect()
    missing, beyond = (
        # If there are no more than these, which is the usual case, no further query is needed.
        [row for row in found if row["row"] == is_row]
        if len(found) < MOST_NAMED
        else differing.where(F.col("row") == is_row).limit(MOST_NAMED).collect()
        for is_row in (1, 0)
    )
    return Differences(index, *(tuple(_text(row.asDict()) for row in rows) for rows in (missing, beyond)))


def _entries_of(table: HudiTable, partition: str) -> DataFrame:
    """Returns the records of an index in the metadata table, read as a Hudi table.

    Hudi 1.0 stores the schema of the metadata table without meta fields, with which a query of Hudi 1.2.0 cannot merge
    two records (`HoodieMetadataPayload.getInsertValue`), so the meta fields are given here.
    """
    path = f"{table.base_path}/{FOLDER}/{partition}"
    reader = table.jvm.spark.newSession().read.format("hudi").option("hoodie.metadata.enable", "false")
    found = reader.load(path)
    lacking = [StructField(name, StringType()) for name in _META_FIELDS if name not in found.columns]
    return reader.schema(StructType([*lacking, *found.schema])).load(path) if lacking else found


def _file_id(info: Column) -> Column:
    """Returns the file id of an entry (`HoodieTableMetadataUtil.getLocationFromRecordIndexInfo`)."""
    digits = [F.lpad(F.lower(F.hex(info[name])), 16, "0") for name in ("fileIdHighBits", "fileIdLowBits")]
    all_digits = F.concat(*digits)
    uuid = F.concat_ws("-", *(F.substring(all_digits, *part) for part in _PARTS_OF_UUID))
    number = F.when(info["fileIndex"] < 0, F.lit("")).otherwise(F.concat(F.lit("-"), info["fileIndex"].cast("string")))
    return F.when(info["fileIdEncoding"] == 0, F.concat(uuid, number)).otherwise(info["fileId"])


def _escaped(text: Column) -> Column:
    return F.regexp_replace(text, _SPECIAL, r"\\$1")


def _text(row: dict[str, Any]) -> str:
    second = "a second row of " if row["rows"] > 1 else ""
    where = f" in file group {row['file']} of partition '{row['partition']}'" if "file" in row else ""
    return f"{second}key '{row['key']}'{where}"
