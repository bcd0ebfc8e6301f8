"""Compares the indexes of Hudi's writers: the load of a table, upserts, look-ups of single keys, a scan and a join.

    python tests/benchmarks/index_comparison.py [--sizes 1,4,16] [--updated 1,10,50] [--type MERGE_ON_READ]
        [--indexes bucket,record] [--chart .docs/indexes.svg]

For each size and index, Hudi loads the same rows into as many files, in one run and one warm Spark session; only ratios
of one run mean anything. Without a bucket index the rows are ordered by a column that is not the key, so each file has
keys of the whole range, as in a table that was written over time under random keys. Each upsert is of keys drawn at
random from all partitions, on a fresh copy of the table. The join is of all rows with a second table of the same keys
and the same index, by Spark's own plan and, with a bucket index, by the buckets (`groundskeeper_spark`). Every upsert
is checked: each key is there once, with its new value. On a merge-on-read table an upsert writes logs only, so the cost
of the index itself shows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "jobs" / "bucketed_reads"))

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from groundskeeper_spark import Table, bucketed
from jobs.hudi.session import start_session
from tests.benchmarks import chart, trips
from tests.benchmarks.process_tree import measured
from tests.benchmarks.trips import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

PARTITIONS, ROWS_PER_FILE = 4, 125_000
WARM_UP_ROWS = 40_000
LOOK_UPS = 5
_TYPE = "COPY_ON_WRITE"
_RECORD = {"hoodie.metadata.record.index.enable": "true"}
INDEXES: Mapping[str, Mapping[str, str]] = {
    "bucket": {"hoodie.index.type": "BUCKET"},
    "bloom": {"hoodie.index.type": "BLOOM"},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "record": {"hoodie.index.type": "RECORD_INDEX", **_RECORD},
}
# Heartbeats stay valid during minutes without CPU time, which happen on a machine that others use too.
_PATIENT = {"hoodie.client.heartbeat.interval_in_ms": "600000", "hoodie.clean.failed.writes.policy": "EAGER"}

_BY_ANOTHER_COLUMN = {
    "hoodie.bulkinsert.user.defined.partitioner.class": (
        "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner"
    ),
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "fare",
}


@dataclass(frozen=True)
class Measured:
    """One operation on the table with one index."""

    index: str
    rows: int
    operation: str
    seconds: float
    cpu_seconds: float


class Bench:
    """One table of so many rows with one index."""

    def __init__(self, spark: SparkSession, folder: Path, index: str, rows: int, *, table_type: str) -> None:
        self._spark, self._folder, self._index, self._rows = spark, folder, index, rows
        self._options = {**INDEXES[index], "hoodie.datasource.write.table.type": table_type}
        files = max(PARTITIONS, rows // ROWS_PER_FILE)
        self._shape = Shape(rows, 15, files // PARTITIONS, PARTITIONS, "gzip")
        self._base = folder / "trips"

    def run(self, updated: list[int]) -> Iterator[Measured]:
        frame = trips.rows(self._spark, self._shape)
        yield self._measured("load", lambda: self._write(frame, self._base, "bulk_insert"))
        other = self._folder / "others"
        self._write(frame.select("id", "ts", "dt", "fare"), other, "bulk_insert")
        yield from self._reads(other)
        for percent in updated:
            yield self._upsert(percent)

    def _reads(self, other: Path) -> Iterator[Measured]:
        table, second = self._read(self._base), self._read(other)
        keys = [f"trip-{number * self._rows // LOOK_UPS:010}" for number in range(LOOK_UPS)]

        def look_up(key: str) -> None:
            assert [row.id for row in self._read(self._base).where(F.col("id") == key).collect()] == [key]

        every = [self._measured("look-up of a key", lambda key=key: look_up(key)) for key in keys]  # type: ignore[misc]
        seconds, cpu = median(each.seconds for each in every), median(each.cpu_seconds for each in every)
        yield Measured(self._index, self._rows, "look-up of a key", seconds, cpu)
        yield self._measured("scan", lambda: _consume(table))
        left = [name for name in table.columns if not name.startswith("_hoodie_") and name not in ("id", "fare")]
        yield self._measured(
            "join", lambda: _consume(table.select("id", *left).join(second.select("id", "fare"), "id"))
        )
        if self._index == "bucket":
            sides = [Table(str(base), ("id",), self._shape.buckets) for base in (self._base, other)]
            columns = (left, ["fare"])

            def join() -> None:
                found = bucketed.join(self._spark, *sides, ["id"], columns=columns)
                assert found.fallback is None, found.fallback
                _consume(found.rows)

            yield self._measured("join by buckets", join)

    def _upsert(self, percent: int) -> Measured:
        base = trips.fresh_copy(self._base, self._folder / "copy")
        chosen = trips.rows(self._spark, self._shape).where(f"pmod(xxhash64(id, 99), 100) < {percent}")
        changes = chosen.withColumn("ts", F.col("ts") + 1).withColumn("fare", F.lit(-1.0))
        try:
            found = self._measured(f"upsert of {percent} %", lambda: self._write(changes, base, "upsert"))
            rows, keys, changed = (
                self._read(base)
                .agg(F.count("*"), F.count_distinct("id"), F.sum((F.col("fare") == -1.0).cast("int")))
                .collect()[0]
            )
            assert (rows, keys, changed) == (self._rows, self._rows, chosen.count())
        finally:
            shutil.rmtree(base)
        return found

    def _measured(self, operation: str, work: Callable[[], None]) -> Measured:
        os.sync()
        with measured() as cost:
            work()
        return Measured(self._index, self._rows, operation, cost.seconds, cost.cpu_seconds)

    def _read(self, base: Path) -> DataFrame:
        options = {
            **trips.table_options(base, self._shape),
            **self._options,
            "hoodie.enable.data.skipping": "true",
        }
        return self._spark.read.format("hudi").options(**options).load(str(base))

    def _write(self, frame: DataFrame, base: Path, operation: str) -> None:
        options = {
            **trips.table_options(base, self._shape),
            **self._options,
            **_PATIENT,
            "hoodie.datasource.write.operation": operation,
            **({} if self._index == "bucket" else _BY_ANOTHER_COLUMN),
            "hoodie.bulkinsert.shuffle.parallelism": str(self._shape.buckets * PARTITIONS),
        }
        frame.write.format("hudi").options(**options).mode("append").save(str(base))


def _consume(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def compare(
    spark: SparkSession, folder: Path, sizes: list[int], updated: list[int], *, table_type: str, indexes: list[str]
) -> list[Measured]:
    found = []
    for rows in [WARM_UP_ROWS, *sizes]:
        for index in indexes:
            with tempfile.TemporaryDirectory(dir=folder) as place:
                for each in Bench(spark, Path(place), index, rows, table_type=table_type).run(
                    updated if rows in sizes else updated[:1]
                ):
                    if rows in sizes:
                        found.append(each)
                        text = f"{each.rows:>11,} {each.index:>7} {each.operation:>18} {each.seconds:8.2f} s"
                        print(f"{text} {each.cpu_seconds:8.2f} CPU s, load {os.getloadavg()[0]:.1f}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", default="1,4,16", help="million rows, separated by commas")
    parser.add_argument("--updated", default="1,10,50", help="percent of the rows, separated by commas")
    parser.add_argument("--indexes", default=",".join(INDEXES), help="names, separated by commas")
    parser.add_argument("--type", default=_TYPE, choices=[_TYPE, "MERGE_ON_READ"])
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    parser.add_argument("--chart", type=Path, help="draws the CPU seconds of the largest size as an SVG")
    options = parser.parse_args()
    sizes = [int(float(each) * 1_000_000) for each in options.sizes.split(",")]
    spark = start_session(driver_memory="4g", conf={"spark.sql.autoBroadcastJoinThreshold": "-1"})
    with tempfile.TemporaryDirectory(prefix="indexes-") as folder:
        updated, indexes = [int(each) for each in options.updated.split(",")], options.indexes.split(",")
        found = compare(spark, Path(folder), sizes, updated, table_type=options.type, indexes=indexes)
    spark.stop()
    if options.chart:
        options.chart.write_text(_chart_of(found, max(sizes), options.type))
    if options.json:
        print(json.dumps([vars(each) for each in found]))


def _chart_of(found: list[Measured], rows: int, table_type: str) -> str:
    bars: list[tuple[str, float, bool]] = []
    of_size = [each for each in found if each.rows == rows]
    for operation in dict.fromkeys(each.operation for each in of_size):
        bars += [
            (f"{operation}, {each.index}", each.cpu_seconds, each.index == "bucket")
            for each in of_size
            if each.operation == operation
        ]
    shape = f"15 columns, {PARTITIONS} partitions, {table_type.lower().replace('_', '-')}"
    note = f"{rows / 1e6:g} million rows, {shape}, one run"
    return chart.bars("Indexes of writers: CPU seconds, shorter is better", note, bars)


if __name__ == "__main__":
    main()
