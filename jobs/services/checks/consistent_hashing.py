"""Checks the metadata, file groups and rows of tables with consistent hashing (`ConsistentBucketIdentifier`, 1.2.0)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import JobKind
from jobs.format.consistent_hashing import FOLDER, MASK, SUFFIX, DamagedMetadataError, HashingMetadata
from jobs.format.meta_columns import FILE_NAME, PARTITION_PATH, RECORD_KEY
from jobs.hudi import hash_ranges, hashing_metadata
from jobs.hudi.jvm import translated
from jobs.hudi.rows import current, of_partitions
from jobs.kinds.results import Cure
from jobs.services.checks.finding import Examined, Finding, named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from pyspark.sql import Column

    from jobs.format.stale_writes import Group
    from jobs.hudi.table import HudiTable


UNCOMMITTED = "hashing-metadata-uncommitted"
OUT_OF_USE = "hash-ranges-out-of-use"
# Wrong hash fields put the rows of two buckets with this many rows each into the right ranges by chance once in 2^60.
_CONFIRMING_ROWS = 30

_JUDGED = (pa.string(), pa.string(), pa.bool_())


def metadata(examined: Examined) -> Iterator[Finding]:
    """Finds partitions without readable metadata, metadata without a commit, and file groups without a bucket."""
    table = examined.table
    if not table.has_consistent_hashing():
        return
    missing: list[str] = []
    without_range: dict[Group, str] = {}
    unknown: dict[str, list[str]] = {}
    damaged: dict[str, str] = {}
    file_ids: dict[str, list[str]] = {}
    for item in examined.slices:
        file_ids.setdefault(item.partition, []).append(item.file_id)
    pending = {item.requested for item in examined.instants if item.state != "COMPLETED"}
    for partition, ids in file_ids.items():
        place = partition or "the table"
        versions = hashing_metadata.versions(table, partition)
        for each in set(versions.uncommitted) - pending:
            unknown.setdefault(each, []).append(f"{place}: {each}")
        if versions.in_force is None:
            missing.append(place)
            continue
        try:
            known = set(hashing_metadata.read(table, partition, versions.in_force).file_ids)
        except DamagedMetadataError as error:
            damaged[place] = f"{place}: {versions.in_force} ({error})"
            continue
        without_range |= {(partition, each): f"{partition}/{each}".lstrip("/") for each in ids if each not in known}
    followed = {each for each in unknown if hashing_metadata.is_followed(table, each)}
    uncommitted = [name for each, names in unknown.items() if each not in followed for name in names]
    if missing:
        yield Finding(
            "hashing-metadata-gone",
            "Partitions have rows but no hashing metadata",
            named(missing),
            "The next writer makes new metadata with its own number of buckets, and writes known keys a second time if"
            " a resize had changed them.",
            f"Stop the writers, and copy the partition's folder of `{FOLDER}` back from a backup.",
        )
    if damaged:
        yield Finding(
            "hashing-metadata-damaged",
            "Hashing metadata cannot be read",
            damaged,
            "Every write to such a partition fails, or goes to wrong file groups.",
            f"Stop the writers, and copy the partition's folder of `{FOLDER}` back from a backup.",
        )
    if uncommitted:
        yield Finding(
            UNCOMMITTED,
            "Hashing metadata have no completed commit",
            named(uncommitted),
            "The clustering of this instant was rolled back, but the metadata stayed. Hudi takes them for committed"
            " when one of their file groups has a base file: then updates go to other file groups, and readers see rows"
            " twice.",
            f"Stop the writers, and remove the `{SUFFIX}` files of these instants before the next write.",
        )
    if followed:
        yield Finding(
            "hashing-metadata-in-doubt",
            "Hashing metadata of an unknown instant may be in force",
            named([name for each in sorted(followed) for name in unknown[each]]),
            "The timeline does not know the clustering of this instant, but one of its new file groups is visible, or"
            " Hudi has confirmed the metadata in another partition. The cause is a copy without history, or a"
            " write that followed a rollback.",
            "Do not remove them. Stop the writers, and copy the table's history back from its original, or write the"
            " rows to a new table.",
        )
    if without_range:
        writes = [each.write for each in examined.commits if each.write.brings_rows]
        makers = sorted(each.instant for each in writes if each.written & without_range.keys())
        yield Finding(
            "file-groups-without-hash-range",
            "File groups belong to no bucket of the hashing metadata",
            named(without_range.values()),
            "Writers do not look for keys in them, so updates add a second row.",
            "An overwrite (`insert_overwrite`) or a write with another index made them. A `repair` that names these"
            " commits moves their rows to the buckets, and keeps the newest row of each key.",
            Cure(kind=JobKind.REPAIR, params={"instants": makers}) if makers and not unknown else None,
        )


def out_of_use(examined: Examined) -> Iterator[Finding]:
    """Finds buckets whose file groups were replaced, although the hashing metadata still name them. Hudi never changes
    the metadata when it deletes or overwrites partitions, and the file ids follow from the ranges."""
    found = hash_ranges.out_of_use(examined.table, examined.commits)
    if found:
        yield Finding(
            OUT_OF_USE,
            "Buckets of the hashing metadata have file groups that were replaced",
            {
                partition: f"{len(gone)} in {repr(partition) if partition else 'the table'}, by {max(gone.values())}"
                for partition, gone in found.items()
            },
            "No reader sees the rows that writers write to these buckets.",
            "A `repair` gives these buckets new file groups. Name in `instants` the commits whose rows it shall bring"
            " back: stale writes since then, and an overwrite whose rows are in file groups without a hash range.",
            Cure(kind=JobKind.REPAIR),
        )


def rows(examined: Examined) -> Iterator[Finding]:
    """Finds rows whose key hashes into another bucket than the bucket of their file. Reads the key of every row."""
    table = examined.table
    if not (table.has_consistent_hashing() and table.has_meta_fields):
        return
    placed = rows_in_ranges(table, {item.partition for item in examined.slices}, every=True)
    if found := misplaced(placed):
        yield Finding(
            "rows-in-wrong-hash-range",
            "Rows are not in the bucket of their key",
            {partition: f"{number} in '{partition}'" for partition, number in found.items()},
            "The next write of such a key adds a second row.",
            "A writer had another engine, other hash fields or hashing metadata that were rolled back. Stop it, delete "
            "these rows in a Spark SQL session without options of the index, and have a correct writer write them.",
        )


@dataclass(frozen=True)
class Placed:
    """The rows of a file group, and how many of them are not in the bucket of their key."""

    rows: int
    misplaced: int


def misplaced(placed: Mapping[Group, Placed]) -> dict[str, int]:
    """Returns the number of misplaced rows of each partition that has any."""
    found: Counter[str] = Counter()
    for (partition, _), each in placed.items():
        found[partition] += each.misplaced
    return {partition: number for partition, number in sorted(found.items()) if number}


def confirms_fields(placed: Mapping[Group, Placed]) -> bool:
    """Returns whether rows in their right buckets prove the hash fields. A single bucket with rows proves nothing: if
    it is the only one, its range holds every hash."""
    rows: dict[str, list[int]] = {}
    for (partition, _), each in placed.items():
        rows.setdefault(partition, []).append(each.rows)
    return not misplaced(placed) and any(sum(each) - max(each) >= _CONFIRMING_ROWS for each in rows.values())


def rows_in_ranges(table: HudiTable, partitions: Collection[str], *, every: bool = False) -> dict[Group, Placed]:
    """Counts the rows of these partitions' file groups, with logs merged. Reads the key of every row.

    Hudi hashes the values of the hash fields without a separator (`HashID.getXXHash32`, called in the JVM). Partitions
    whose metadata cannot be read are left out, because `metadata` names them. `every`: `partitions` has them all.
    """
    known: dict[str, HashingMetadata] = {}
    for partition in sorted(partitions):
        try:
            if instant := hashing_metadata.versions(table, partition).in_force:
                known[partition] = hashing_metadata.read(table, partition, instant)
        except DamagedMetadataError:
            continue

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            # Rows of logs name the file id only.
            judged = [
                (partition, file_id := name.partition("_")[0], file_id != _file_id(found, code))
                for partition, name, code in zip(*(each.to_pylist() for each in batch.columns), strict=True)
                if (found := known.get(partition))
            ]
            columns = [pa.array([each[place] for each in judged], kind) for place, kind in enumerate(_JUDGED)]
            yield pa.RecordBatch.from_arrays(columns, names=["p", "f", "wrong"])

    with translated("hashing the record keys"):
        code = F.reflect(
            F.lit("org.apache.hudi.common.util.hash.HashID"), F.lit("getXXHash32"), _hashed(table), F.lit(0)
        )
        # Without an alias, the name of the column would be its expression, and Spark cannot resolve the dots in this
        # name.
        masked = code.cast("int").bitwiseAND(F.lit(MASK)).alias("code")
        wanted = current(table) if every else of_partitions(table, known)
        keys = wanted.select(PARTITION_PATH, FILE_NAME, masked)
        wrong = F.sum(F.col("wrong").cast("long")).alias("wrong")
        judged = keys.mapInArrow(judge, "p string, f string, wrong boolean").groupBy("p", "f")
        found = judged.agg(F.count("*").alias("rows"), wrong).collect()
    return {(each.p, each.f): Placed(each["rows"], each["wrong"]) for each in found}


def _file_id(found: HashingMetadata, code: int) -> str:
    """Returns the file group of a hash: the first range that ends there or later, else the first of all
    (`ConsistentBucketIdentifier.getBucket`)."""
    place = bisect_left(found.ends, code)
    return found.file_ids[place if place < len(found.ends) else 0]


def _hashed(table: HudiTable) -> Column:
    """Returns the text that Hudi hashes: the values of the hash fields, in the order of the key, or else the whole key.
    `jobs.format.bucket_hash` describes how Hudi takes a key apart (`KeyGenUtils.extractRecordKeysByFields`)."""
    key, fields = F.col(RECORD_KEY), hashing_metadata.hash_fields(table)

    def name(part: Column) -> Column:
        return F.substring_index(part, ":", 1)

    def value(part: Column) -> Column:
        return part.substr(F.length(name(part)) + 2, F.length(part))

    # A comma ends a value only if the next separator is a colon, and only after the first colon of the key.
    later = F.split(value(key), ",(?=[^,:]*:)")
    parts = F.transform(
        later, lambda part, place: F.when(place == 0, F.concat(name(key), F.lit(":"), part)).otherwise(part)
    )
    hashed = F.transform(F.filter(parts, lambda part: name(part).isin(fields)), value)
    texts = F.transform(
        hashed, lambda text: F.when(text == "__empty__", "").when(text == "__null__", "null").otherwise(text)
    )
    is_composite = key.contains(",") & key.contains(":") & (F.size(hashed) > 0)
    return F.when(is_composite, F.array_join(texts, "")).otherwise(key)
