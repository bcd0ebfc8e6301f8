"""Writes the table of the benchmarks, trips, by Hudi's own bulk insert, and takes fingerprints that show whether its
rows have changed."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from tests.integration.tables import writer_options

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

FILE_NAME = "_hoodie_file_name"
_ALWAYS = ("id", "ts", "dt")

# Columns like those of a table of trips: keys, a few low-cardinality names, measurements, some nulls. `id` is the row's
# number.
_RECIPES = {
    "rider": "concat('rider-', pmod(xxhash64(id, 1), 200000))",
    "driver": "concat('driver-', pmod(xxhash64(id, 2), 20000))",
    "city": "concat('city-', pmod(xxhash64(id, 3), 120))",
    "status": "case pmod(xxhash64(id, 4), 3) when 0 then 'requested' when 1 then 'riding' else 'paid' end",
    "fare": "round(pmod(xxhash64(id, 5), 9000) / 100 + 2.5, 2)",
    "distance": "pmod(xxhash64(id, 6), 60000) / 1000D",
    "begin_lat": "round(40 + pmod(xxhash64(id, 7), 1000000) / 1e6, 5)",
    "begin_lon": "round(-74 + pmod(xxhash64(id, 8), 1000000) / 1e6, 5)",
    "passengers": "cast(pmod(xxhash64(id, 9), 6) + 1 as int)",
    "paid_at": "timestamp_micros(1767225600000000 + pmod(xxhash64(id, 10), 86400000) * 1000)",
    "price": "cast(pmod(xxhash64(id, 11), 100000) / 100 as decimal(12,2))",
    "note": "if(pmod(id, 5) = 0, concat('note ', hex(xxhash64(id, 12))), null)",
}


@dataclass(frozen=True)
class Shape:
    """The shape of the table. `columns` counts the data columns, without Hudi's five meta columns."""

    rows: int
    columns: int
    buckets: int
    partitions: int
    codec: str
    column_stats: bool = False

    @property
    def name(self) -> str:
        stats = "_stats" if self.column_stats else ""
        return f"trips_{self.rows}x{self.columns}_{self.buckets}b_{self.partitions}p_{self.codec}{stats}"


@dataclass(frozen=True)
class Fingerprint:
    """Rows, a sum over the hashes of all data columns of each row, and one over the meta columns.

    The meta column `_hoodie_file_name` is left out, because any rewrite changes it.
    """

    rows: int
    data: str
    meta: str


# Hudi's default. The tests' tables have smaller filters, which would have to grow in files as large as these.
HUDIS_FILTERS = {"hoodie.index.bloom.num_entries": "60000"}


def table_options(base: Path, shape: Shape) -> dict[str, str]:
    """Returns the options of a writer alone on the table: no lock, no table services, and a metadata table with the
    indexes of the shape."""
    more = {
        "hoodie.table.name": "trips",
        "hoodie.parquet.compression.codec": shape.codec,
        "hoodie.write.concurrency.mode": "single_writer",
        "hoodie.metadata.index.column.stats.enable": str(shape.column_stats).lower(),
        "hoodie.metadata.index.partition.stats.enable": "false",
        "hoodie.bulkinsert.shuffle.parallelism": str(os.cpu_count() or 1),
        **HUDIS_FILTERS,
    }
    return writer_options(base, table_type="COPY_ON_WRITE", num_buckets=shape.buckets) | more


def make(spark: SparkSession, base: Path, shape: Shape) -> Path:
    """Writes the table by one bulk insert: one base file for each bucket of each partition."""
    options = table_options(base, shape) | {"hoodie.datasource.write.operation": "bulk_insert"}
    rows(spark, shape).write.format("hudi").options(**options).mode("overwrite").save(str(base))
    return base


def rows(spark: SparkSession, shape: Shape, *, drawn_from: int = 0) -> DataFrame:
    """Returns the table's rows. `drawn_from` is the first number from which the random columns are computed, so another
    one gives other values."""
    names = list(_RECIPES)
    count = max(shape.columns - len(_ALWAYS), 1)
    extra = [(f"{names[i % len(names)]}{i // len(names) or ''}", _RECIPES[names[i % len(names)]]) for i in range(count)]
    return spark.range(0, shape.rows, 1, os.cpu_count() or 1).select(
        F.expr("concat('trip-', lpad(cast(id as string), 10, '0'))").alias("id"),
        F.expr("1767225600000 + id * 7").alias("ts"),
        F.expr(f"concat('2026-01-', lpad(cast(pmod(id, {shape.partitions}) + 1 as string), 2, '0'))").alias("dt"),
        *(F.expr(re.sub(r"\bid\b", f"(id + {drawn_from})", text)).alias(name) for name, text in extra),
    )


def fresh_copy(original: Path, target: Path) -> Path:
    """Makes a copy and flushes it to the disk, so that its cost does not fall into the next measurement."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(original, target)
    os.sync()
    return target


def fingerprint(spark: SparkSession, base: Path) -> Fingerprint:
    """Returns a fingerprint of the rows as Spark reads them. Nulls and their columns count as well."""
    frame = spark.read.format("hudi").load(str(base))
    meta = [name for name in frame.columns if name.startswith("_hoodie_") and name != FILE_NAME]
    data = sorted(name for name in frame.columns if not name.startswith("_hoodie_"))
    found = frame.agg(F.count("*"), _sum_of_hashes(data), _sum_of_hashes(meta)).collect()[0]
    return Fingerprint(int(found[0]), str(found[1]), str(found[2]))


def _sum_of_hashes(columns: list[str]) -> Column:
    parts = [part for name in columns for part in (F.col(name), F.col(name).isNull())]
    return F.sum(F.xxhash64(*parts).cast("decimal(38,0)"))


def size_of_files(base: Path, *, of_instant: str = "") -> int:
    """Returns the bytes of all base files, or of those of one instant (`<file id>_<token>_<instant>.parquet`)."""
    files = (path for path in base.glob("*/*.parquet") if not path.parts[-2].startswith("."))
    return sum(path.stat().st_size for path in files if path.stem.endswith(of_instant))


def latest_instant(base: Path) -> str:
    """Returns the instant of the newest base files."""
    return max(path.stem.rsplit("_", 1)[-1] for path in base.glob("*/*.parquet"))
