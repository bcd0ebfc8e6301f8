"""Counts the rows of each partition, those in the wrong bucket, and keys that exist twice."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.dataplane import key_digest
from jobs.dataplane.key_digest import KeyDigest
from jobs.format import bucket_hash
from jobs.format.meta_columns import COMMIT_TIME, FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.hudi import base_files
from jobs.hudi.jvm import translated
from jobs.hudi.rows import current, in_folders, of_partitions
from jobs.protocol import log_formats
from jobs.services.checks import record_keys
from jobs.services.checks.places import Places

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from jobs.format.bucket_rules import BucketRules
    from jobs.hudi.records import FileSlice
    from jobs.hudi.table import HudiTable

_HALF = 1 << 32
# A table up to this size is read by one task, which also adds up the rows: the shuffle that two tasks need would take
# longer than the second task saves.
_BYTES_OF_TASK, _SLICES_OF_TASK = 8 * 1024 * 1024, 16
_PROBED_PARTITIONS = 200
_ARROW_TYPES = {"string": pa.string(), "long": pa.int64()}
_BUCKET_FILE_ID = re.compile(r"^\d{8}-")


@dataclass(frozen=True)
class PartitionRows:
    """Counts of the rows of one partition. `elsewhere` counts the rows in files of other partitions, and `forms` all
    rows by the form of their key, if that was requested."""

    path: str
    rows: int
    misplaced: int
    duplicates: int
    first_key: str
    last_key: str
    high_halves: int
    low_halves: int
    elsewhere: int = 0
    forms: Mapping[str, int] = field(default_factory=dict)

    @property
    def digest(self) -> KeyDigest:
        return KeyDigest() + KeyDigest(self.rows, self.high_halves * _HALF + self.low_halves)


def count_rows(
    table: HudiTable,
    rules: BucketRules | None,
    *,
    by_listing_of: Collection[str] | None = None,
    with_forms: bool = False,
    hash_fields: tuple[str, ...] | None = None,
) -> list[PartitionRows]:
    """Reads the key of every row, and counts those that are misplaced or duplicates.

    A row is misplaced when the bucket of its key, by the number of buckets valid for its partition, is not the bucket
    of its file. A row is elsewhere when its file group is in other partitions only. All rows are read, because a read
    that is narrowed to a partition may leave such rows out (`rows.of_partitions`). A duplicate is a row beyond the
    first with the same key in the same partition. `by_listing_of` restricts the count to these partition paths, which
    are then listed without the metadata table. In a table without meta fields, the values of the key and partition
    columns are used instead, and no row counts as misplaced, because a row does not name its file. `hash_fields` are by
    default those of the registered index. Raises KeyWithoutBucketError, and RefusedError if a log has parts of rows.
    """
    log_formats.require_whole_rows(table)
    index = table.declared.index
    hashed = hash_fields or (index.hash_fields if index else ())
    rules = rules if table.has_meta_fields else None

    def judged(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            partitions, keys, files, *forms = batch.columns
            wrong = [False] * batch.num_rows if rules is None else misplaced(keys, partitions, files, rules, hashed)
            away = places.elsewhere(partitions, files)
            # The digests are summed as two halves, so that the sums do not overflow.
            high, low = np.divmod(key_digest.numbers(keys), np.uint64(_HALF))
            halves = [pa.array(half.astype(np.int64)) for half in (high, low)]
            columns = [partitions, keys, pa.array(wrong, pa.bool_()), away, *halves, *forms]
            names = ["p", "k", "wrong", "away", "high", "low", "form"]
            yield pa.RecordBatch.from_arrays(columns, names=names[: len(columns)])

    with translated("counting the rows"):
        found, identity = current(table, by_listing=by_listing_of is not None, as_queries_do=True), _identity(table)
        if not found.columns:
            # A table without commits, such as after `TRUNCATE TABLE`, has no schema.
            return []
        if by_listing_of is not None:
            found = found.where(identity[0].isin(sorted(by_listing_of)))
        form = record_keys.form_of_key(table, found) if with_forms and table.has_meta_fields else None
        keys = found.select(*identity, *([] if form is None else [form]))
        slices = table.file_slices()
        places = Places.of((item.partition, item.file_id) for item in slices)
        forms = () if form is None else record_keys.FORMS
        if len(slices) <= _SLICES_OF_TASK and sum(item.bytes for item in slices) <= _BYTES_OF_TASK:
            types = ", ".join(f"{name} {kind}" for name, kind in _columns(forms).items())
            summed = keys.coalesce(1).mapInArrow(lambda batches: _summed(judged(batches), forms), types)
        else:
            types = "p string, k string, wrong boolean, away boolean, high long, low long"
            summed = _summed_by_spark(keys.mapInArrow(judged, types + (", form string" if forms else "")), forms)
        fixed = len(_columns(()))
        return [
            replace(
                PartitionRows(*row[:fixed]),
                forms={name: number for name, number in zip(forms, row[fixed:], strict=True) if number},
            )
            for row in sorted(summed.collect(), key=itemgetter(0))
        ]


def _summed_by_spark(judged: DataFrame, forms: Sequence[str]) -> DataFrame:
    wrong, away = (F.sum(F.col(name).cast("long")).alias(name[0]) for name in ("wrong", "away"))
    counted = [F.sum((F.col("form") == name).cast("long")).alias(name) for name in forms]
    halves = [F.sum(name).alias(name) for name in ("high", "low")]
    per_key = judged.groupBy("p", "k").agg(F.count("*").alias("n"), wrong, away, *halves, *counted)
    sums = (F.sum("n"), F.sum("w"), F.sum(F.col("n") - 1), F.min("k"), F.max("k"), *halves, F.sum("a"))
    return per_key.groupBy("p").agg(*sums, *(F.sum(name) for name in forms))


def _summed(judged: Iterable[pa.RecordBatch], forms: Sequence[str]) -> Iterable[pa.RecordBatch]:
    """Yields the same sums as `_summed_by_spark`, if `judged` has all rows of the table. Spark would compile code for
    the sums, shuffle the rows twice, and sort them because the first key is a text."""
    batches = list(judged)
    if not batches:
        return
    rows = pa.Table.from_batches(batches)
    for name in forms:
        rows = rows.append_column(name, pc.fill_null(pc.equal(rows["form"], name), False))
    added = ("wrong", "high", "low", "away", *forms)
    every = pc.CountOptions(mode="all")
    of_keys = [("k", "count", every), ("k", "count_distinct", every), ("k", "min"), ("k", "max")]
    found = rows.group_by("p", use_threads=False).aggregate([*of_keys, *((name, "sum") for name in added)])
    wrong, *rest = (found[f"{name}_sum"] for name in added)
    twice = pc.subtract(found["k_count"], found["k_count_distinct"])
    sums = [found["p"], found["k_count"], wrong, twice, found["k_min"], found["k_max"], *rest]
    schema = pa.schema([(name, _ARROW_TYPES[kind]) for name, kind in _columns(forms).items()])
    columns = [column.cast(kind) for column, kind in zip(sums, schema.types, strict=True)]
    yield from pa.Table.from_arrays(columns, schema=schema).to_batches()


def _columns(forms: Sequence[str]) -> dict[str, str]:
    """Returns the columns of the sums, in the order of `PartitionRows`, with Spark's names of their types."""
    texts = {"path": "string", "first_key": "string", "last_key": "string"}
    fixed = [each.name for each in fields(PartitionRows) if each.name != "forms"]
    return {name: texts.get(name, "long") for name in (*fixed, *forms)}


def in_logs_alone(table: HudiTable, slices: Sequence[FileSlice]) -> dict[str, int]:
    """Returns the number of rows of these slices whose keys are in none of their base files, by the instants that wrote
    the rows."""
    if not slices:
        return {}
    files = [f"{table.base_path}/{item.partition}/{item.base_name}" for item in slices if item.base_file]
    with translated("looking for rows that only logs have"):
        rows = in_folders(table, {item.partition for item in slices})
        rows = rows.where(F.col(FILE_NAME).isin([item.file_id for item in slices]))
        if files:
            bases = base_files.read(table, files).select(PARTITION_PATH, RECORD_KEY)
            rows = rows.join(bases, [PARTITION_PATH, RECORD_KEY], "left_anti")
        return {str(row[0]): int(row[1]) for row in rows.groupBy(COMMIT_TIME).count().collect()}


def writers_of_misplaced(table: HudiTable, rules: BucketRules, partitions: Collection[str]) -> list[str]:
    """Returns the instants that wrote the misplaced rows of these partitions."""
    index = table.declared.index
    hash_fields = index.hash_fields if index else ()

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            partitions, keys, files, instants = batch.columns
            wrong = pa.array(misplaced(keys, partitions, files, rules, hash_fields), pa.bool_())
            yield pa.RecordBatch.from_arrays([instants.filter(wrong).unique()], names=["i"])

    with translated("looking for the writers of misplaced rows"):
        found = of_partitions(table, partitions)
        written = found.select(PARTITION_PATH, RECORD_KEY, FILE_NAME, COMMIT_TIME).mapInArrow(judge, "i string")
        return sorted(str(row[0]) for row in written.distinct().collect())


def _identity(table: HudiTable) -> list[Column]:
    """Returns partition path, record key and file name of a row."""
    if table.has_meta_fields:
        return [F.col(PARTITION_PATH), F.col(RECORD_KEY), F.col(FILE_NAME)]
    fields = [F.coalesce(F.col(name).cast("string"), F.lit("null")) for name in table.partition_fields]
    return [F.concat_ws("/", *fields), F.to_json(F.struct(*table.record_key_fields)), F.lit("")]


def first_and_last_keys(found: Sequence[PartitionRows]) -> set[tuple[str, str]]:
    """Returns the first and the last key of some partitions, with the partition's path: wrong statistics hide these
    first."""
    probed = found[:: -(-len(found) // _PROBED_PARTITIONS) or 1]
    return {(each.path, key) for each in probed for key in (each.first_key, each.last_key)}


def misplaced(
    keys: pa.Array, partitions: pa.Array, files: pa.Array, rules: BucketRules, hash_fields: tuple[str, ...]
) -> list[bool]:
    """Returns for each row whether its file (`_hoodie_file_name`) does not belong to the bucket of its record key."""
    codes = (bucket_hash.hash_codes(keys, hash_fields) & 0x7FFFFFFF).tolist()
    number = {partition: rules.buckets_of(partition) for partition in set(partitions.to_pylist())}
    return [
        not _BUCKET_FILE_ID.match(name) or code % number[partition] != int(name[:8])
        for code, partition, name in zip(codes, partitions.to_pylist(), files.to_pylist(), strict=True)
    ]
