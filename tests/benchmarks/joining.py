"""Compares the merge of small files by copied row groups with Hudi's own merges, and with a plain copy of the files.

    python tests/benchmarks/joining.py [--json] [--rows 4000000] [--files 4] [--folder /data/bench]

Every merge is a whole job on a fresh copy of one table, in one run and one warm Spark session; only ratios of one run
mean anything. `stream copy` is Hudi's `SparkStreamCopyClusteringExecutionStrategy`, `hudi` its default. `task` is the
work of a task alone, without Spark and the commit. Every result is checked: the table has the same rows as before.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pyarrow.parquet as pq

from jobs.contract import JobKind, Outcome, Table, WorkOrder
from jobs.dataplane import parquet_layout
from jobs.dataplane.bloom_filter import FilterKind
from jobs.dataplane.compacted_file import Compaction
from jobs.dataplane.joined_files import join
from jobs.dataplane.merge_rules import MergeRules, SliceFiles
from jobs.hudi.jvm import Jvm
from jobs.hudi.table import HudiTable
from jobs.kinds.registry import typed
from jobs.storage.paths import of_hadoop
from jobs.worker.attempt import RUN
from tests.benchmarks import trips, variants
from tests.benchmarks.process_tree import measured
from tests.benchmarks.trips import Shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, HUDI, STREAM = "arrow", "hudi", "stream copy"
_STREAM_COPY = ",".join(
    [
        "hoodie.clustering.plan.strategy.class=org.apache.hudi.client.clustering.plan.strategy."
        "SparkStreamCopyClusteringPlanStrategy",
        "hoodie.clustering.execution.strategy.class=org.apache.hudi.client.clustering.run.strategy."
        "SparkStreamCopyClusteringExecutionStrategy",
        "hoodie.metadata.index.column.stats.enable=false",
    ]
)


def make(spark: SparkSession, base: Path, shape: Shape, files: int) -> Path:
    """Writes the table, with so many files in each partition, unless it is there."""
    if not base.exists():
        options = {name: value for name, value in trips.table_options(base, shape).items() if "bucket" not in name}
        options |= {
            "hoodie.index.type": "BLOOM",
            "hoodie.datasource.write.operation": "bulk_insert",
            "hoodie.bulkinsert.sort.mode": "NONE",
            "hoodie.bulkinsert.shuffle.parallelism": str(files),
        }
        rows = trips.rows(spark, shape).repartition(files)
        rows.write.format("hudi").options(**options).mode("overwrite").save(str(base))
    return base


def merge(spark: SparkSession, base: Path, variant: str) -> None:
    if variant == STREAM:
        spark.sql(
            f"call run_clustering(path => '{base}', op => 'scheduleAndExecute', options => '{_STREAM_COPY}')"
        ).collect()
        return
    declared = Table(str(base), "trips", None, writers_hudi_version="1.2.0")
    order = WorkOrder("benchmark", 1, JobKind.CLUSTERING, declared, {"engine": variant})
    result = RUN[order.kind](HudiTable(Jvm(spark), declared), typed(order), variants.Steps())
    if result.outcome is not Outcome.SUCCEEDED:
        raise RuntimeError(f"the clustering ended as {result}")


def of_task(base: Path, folder: Path) -> dict[str, float]:
    """Returns the CPU seconds of joining the files of one partition, and of copying them, the least of some runs."""
    storage = of_hadoop(str(base), {})
    paths = sorted((path for path in base.glob("2026-01-01/*.parquet")), key=lambda path: -path.stat().st_size)
    slices = tuple(
        SliceFiles("2026-01-01", path.name, str(path.relative_to(base)), (), path.stat().st_size) for path in paths
    )
    with pq.ParquetFile(paths[0]) as reader:
        layout = replace(parquet_layout.of_file(reader), keys=FilterKind.default(), dictionary=None)
    rules = MergeRules("EVENT_TIME_ORDERING", ("ts",), 9, frozenset(), "")
    work = Compaction(replace(storage, root=str(folder)), "20990101000000000", rules, layout, None, copies_from=0)
    (folder / "2026-01-01").mkdir(parents=True, exist_ok=True)
    for path in paths:
        shutil.copy(path, folder / "2026-01-01" / path.name)
    found = {"join": float("inf"), "copy": float("inf")}
    for _ in range(7):
        begun = time.process_time()
        made = join(work, slices, "0-0-0")
        found["join"] = min(found["join"], time.process_time() - begun)
        (folder / "2026-01-01" / made.written.file_name).unlink()
        begun = time.process_time()
        for path in paths:
            with path.open("rb") as source, (folder / "copy").open("wb") as target:
                while block := source.read(1 << 20):
                    target.write(block)
        found["copy"] = min(found["copy"], time.process_time() - begun)
    return {**found, "bytes": float(sum(each.bytes for each in slices))}


def compare(spark: SparkSession, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    shape = Shape(options.rows, 15, 1, 4, options.codec)
    original = make(spark, folder / f"{shape.name}_{options.files}", shape, options.files)
    small = Shape(40_000, 15, 1, 1, options.codec)
    warm = make(spark, folder / small.name, small, 2)
    for variant in (OURS, HUDI, STREAM) * 2:
        merge(spark, trips.fresh_copy(warm, folder / "warm"), variant)
    before = trips.fingerprint(spark, original)
    found: dict[str, Any] = {"bytes": trips.size_of_files(original), "task": of_task(original, folder / "task")}
    for variant in (OURS, STREAM, HUDI) * options.repeat:
        base = trips.fresh_copy(original, folder / "copy")
        with measured() as cost:
            merge(spark, base, variant)
        if (after := trips.fingerprint(spark, base)) != before:
            raise AssertionError(f"{variant} changed the rows: {before} became {after}")
        least = found.get(variant)
        if least is None or cost.cpu_seconds < least["cpu_seconds"]:
            found[variant] = {**asdict(cost), "cpu_seconds": cost.cpu_seconds}
        print(variant, round(cost.seconds, 2), "s,", round(cost.cpu_seconds, 2), "CPU s", file=sys.stderr)
    return {"table": asdict(shape), "files": options.files, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--codec", default="gzip")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="joining-"))).resolve()
    spark = variants.session()
    try:
        found = compare(spark, options, folder)
    finally:
        spark.stop()
        if not options.folder:
            shutil.rmtree(folder)
    print(json.dumps(found, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
