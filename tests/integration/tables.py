"""Writes Hudi tables for the tests as a user's Spark job does, and reads their rows and files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from tests.support import shared_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, Row, SparkSession

INDEX = BucketIndex(4, ("id",))
LOCK = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
    "hoodie.write.lock.client.num_retries": "600",
}


def writer_options(
    base: Path | str,
    *,
    table_type: str = "MERGE_ON_READ",
    version: int = 9,
    num_buckets: int | None = 4,
    partitioned: bool = True,
    record_key: str = "id",
    hash_fields: str | None = None,
    metadata: bool = True,
    **more: str,
) -> dict[str, str]:
    """Returns the options of a writer with OCC and the table's lock, and without inline services."""
    options = {
        "hoodie.table.name": str(base).rstrip("/").rsplit("/", 1)[-1],
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.operation": "upsert",
        "hoodie.datasource.write.recordkey.field": record_key,
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.partitionpath.field": "dt" if partitioned else "",
        "hoodie.write.table.version": str(version),
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": str(metadata).lower(),
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.write.markers.type": "DIRECT",
        "hoodie.upsert.shuffle.parallelism": "2",
        # Each base file has a Bloom filter of 430 KB by default, which every reader of its footer reads, too.
        "hoodie.index.bloom.num_entries": "1000",
        **LOCK,
    }
    keys = record_key.split(",")
    if not partitioned:
        options["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    elif len(keys) > 1:
        options["hoodie.datasource.write.keygenerator.class"] = "org.apache.hudi.keygen.ComplexKeyGenerator"
    if num_buckets:
        options["hoodie.index.type"] = "BUCKET"
        options["hoodie.bucket.index.num.buckets"] = str(num_buckets)
        options["hoodie.bucket.index.hash.field"] = hash_fields or record_key
    return {**options, **more}


def let_delegate(spark: SparkSession) -> None:
    """Repairs the client of a table service manager in this JVM, as `.docs/delegated-services.md` tells users to.

    `HoodieConfig.getStringOrDefault` of Hudi 1.2.0 asks for the default value of an option that has none.
    """
    jvm: Any = spark._jvm
    config = jvm.org.apache.hudi.common.config.HoodieTableServiceManagerConfig
    option = config.TABLE_SERVICE_MANAGER_DEPLOY_EXTRA_PARAMS
    default = option.getClass().getDeclaredField("defaultValue")
    default.setAccessible(True)
    default.set(option, "")


_REMEMBERED = 1200
# The first rows by the session's application and the number of partitions: a list of Java's rows, and their schema.
_remembered: dict[tuple[str, int], tuple[Any, Any]] = {}


def rows(spark: SparkSession, first: int, last: int, *, ts: int = 0, partitions: int = 3) -> DataFrame:
    """Returns the rows first..last-1 with nested, decimal, date, timestamp and null columns. `ts` orders versions of a
    row.

    The first rows are computed once. Spark compiles code for each range and each `ts` that it computes. It compiles
    none to read stored rows, or to make simple selections from them (`ConvertToLocalRelation`).
    """
    if last > _REMEMBERED:
        return _computed(spark, first, last, partitions, ts)
    key = (spark.sparkContext.applicationId, partitions)
    if key not in _remembered:
        session = spark.newSession()
        # The classes of Java 8 depend on no time zone.
        session.conf.set("spark.sql.datetime.java8API.enabled", "true")
        made = _computed(session, 0, _REMEMBERED, partitions)._jdf
        _remembered[key] = made.collectAsList(), made.schema()
    found, schema = _remembered[key]
    frame = DataFrame(spark._jsparkSession.createDataFrame(found.subList(first, last), schema), spark)
    return frame.withColumns({"ts": F.lit(ts).cast("long"), "fare": F.col("fare") + ts}) if ts else frame


def _computed(spark: SparkSession, first: int, last: int, partitions: int, ts: int = 0) -> DataFrame:
    return spark.range(first, last, 1, 2).select(
        F.concat(F.lit("k"), F.col("id")).alias("id"),
        F.lit(ts).cast("long").alias("ts"),
        F.concat(F.lit("2026-01-0"), (F.col("id") % partitions + 1).cast("string")).alias("dt"),
        F.concat(F.lit("r"), F.col("id") % 4).alias("region"),
        ((F.col("id") * 7919) % 1000).cast("int").alias("city"),
        (F.col("id") * 2.5 + ts).alias("fare"),
        F.when(F.col("id") % 5 != 0, F.concat(F.lit("näme 😀 "), F.col("id"))).alias("note"),
        F.expr("cast(id * 1.25 as decimal(20,4))").alias("price"),
        F.expr("date_add(date'2020-01-01', cast(id % 3000 as int))").alias("day"),
        F.expr("timestamp_micros(1700000000123456 + id * 1000001)").alias("at"),
        F.expr("array(named_struct('a', id, 'b', concat('x', id)))").alias("items"),
        F.expr("if(id % 3 = 0, null, map('p', id * 1.5D))").alias("scores"),
        F.expr("cast(concat('bin', id) as binary)").alias("blob"),
    )


def upsert(frame: DataFrame, base: Path | str, options: dict[str, str]) -> None:
    frame.write.format("hudi").options(**options).mode("append").save(str(base))


def upsert_outside_buckets(frame: DataFrame, base: Path, options: dict[str, str]) -> None:
    """Upserts by another index than the table's bucket index. The random id of one new file group in forty begins with
    eight digits, and counts as a bucket's for Hudi and for us; then the write is undone and made again."""
    before = _ids(base)
    with tempfile.TemporaryDirectory() as folder:
        kept = shutil.copytree(base, Path(folder) / "kept")
        while True:
            upsert(frame, base, options)
            if not any(each[:8].isdigit() for each in _ids(base) - before):
                return
            shutil.rmtree(base)
            shutil.copytree(kept, base)


def _ids(base: Path) -> set[str]:
    """Returns the file ids of base files and logs, which begin with a dot."""
    return {
        path.name.removeprefix(".").split("_")[0] for each in ("*.parquet", ".*.log.*") for path in base.rglob(each)
    }


def write_table(
    spark: SparkSession,
    base: Path | str,
    *,
    count: int = 600,
    updates: int = 0,
    copied: bool = True,
    **shape: Any,
) -> dict[str, str]:
    """Writes a table of `count` rows, then `updates` commits that each change half of them; returns the options.

    A table of each shape is written once in a run of the tests, and copied from then on. A table for an expansion must
    not be `copied`: the expansion would take the time since the writing for the pause of the writer, and wait as long.
    """
    options = writer_options(base, **shape)
    if copied and isinstance(base, Path):
        _copy_written(spark, base, options, count, updates)
    else:
        _write(spark, base, options, count, updates)
    return options


def prepared(base: Path, key: str, write: Callable[[Path], Any]) -> Any:
    """Copies the table that `write` has written for this key once in a run of the tests; returns what `write` has
    returned, which must have a form in JSON."""
    folder = shared_tables.folder() / hashlib.sha256(f"{base.name} {key}".encode()).hexdigest()[:24]
    if not folder.exists():
        unfinished = Path(tempfile.mkdtemp(dir=shared_tables.folder()))
        (unfinished / "returned.json").write_text(json.dumps(write(unfinished / base.name)))
        # Another process may have made the table first.
        with suppress(OSError):
            unfinished.rename(folder)
    shutil.copytree(folder / base.name, base)
    return json.loads((folder / "returned.json").read_text())


def _copy_written(spark: SparkSession, base: Path, options: dict[str, str], count: int, updates: int) -> None:
    """Copies the table of this shape. A table with updates is made from the copy that has one update less."""

    def write(path: Path) -> None:
        if updates:
            _copy_written(spark, path, options, count, updates - 1)
            _update(spark, path, options, count, updates)
        else:
            _write(spark, path, options, count, 0)

    prepared(base, repr((count, updates, sorted(options.items()))), write)


def _write(spark: SparkSession, base: Path | str, options: dict[str, str], count: int, updates: int) -> None:
    upsert(rows(spark, 0, count), base, options)
    for number in range(1, updates + 1):
        _update(spark, base, options, count, number)


def _update(spark: SparkSession, base: Path | str, options: dict[str, str], count: int, number: int) -> None:
    upsert(rows(spark, 0, count // 2, ts=number), base, options)


def snapshot(spark: SparkSession, base: Path | str, *, metadata: bool | None = None) -> list[str]:
    """Returns all rows, sorted, with all columns except `_hoodie_file_name`, which every rewrite changes.

    `metadata` says whether the files are found by the metadata table, which is Hudi's default, or by listing the
    folders.
    """
    return _texts(collected(spark, base, by_listing=metadata is False))


def in_order(spark: SparkSession, base: Path | str, num_buckets: int, hash_fields: str = "id") -> list[str]:
    """Returns the rows of `snapshot` after it has asserted that none is misplaced or duplicate."""
    found = collected(spark, base)
    assert _misplaced(spark, found.rows, num_buckets, hash_fields) == 0
    assert _duplicates(found.rows) == 0
    return _texts(found)


def misplaced(spark: SparkSession, base: Path | str, num_buckets: int, hash_fields: str = "id") -> int:
    """Returns the rows whose bucket by Hudi's own `BucketIdentifier` differs from the bucket of their file."""
    return _misplaced(spark, collected(spark, base).rows, num_buckets, hash_fields)


def duplicates(spark: SparkSession, base: Path | str) -> int:
    return _duplicates(collected(spark, base).rows)


_PARTITION, _KEY, _FILE = "_hoodie_partition_path", "_hoodie_record_key", "_hoodie_file_name"
# Hudi's buckets of record keys, by their number and the hash fields.
_buckets: dict[tuple[int, str], dict[str, str]] = {}
_MOST_READS = 20


@dataclass(frozen=True)
class Collected:
    """The rows of a table with all its columns."""

    columns: list[str]
    rows: list[Row]


# The last reads with the state of the table then, by table and kind of listing.
_reads: dict[tuple[Path, bool], tuple[frozenset[tuple[str, int, int]], Collected]] = {}


def bucket_of(num_buckets: int, hash_fields: str = "id") -> Column:
    """Returns the bucket of a row by Hudi's own `BucketIdentifier`."""
    identifier = F.lit("org.apache.hudi.index.bucket.BucketIdentifier")
    arguments = (F.col(_KEY), F.lit(hash_fields), F.lit(num_buckets))
    return F.reflect(identifier, F.lit("getBucketId"), *arguments)


def collected(spark: SparkSession, base: Path | str, *, by_listing: bool = False) -> Collected:
    """Returns the rows of a table. A table on a disk is not read again in the same way until a file of it has
    changed."""
    if not isinstance(base, Path):
        return _read(spark, base, by_listing=by_listing)
    state, key = _state(base), (base, by_listing)
    before, found = _reads.get(key, (None, None))
    if found is None or before != state:
        found = _read(spark, base, by_listing=by_listing)
        if len(_reads) == _MOST_READS:
            _reads.clear()
        _reads[key] = (state, found)
    return found


def _state(base: Path) -> frozenset[tuple[str, int, int]]:
    """Returns the files of a table with their sizes and times."""
    found = set()
    for folder, _, names in os.walk(base):
        for name in names:
            path = f"{folder}/{name}"
            with suppress(FileNotFoundError):  # A writer has removed it.
                stat = Path(path).stat()
                found.add((path, stat.st_size, stat.st_mtime_ns))
    return frozenset(found)


def _read(spark: SparkSession, base: Path | str, *, by_listing: bool) -> Collected:
    frame = spark.read.format("hudi").option("hoodie.metadata.enable", str(not by_listing).lower()).load(str(base))
    return Collected(frame.columns, frame.collect())


def _texts(found: Collected) -> list[str]:
    # To sort the columns in the query would make Spark plan and compile more for each read.
    order = sorted((name, place) for place, name in enumerate(found.columns) if name != _FILE)
    return sorted(str({name: row[place] for name, place in order}) for row in found.rows)


def _misplaced(spark: SparkSession, rows: Sequence[Row], num_buckets: int, hash_fields: str) -> int:
    known = _buckets.setdefault((num_buckets, hash_fields), {})
    if unknown := {row[_KEY] for row in rows} - known.keys():
        # The keys of `rows` are looked up once, not again for each table that has more of them.
        unknown |= {f"k{number}" for number in range(_REMEMBERED)} - known.keys() if hash_fields == "id" else set()
        keys = spark.createDataFrame([(key,) for key in unknown], f"{_KEY} string")
        known |= dict(keys.select(_KEY, bucket_of(num_buckets, hash_fields)).collect())
    return sum(int(known[row[_KEY]]) != int(row[_FILE][:8]) for row in rows)


def _duplicates(rows: Sequence[Row]) -> int:
    return len(rows) - len({(row[_PARTITION], row[_KEY]) for row in rows})


def texts(spark: SparkSession, base: Path, *like: DataFrame) -> tuple[list[str], list[str]]:
    """Returns the rows of the table, and those of the frames together."""
    names = like[0].columns
    found = collected(spark, base).rows
    expected = [row for frame in like for row in frame.collect()]
    return sorted(str([row[name] for name in names]) for row in found), sorted(str([*row]) for row in expected)


def completed_files(base: Path) -> list[Path]:
    """Returns the files of the completed commits of any kind in the active timeline."""
    folder = base / ".hoodie" / "timeline"
    found = folder.glob("*_*.*commit") if folder.exists() else (base / ".hoodie").glob("*.*commit")
    return [path for path in found if path.name.count(".") == 1]


def newest(base: Path) -> str:
    """Returns the newest instant of a completed commit."""
    return max(path.name.split("_")[0].split(".")[0] for path in completed_files(base))


def left_behind(base: Path) -> list[str]:
    """Returns the data files, markers and hashing configs that belong to no completed instant, and a lock file."""
    timeline = base / ".hoodie" / "timeline"
    # Before table version 8 completed instants lie in another folder, and their names have no completion time.
    states = (path.name for path in (timeline if timeline.exists() else base / ".hoodie").iterdir())
    completed = {re.split("[_.]", name)[0] for name in states if not name.endswith((".requested", ".inflight"))}
    data = [path for path in base.rglob("*.parquet") if ".hoodie" not in path.relative_to(base).parts]
    assert data, "there is nothing to look at"
    found = [path for path in data if path.stem.rsplit("_", 1)[-1] not in completed]
    found += (base / ".hoodie" / ".temp").glob("*/**/*.marker.*")
    configs = base / ".hoodie" / ".bucket_index" / "partition_bucket_index_meta" / "configs"
    found += [path for path in configs.glob("[!.]*") if path.name.split(".")[0] not in completed | {"00000000000000"}]
    found += [path for path in [base / ".hoodie" / "lock"] if path.exists()]
    return sorted(str(path.relative_to(base)) for path in found)
