"""Compares compaction by Arrow with Hudi's own executor, and with the minimum cost of writing the output.

    python tests/benchmarks/compaction.py [--json]
    python tests/benchmarks/compaction.py --updated 20 --logs 1 --repeat 3

Every compaction is a whole job on a fresh copy of one table, in one run and one warm Spark session; only figures of the
same run can be compared. The floor is the least possible cost of the output: pyarrow copies the files that our
compaction wrote. Every result is checked: its rows equal those that Hudi's readers returned before the compaction.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pyspark.sql import functions as F  # noqa: N812

from jobs.contract import BucketIndex, JobKind, Outcome, Table, WorkOrder
from jobs.dataplane.parquet_layout import DEFAULT_CODEC
from jobs.hudi.jvm import Jvm
from jobs.hudi.table import HudiTable
from jobs.kinds.registry import typed
from jobs.worker.attempt import RUN
from tests.benchmarks import trips, variants
from tests.benchmarks.process_tree import Cost, measured
from tests.benchmarks.trips import Shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HUDI, ARROW, FLOOR = "hudi", "arrow", "floor"
ZSTD = "zstd"
WARM_UP_ROWS, WARM_UPS = 40_000, 4
PREPARED = "tests.benchmarks.prepared_expansion"


@dataclass(frozen=True)
class Case:
    """`updated` percent of the rows have a newer version, in `logs` log files of each file slice. An update changes
    only the ordering field; with `all_columns`, everything except the key."""

    updated: int
    logs: int
    all_columns: bool = False

    def __str__(self) -> str:
        return f"{self.updated}% in {self.logs}"


@dataclass
class Measured:
    """The cost of one compaction, or of the floor, which only writes its output. `steps` are seconds of the job's
    steps."""

    case: Case
    variant: str
    of_table: str  # The codec that the table had before.
    codec: str
    cost: Cost
    output_bytes: int
    steps: dict[str, float]

    @property
    def key(self) -> str:
        return f"{self.case.updated}_{self.case.logs}_{self.variant}_{self.of_table}_to_{self.codec}"


class Bench:
    """One table with logs, whose copies are compacted."""

    def __init__(self, spark: SparkSession, folder: Path, shape: Shape, case: Case) -> None:
        self._spark, self._folder, self._shape, self._case = spark, folder, shape, case
        changed = "_all" if case.all_columns else ""
        self._original = folder / f"{shape.name}_{case.updated}_{case.logs}{changed}"
        if not self._original.exists():
            being_made = folder / f"{self._original.name}.part"
            shutil.rmtree(being_made, ignore_errors=True)
            _make(spark, being_made, shape, case)
            being_made.rename(self._original)
        self._before = trips.fingerprint(spark, self._original)

    def compact(self, engine: str, codec: str, *, checked: bool = True) -> Measured:
        base = trips.fresh_copy(self._original, self._folder / f"{engine}_{codec}")
        try:
            with measured() as cost:
                steps = _compact(self._spark, base, self._shape, engine, codec)
            if checked and (after := trips.fingerprint(self._spark, base)) != self._before:
                raise AssertionError(f"{engine} changed the rows: {self._before} became {after}")
            size = trips.size_of_files(base, of_instant=trips.latest_instant(base))
            if engine == ARROW:
                shutil.rmtree(self._compacted(codec), ignore_errors=True)
                base.rename(self._compacted(codec))
        finally:
            shutil.rmtree(base, ignore_errors=True)
        return Measured(self._case, engine, self._shape.codec, codec, cost, size, steps)

    def floor(self, floor: variants.Floor, codec: str) -> Measured:
        """Copies the files that our last compaction wrote."""
        base = self._compacted(codec)
        files = sorted(base.glob(f"*/*_{trips.latest_instant(base)}.parquet"))
        target = self._folder / f"floor_{codec}"
        os.sync()
        try:
            with measured() as cost:
                floor.run(files, target, None)
            size = sum(path.stat().st_size for path in target.iterdir())
        finally:
            shutil.rmtree(target)
        return Measured(self._case, FLOOR, self._shape.codec, codec, cost, size, {})

    def _compacted(self, codec: str) -> Path:
        return self._folder / f"compacted_{codec}"


def _make(spark: SparkSession, base: Path, shape: Shape, case: Case) -> None:
    """Writes the updates: each log file updates another part of the updated rows, spread over the whole table."""
    options = trips.table_options(base, shape) | {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    rows = trips.rows(spark, shape)
    first = options | {"hoodie.datasource.write.operation": "bulk_insert"}
    rows.write.format("hudi").options(**first).mode("overwrite").save(str(base))
    part = F.expr(f"pmod(xxhash64(id, 99), {100 * case.logs})")
    newer = trips.rows(spark, shape, drawn_from=shape.rows) if case.all_columns else rows
    for number in range(case.logs):
        first_part = case.updated * number
        some = newer.where((part >= first_part) & (part < first_part + case.updated)).withColumn("ts", F.col("ts") + 1)
        some.write.format("hudi").options(**options).mode("append").save(str(base))


def _compact(spark: SparkSession, base: Path, shape: Shape, engine: str, codec: str) -> dict[str, float]:
    """Runs the job as a worker runs it, and returns the seconds of its steps."""
    declared = Table(
        str(base), "trips", BucketIndex(shape.buckets, variants.INDEX_FIELDS), writers_hudi_version="1.2.0"
    )
    # A requested codec may have another level than the table's own. Hudi's executor follows the writer's options, not
    # the files, so it would write gzip.
    is_asked = codec != shape.codec or (engine == HUDI and codec != DEFAULT_CODEC)
    params = {"engine": engine} | ({"codec": codec} if is_asked else {})
    steps = variants.Steps()
    steps.step("opening")
    order = WorkOrder("benchmark", 1, JobKind.COMPACTION, declared, params)
    result = RUN[order.kind](HudiTable(Jvm(spark), declared), typed(order), steps)
    if result.outcome is not Outcome.SUCCEEDED or result.details.to_json()["engines"][0]["engine"] != engine:
        raise RuntimeError(f"the compaction ended as {result}")
    return steps.seconds()


def compare(spark: SparkSession, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measures every variant `options.repeat` times in turn, and returns what `--json` prints."""
    shape = Shape(options.rows, options.columns, options.buckets, options.partitions, options.codec)
    # Hudi's executor writes the table's codec, as it would without Groundskeeper.
    codecs = list(dict.fromkeys([options.codec, ZSTD]))
    kinds = [(shape, codec) for codec in codecs] + [(replace(shape, codec=ZSTD), ZSTD) for _ in codecs[1:]]
    small = Bench(spark, folder, Shape(WARM_UP_ROWS, shape.columns, 2, 1, shape.codec), Case(20, 2))
    for engine in (HUDI, ARROW) * WARM_UPS:
        small.compact(engine, options.codec)
    floor = variants.Floor(os.cpu_count() or 1)
    best: dict[str, Measured] = {}
    try:
        for case in _cases(options):
            benches = {each: Bench(spark, folder, each, case) for each, _ in kinds}
            for number in range(options.repeat):
                for each, codec in kinds:
                    bench = benches[each]
                    engines = (HUDI, ARROW) if codec == each.codec else (ARROW,)
                    runs = [bench.compact(engine, codec, checked=number == 0) for engine in engines]
                    for found in (*runs, bench.floor(floor, codec)):
                        _tell(found)
                        earlier = best.get(found.key)
                        if earlier is None or found.cost.seconds < earlier.cost.seconds:
                            best[found.key] = found
    finally:
        floor.close()
    details = {
        key: {**asdict(found.cost), "output_bytes": found.output_bytes, "steps": found.steps}
        for key, found in best.items()
    }
    detailed = {"table": asdict(shape), "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 1), "runs": details}
    return (
        detailed | _ratios(best, options.codec) | {"prepared_expansion_cpu_vs_copy": _prepared(spark, folder, options)}
    )


def _cases(options: argparse.Namespace) -> list[Case]:
    updated = [int(each) for each in options.updated.split(",")]
    logs = [int(each) for each in options.logs.split(",")]
    return [Case(percent, number, options.all_columns) for percent in updated for number in logs]


def _ratios(best: dict[str, Measured], codec: str) -> dict[str, float]:
    """Returns the speed relative to Hudi's executor over all cases together, and our cost relative to the floor."""

    def total(variant: str, of_table: str, written: str, *, cpu: bool = False) -> float:
        wanted = (variant, of_table, written)
        costs = [each.cost for each in best.values() if (each.variant, each.of_table, each.codec) == wanted]
        return sum(cost.cpu_seconds if cpu else cost.seconds for cost in costs)

    ours = [each for each in best.values() if each.variant == ARROW]
    ratios = {
        "vs_hudi": total(HUDI, codec, codec) / total(ARROW, codec, codec),
        "vs_hudi_zstd": total(HUDI, codec, codec) / total(ARROW, codec, ZSTD),
        "vs_hudi_zstd_to_zstd": total(HUDI, ZSTD, ZSTD) / total(ARROW, ZSTD, ZSTD),
        "cpu_vs_hudi": total(HUDI, codec, codec, cpu=True) / total(ARROW, codec, codec, cpu=True),
        "cpu_vs_floor": total(ARROW, codec, codec, cpu=True) / total(FLOOR, codec, codec, cpu=True),
        "peak_mib": max(each.cost.peak_bytes.get("worker", 0) for each in ours) / 2**20,
    }
    for name, value in ratios.items():
        print(f"{name:>20} {value:8.2f}")
    return {name: round(value, 3) for name, value in ratios.items()}


def _prepared(spark: SparkSession, folder: Path, options: argparse.Namespace) -> float | None:
    """Measures the expansion of prepared tables by its own benchmark; None if that module does not exist."""
    if options.without_expansion or importlib.util.find_spec(PREPARED) is None:
        return None
    measure = importlib.import_module(PREPARED).prepared_expansion
    return float(measure(spark, folder, rows=options.rows, codec=options.codec, repeat=options.repeat))


def _tell(found: Measured) -> None:
    cost = found.cost
    print(
        f"{found.case!s:>10} {found.variant:>6} {found.of_table:>5} to {found.codec:<5} {cost.seconds:8.2f} s"
        f" {cost.cpu_seconds:8.2f} CPU s"
        f" {found.output_bytes / 1e6:8.1f} MB out; CPU s, peak MB: "
        + ", ".join(f"{role} {cpu:.1f} {cost.peak_bytes.get(role, 0) / 1e6:.0f}" for role, cpu in cost.cpu.items())
        + f", load {os.getloadavg()[0]:.1f} {found.steps or ''}",
        flush=True,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=15, help="data columns, without Hudi's five meta columns")
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument(
        "--codec", default="gzip", help="of the table, and of what is written; zstd is measured as well"
    )
    parser.add_argument("--updated", default="1,5,20", help="percent of the rows, separated by commas")
    parser.add_argument("--logs", default="1,5,20", help="log files of a file slice, separated by commas")
    parser.add_argument("--all-columns", action="store_true", help="updates change all columns but the key, not one")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keeps the tables that are made here, for other runs")
    parser.add_argument("--without-expansion", action="store_true", help="leaves out the expansion of prepared tables")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    return parser.parse_args()


def main() -> None:
    options = _options()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="compaction-"))
    spark = variants.session()
    try:
        result = compare(spark, options, folder.resolve())
    finally:
        spark.stop()
        if not options.folder:
            shutil.rmtree(folder)
    if options.json:
        print(json.dumps(result))
    wanted = (
        "vs_hudi",
        "vs_hudi_zstd",
        "vs_hudi_zstd_to_zstd",
        "cpu_vs_floor",
        "peak_mib",
        "prepared_expansion_cpu_vs_copy",
    )
    print(json.dumps({name: result[name] for name in wanted}))


if __name__ == "__main__":
    main()
