"""Compares the expansion of a table that clustering has prepared for it with a plain copy by pyarrow.

    python tests/benchmarks/prepared_expansion.py [--rows 4000000] [--codec gzip] [--json]

One table, in one run and one warm session: prepared and unprepared copies of it are expanded in turn, and the files of
both are copied by pyarrow, as the floor of `expansion.py`. The figures are CPU seconds of all processes. All results
are checked.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.contract import BucketIndex, JobKind, Outcome, Table, WorkOrder
from jobs.hudi.jvm import Jvm
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.registry import typed
from jobs.worker.attempt import RUN
from tests.benchmarks import trips, variants
from tests.benchmarks.process_tree import measured
from tests.benchmarks.trips import Shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREPARED, UNPREPARED, CONTRACTED = "prepared", "unprepared", "contracted"
FLOOR, FLOOR_OF_PREPARED = "floor", "floor_of_prepared"
WARM_UP_ROWS, WARM_UPS = 40_000, 6


def prepared_expansion(
    spark: SparkSession, folder: Path, *, rows: int = 4_000_000, codec: str = "gzip", repeat: int = 3
) -> float:
    """Returns the CPU seconds of a prepared expansion, as a multiple of those of a pyarrow copy of the same files."""
    return compare(spark, folder, Shape(rows, 15, 8, 4, codec), repeat)["prepared_expansion_cpu_vs_copy"]


def compare(spark: SparkSession, folder: Path, shape: Shape, repeat: int) -> dict[str, float]:
    """Returns the medians of CPU and wall seconds of each variant, and their ratios to the floor."""
    small = Shape(WARM_UP_ROWS, shape.columns, shape.buckets, shape.partitions, shape.codec)
    for table, times in ((small, WARM_UPS), (shape, repeat)):
        found = _measure(spark, folder / table.name, table, times)
    result: dict[str, float] = {}
    for variant, costs in found.items():
        result[f"{variant}_cpu_seconds"] = round(median(cpu for cpu, _ in costs), 2)
        result[f"{variant}_seconds"] = round(median(seconds for _, seconds in costs), 2)
    floor = result[f"{FLOOR_OF_PREPARED}_cpu_seconds"]
    result["prepared_expansion_cpu_vs_copy"] = round(result[f"{PREPARED}_cpu_seconds"] / floor, 3)
    result["unprepared_expansion_cpu_vs_copy"] = round(
        result[f"{UNPREPARED}_cpu_seconds"] / result[f"{FLOOR}_cpu_seconds"], 3
    )
    result["contraction_cpu_vs_copy"] = round(
        result[f"{CONTRACTED}_cpu_seconds"] / result[f"{FLOOR_OF_PREPARED}_cpu_seconds"], 3
    )
    return result


def _measure(spark: SparkSession, folder: Path, shape: Shape, times: int) -> dict[str, list[tuple[float, float]]]:
    folder.mkdir(parents=True, exist_ok=True)
    original = trips.make(spark, folder / "original", shape)
    before = trips.fingerprint(spark, original)
    ready = trips.fresh_copy(original, folder / "ready")
    _run(spark, ready, shape.buckets, JobKind.CLUSTERING, {"expansion_factor": 2})
    floor = variants.Floor(os.cpu_count() or 1)
    found: dict[str, list[tuple[float, float]]] = {}

    def note(variant: str, cpu: float, seconds: float) -> None:
        found.setdefault(variant, []).append((cpu, seconds))
        print(f"{shape.rows:>10,} rows {variant:>18} {cpu:7.2f} CPU s {seconds:7.2f} s", flush=True)

    try:
        for _ in range(times):
            for variant, base in ((PREPARED, ready), (UNPREPARED, original)):
                target = trips.fresh_copy(base, folder / variant)
                with measured() as cost:
                    copied = _run(spark, target, shape.buckets, JobKind.BUCKET_EXPANSION, {"factor": 2})
                note(variant, cost.cpu_seconds, cost.seconds)
                _require(copied == (variant == PREPARED), f"{variant}: files were copied: {copied}")
                _require(trips.fingerprint(spark, target) == before, f"{variant} changed the rows")
                if variant == PREPARED:
                    with measured() as cost:
                        _run(spark, target, shape.buckets * 2, JobKind.BUCKET_CONTRACTION, {"factor": 2})
                    note(CONTRACTED, cost.cpu_seconds, cost.seconds)
                    _require(trips.fingerprint(spark, target) == before, "the contraction changed the rows")
                shutil.rmtree(target)
            for variant, base in ((FLOOR, original), (FLOOR_OF_PREPARED, ready)):
                files = sorted(base.glob(f"*/*_{trips.latest_instant(base)}.parquet"))
                with measured() as cost:
                    floor.run(files, folder / variant, None)
                note(variant, cost.cpu_seconds, cost.seconds)
                shutil.rmtree(folder / variant)
    finally:
        floor.close()
        shutil.rmtree(folder)
    return found


def _run(spark: SparkSession, base: Path, buckets: int, kind: JobKind, params: dict[str, int]) -> bool:
    """Runs a job as a worker does; returns whether all files that it wrote were copied."""
    index = BucketIndex(buckets, variants.INDEX_FIELDS)
    declared = Table(str(base), "trips", index, writers_hudi_version="1.2.0", writers_stopped=True)
    plan = WorkOrder("benchmark", 1, kind, declared, params)
    result = RUN[kind](HudiTable(Jvm(spark), declared), typed(plan), JobContext())
    _require(result.outcome is Outcome.SUCCEEDED, f"{kind} ended as {result.outcome}: {result.error}")
    files = result.details.to_json()
    return bool(files["files_copied"] == files["files_written"])


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--codec", default="gzip")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="prepared-expansion-"))
    spark = variants.session()
    try:
        result = compare(spark, folder, Shape(options.rows, 15, 8, 4, options.codec), options.repeat)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for name, value in result.items():
        print(f"{name:>36} {value:7.2f}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
