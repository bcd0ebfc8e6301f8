"""Writes Hudi tables for the tests as a user's Spark job does, and reads their rows and files."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex
from tests.support import shared_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

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


def rows(spark: SparkSession, first: int, last: int, *, ts: int = 0, partitions: int = 3) -> DataFrame:
    """Returns the rows first..last-1 with nested, decimal, date, timestamp and null columns. `ts` orders versions of a
    row."""
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
    """The table of the shape is the one with an update less, and one more."""

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

    `metadata` says whether the files are found by the metadata table, or by listing the folders.
    """
    options = {} if metadata is None else {"hoodie.metadata.enable": str(metadata).lower()}
    return sorted(row[0] for row in _rows(spark, base, options=options))


def in_order(spark: SparkSession, base: Path | str, num_buckets: int, hash_fields: str = "id") -> list[str]:
    """Returns the rows of `snapshot` after it has asserted that none is misplaced or duplicate."""
    found = _rows(spark, base, bucket_of(num_buckets, hash_fields))
    assert _misplaced(found) == 0
    assert _duplicates(found) == 0
    return sorted(row[0] for row in found)


def misplaced(spark: SparkSession, base: Path | str, num_buckets: int, hash_fields: str = "id") -> int:
    """Returns the rows whose bucket by Hudi's own `BucketIdentifier` differs from the bucket of their file."""
    return _misplaced(_rows(spark, base, bucket_of(num_buckets, hash_fields)))


def duplicates(spark: SparkSession, base: Path | str) -> int:
    return _duplicates(_rows(spark, base))


_PARTITION, _KEY, _FILE = "_hoodie_partition_path", "_hoodie_record_key", "_hoodie_file_name"


def bucket_of(num_buckets: int, hash_fields: str = "id") -> Column:
    """Returns the bucket of a row by Hudi's own `BucketIdentifier`."""
    identifier = F.lit("org.apache.hudi.index.bucket.BucketIdentifier")
    arguments = (F.col(_KEY), F.lit(hash_fields), F.lit(num_buckets))
    return F.reflect(identifier, F.lit("getBucketId"), *arguments)


def _rows(
    spark: SparkSession, base: Path | str, bucket: Column | None = None, *, options: dict[str, str] | None = None
) -> list[tuple[str, ...]]:
    """Returns each row as text, its partition path, record key and file name, and the bucket that is asked for."""
    frame = spark.read.format("hudi").options(**options or {}).load(str(base))
    columns = sorted(column for column in frame.columns if column != _FILE)
    meta = [F.col(name).alias(f"its{name}") for name in (_PARTITION, _KEY, _FILE)]
    found = frame.select(*columns, *meta, *([] if bucket is None else [bucket])).collect()
    return [(str(dict(zip(columns, row, strict=False))), *row[len(columns) :]) for row in found]


def _misplaced(found: list[tuple[str, ...]]) -> int:
    return sum(int(bucket) != int(file_name[:8]) for _, _, _, file_name, bucket in found)


def _duplicates(found: list[tuple[str, ...]]) -> int:
    return len(found) - len({row[1:3] for row in found})


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
