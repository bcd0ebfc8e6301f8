"""Compares bucket expansion with Hudi's own rescale, a full rewrite by Spark, and the minimum cost of a rewrite.

    python tests/benchmarks/expansion.py [--json] [--chart .docs/expansion.svg]
    python tests/benchmarks/expansion.py --sizes 1,2,4,8      # is the cost linear? (million rows, in as many files)
    python tests/benchmarks/expansion.py --sizes 1,2,4,8 --files-grow    # the same, in files of the same size

Each variant works on fresh copies of one table, in one run and one warm Spark session; only ratios of one run mean
anything. `--repeat` runs the variants several times in turn, and the fastest run of each counts. Every result is
checked: the rows are the original ones, and after our expansion an audit finds each row in its bucket.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.contract import BucketIndex, JobKind, Table, WorkOrder
from jobs.hudi.jvm import Jvm
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.kinds.registry import typed
from jobs.worker.attempt import RUN
from tests.benchmarks import chart, trips, variants
from tests.benchmarks.process_tree import Cost, measured
from tests.benchmarks.trips import Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.benchmarks.trips import Fingerprint

OURS, HUDI, OVERWRITE, FLOOR = "groundskeeper", "hudi_rescale", "overwrite", "floor"
# `again` expands the result of our first expansion once more; `after_hudi` is our expansion of the result of Hudi's
# rescale. Both tables have the same rows in as many files, so `again` costs more only if we have written worse files.
AGAIN, AFTER_HUDI = "again", "after_hudi"
# A plain copy of the files that our first expansion wrote. The floor of the original files would be too low: rows that
# were split into buckets have fewer similar neighbours, and compress less well.
FLOOR_OF_OUTPUT = "floor_of_output"
REWRITES: dict[str, Callable[[SparkSession, Path, Shape, int, str], dict[str, float]]] = {
    OURS: variants.ours,
    HUDI: variants.hudi_rescale,
    OVERWRITE: variants.overwrite,
}
WARM_UP_ROWS, WARM_UPS = 40_000, 10  # A worker is a long-lived process.


@dataclass
class Measured:
    """The cost of one variant with one codec. Sizes are in bytes; `steps` are the seconds of our job's steps."""

    variant: str
    codec: str
    cost: Cost
    output_bytes: int
    steps: dict[str, float]

    @property
    def key(self) -> str:
        return f"{self.variant}_{self.codec}"


class Bench:
    """One table, and the variants that work on copies of it."""

    def __init__(self, spark: SparkSession, folder: Path, shape: Shape, factor: int) -> None:
        self._spark, self._folder, self._shape, self._factor = spark, folder, shape, factor
        self._original = folder / shape.name
        if not self._original.exists():
            # An interrupted run leaves no half-written table to the next one.
            being_made = trips.make(spark, folder / f"{shape.name}.part", shape)
            being_made.rename(self._original)
        self._before = trips.fingerprint(spark, self._original)
        self.input_bytes = trips.size_of_files(self._original)

    def rewrite(self, variant: str, codec: str, *, checked: bool = True) -> Measured:
        base = trips.fresh_copy(self._original, self._folder / f"{variant}_{codec}")
        try:
            with measured() as cost:
                steps = REWRITES[variant](self._spark, base, self._shape, self._factor, codec)
            if checked:
                self._check(variant, base)
            size = trips.size_of_files(base, of_instant=trips.latest_instant(base))
            if variant in (OURS, HUDI):
                shutil.rmtree(self._expanded(codec, variant), ignore_errors=True)
                base.rename(self._expanded(codec, variant))
        finally:
            shutil.rmtree(base, ignore_errors=True)
        return Measured(variant, codec, cost, size, steps)

    def floor(self, floor: variants.Floor, variant: str, codec: str) -> Measured:
        """Copies the table's files, or those of our last expansion."""
        base = self._original if variant == FLOOR else self._expanded(codec)
        files = sorted(base.glob("*/*.parquet" if variant == FLOOR else f"*/*_{trips.latest_instant(base)}.parquet"))
        target = self._folder / f"{variant}_{codec}"
        os.sync()
        try:
            with measured() as cost:
                floor.run(files, target, None if codec == self._shape.codec else codec)
            size = sum(path.stat().st_size for path in target.iterdir())
        finally:
            shutil.rmtree(target)
        return Measured(variant, codec, cost, size, {})

    def again(self, variant: str, codec: str) -> Measured:
        """Expands our last result once more, or Hudi's."""
        by = OURS if variant == AGAIN else HUDI
        before = self._before if by == OURS else trips.fingerprint(self._spark, self._expanded(codec, by))
        base = trips.fresh_copy(self._expanded(codec, by), self._folder / f"{variant}_{codec}")
        shape = replace(self._shape, buckets=self._shape.buckets * self._factor, codec=codec)
        try:
            with measured() as cost:
                steps = variants.ours(self._spark, base, shape, self._factor, codec)
            if (after := trips.fingerprint(self._spark, base)) != before:
                raise AssertionError(f"{variant} changed the rows: {before} became {after}")
            size = trips.size_of_files(base, of_instant=trips.latest_instant(base))
        finally:
            shutil.rmtree(base, ignore_errors=True)
        return Measured(variant, codec, cost, size, steps)

    def _expanded(self, codec: str, by: str = OURS) -> Path:
        return self._folder / f"expanded_by_{by}_{codec}"

    def _check(self, variant: str, base: Path) -> None:
        """Raises AssertionError unless the table still has its rows, and after our expansion each one in its bucket."""
        after = trips.fingerprint(self._spark, base)
        expected: Fingerprint = self._before if variant == OURS else replace(self._before, meta=after.meta)
        if after != expected:
            raise AssertionError(f"{variant} changed the rows: {expected} became {after}")
        files = {path.name[:8] for path in base.glob(f"*/*_{trips.latest_instant(base)}.parquet")}
        if len(files) != self._shape.buckets * self._factor:
            raise AssertionError(f"{variant} left {len(files)} buckets")
        if variant == OURS:
            index = BucketIndex(self._shape.buckets, variants.INDEX_FIELDS)
            plan = WorkOrder("benchmark", 1, JobKind.AUDIT, Table(str(base), "trips", index))
            audit = RUN[plan.kind](HudiTable(Jvm(self._spark), plan.table), typed(plan), JobContext())
            found = audit.details.to_json()
            if not found["clean"]:
                raise AssertionError(f"the audit found {found}")


def compare(spark: SparkSession, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measures every variant `options.repeat` times in turn and prints the table; returns what `--json` prints."""
    shape = shape_of(options, options.rows)
    _warm_up(spark, folder, shape, options)
    bench = Bench(spark, folder, shape, options.factor)
    floor = variants.Floor(os.cpu_count() or 1)
    best: dict[str, Measured] = {}
    try:
        for number in range(options.repeat):
            for variant, codec in _variants_to_run(options):
                if variant in REWRITES:
                    found = bench.rewrite(variant, codec, checked=number == 0 or variant == OURS)
                else:
                    found = (
                        bench.again(variant, codec)
                        if variant in (AGAIN, AFTER_HUDI)
                        else bench.floor(floor, variant, codec)
                    )
                _tell(found, bench.input_bytes, os.getloadavg()[0])
                earlier = best.get(found.key)
                if earlier is None or found.cost.seconds < earlier.cost.seconds:
                    best[found.key] = found
    finally:
        floor.close()
    return _summary(best, bench.input_bytes, shape, options)


def sizes(spark: SparkSession, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Expands tables of several sizes, in million rows; prints and returns the seconds for each million."""
    millions = [float(each) for each in options.sizes.split(",")]
    _warm_up(spark, folder, shape_of(options, options.rows), options)
    found: list[dict[str, float]] = []
    print(f"{'rows':>12} {'seconds':>9} {'s / million':>12} {'CPU s / million':>16}")
    for million in millions:
        shape = shape_of(options, int(million * 1_000_000))
        if options.files_grow:
            shape = replace(shape, partitions=max(1, round(options.partitions * shape.rows / options.rows)))
        bench = Bench(spark, folder, shape, options.factor)
        runs = [bench.rewrite(OURS, options.codec, checked=number == 0) for number in range(options.repeat)]
        cost = min((run.cost for run in runs), key=lambda each: each.seconds)
        per_million, cpu = cost.seconds / million, cost.cpu_seconds / million
        print(f"{int(million * 1e6):>12,} {cost.seconds:>9.2f} {per_million:>12.2f} {cpu:>16.2f}", flush=True)
        row = {"rows": million * 1e6, "seconds": cost.seconds, "per_million": per_million, "cpu_per_million": cpu}
        found.append({key: round(value, 3) for key, value in row.items()})
    return {"sizes": found}


def shape_of(options: argparse.Namespace, rows: int) -> Shape:
    return Shape(rows, options.columns, options.buckets, options.partitions, options.codec, options.column_stats)


def _variants_to_run(options: argparse.Namespace) -> list[tuple[str, str]]:
    codecs = list(dict.fromkeys([options.codec, *(each for each in options.also.split(",") if each)]))
    wanted = [
        (variant, codec) for codec in codecs for variant in (OURS, HUDI, FLOOR, FLOOR_OF_OUTPUT, AFTER_HUDI, AGAIN)
    ]
    wanted.insert(2, (OVERWRITE, options.codec))
    only = set(options.only.split(",")) if options.only else set()
    return [each for each in wanted if not only or each[0] in only]


def _warm_up(spark: SparkSession, folder: Path, shape: Shape, options: argparse.Namespace) -> None:
    """Loads classes and lets the JVM compile the code of all variants."""
    small = Bench(spark, folder, replace(shape, rows=WARM_UP_ROWS), options.factor)
    for variant in dict.fromkeys(variant for variant, _ in _variants_to_run(options) if variant in REWRITES):
        for _ in range(WARM_UPS):
            small.rewrite(variant, options.codec)


def _tell(found: Measured, input_bytes: int, load: float) -> None:
    cost = found.cost
    speed = input_bytes / 1e6 / cost.seconds
    print(
        f"{found.variant:>14} {found.codec:>6} {cost.seconds:8.2f} s {cost.cpu_seconds:8.2f} CPU s {speed:8.1f} MB/s "
        f"{found.output_bytes / 1e6:8.1f} MB out; CPU s, peak MB: "
        + ", ".join(f"{role} {cpu:.1f} {cost.peak_bytes.get(role, 0) / 1e6:.0f}" for role, cpu in cost.cpu.items())
        + f", load {load:.1f} {found.steps or ''}",
        flush=True,
    )


def _summary(best: dict[str, Measured], input_bytes: int, shape: Shape, options: argparse.Namespace) -> dict[str, Any]:
    summary: dict[str, Any] = {"table": asdict(shape), "factor": options.factor, "input_bytes": input_bytes}
    summary |= {"cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1)}
    summary["runs"] = {
        key: {
            "seconds": round(found.cost.seconds, 3),
            "cpu_seconds": round(found.cost.cpu_seconds, 2),
            "cpu_seconds_by_role": {role: round(cpu, 2) for role, cpu in found.cost.cpu.items()},
            "mb_per_second": round(input_bytes / 1e6 / found.cost.seconds, 1),
            "output_bytes": found.output_bytes,
            "peak_bytes": found.cost.peak_bytes,
            "steps": found.steps,
        }
        for key, found in best.items()
    }
    for codec in dict.fromkeys(found.codec for found in best.values()):
        ratios = _ratios(best, codec)
        summary |= ratios if codec == options.codec else {f"{name}_{codec}": value for name, value in ratios.items()}
    print("\nfastest of", options.repeat)
    for found in best.values():
        _tell(found, input_bytes, os.getloadavg()[0])
    for name, value in summary.items():
        if isinstance(value, float):
            print(f"{name:>28} {value:6.2f}")
    return summary


def _ratios(best: dict[str, Measured], codec: str) -> dict[str, float]:
    """Returns our speed relative to the other variants, our CPU relative to the floor, and our output's size relative
    to Hudi's."""
    mine, hudi = best.get(f"{OURS}_{codec}"), best.get(f"{HUDI}_{codec}")
    rewrite, floor = best.get(f"{OVERWRITE}_{codec}"), best.get(f"{FLOOR}_{codec}")
    ratios: dict[str, float] = {}
    if mine and hudi:
        ratios["vs_hudi_rescale"] = hudi.cost.seconds / mine.cost.seconds
        ratios["cpu_vs_hudi_rescale"] = hudi.cost.cpu_seconds / mine.cost.cpu_seconds
        ratios["output_size_vs_hudi"] = mine.output_bytes / hudi.output_bytes
    if mine and rewrite:
        ratios["vs_overwrite"] = rewrite.cost.seconds / mine.cost.seconds
    if mine and floor:
        ratios["cpu_vs_floor"] = mine.cost.cpu_seconds / floor.cost.cpu_seconds
        ratios["seconds_vs_floor"] = mine.cost.seconds / floor.cost.seconds
    if mine and (copy := best.get(f"{FLOOR_OF_OUTPUT}_{codec}")):
        ratios["cpu_vs_floor_of_output"] = mine.cost.cpu_seconds / copy.cost.cpu_seconds
        if again := best.get(f"{AGAIN}_{codec}"):
            ratios["again_cpu_vs_floor"] = again.cost.cpu_seconds / copy.cost.cpu_seconds
    if (again := best.get(f"{AGAIN}_{codec}")) and (after_hudi := best.get(f"{AFTER_HUDI}_{codec}")):
        ratios["again_cpu_vs_after_hudi"] = again.cost.cpu_seconds / after_hudi.cost.cpu_seconds
    return {name: round(value, 3) for name, value in ratios.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=15, help="data columns, without Hudi's five meta columns")
    parser.add_argument("--buckets", type=int, default=8, help="before the expansion")
    parser.add_argument("--factor", type=int, default=2)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--codec", default="gzip", help="of the table, and of what is written")
    parser.add_argument("--also", default="zstd", help="further codecs to write, separated by commas")
    parser.add_argument(
        "--only",
        default="",
        help=f"variants, separated by commas: {', '.join([*REWRITES, FLOOR, FLOOR_OF_OUTPUT, AFTER_HUDI, AGAIN])}",
    )
    parser.add_argument("--column-stats", action="store_true", help="the metadata table has column statistics")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--sizes", default="", help="million rows, separated by commas: measures only ours")
    parser.add_argument(
        "--files-grow",
        action="store_true",
        help="with --sizes: --partitions are those of --rows, a larger table has more of them",
    )
    parser.add_argument("--folder", type=Path, help="keeps the table that is made here, for other runs")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    parser.add_argument("--chart", type=Path, help="draws the seconds as an SVG")
    return parser.parse_args()


def main() -> None:
    options = _options()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="expansion-"))
    spark = variants.session()
    try:
        result = (sizes if options.sizes else compare)(spark, options, folder.resolve())
    finally:
        spark.stop()
        if not options.folder:
            shutil.rmtree(folder)
    if options.chart and not options.sizes:
        options.chart.write_text(chart.drawn(result))
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
