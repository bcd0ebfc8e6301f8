"""Measures the cost of a job on a small table: our warm worker compared with Hudi's own procedures in one warm session.

    python tests/benchmarks/fleet.py [--tables 12] [--kinds compaction,cleaning] [--shapes a,b] [--slots 1,2] [--json]
    python tests/benchmarks/fleet.py --full

Each kind of job runs once on each of `--tables` copies of small tables, of all `--shapes` in turn. All of it is one
run, after `--warm-up` jobs of that kind on either side. Our side is the whole product: a daemon with its service and a
worker with this number of slots; the CPU time of both counts. Hudi's side calls the procedures one after the other in a
session with the same memory and cores. Hudi cannot cluster a table with a bucket index, so it gets the same rows in a
table without one. Instead of an expansion it writes all rows into the new buckets (`insert_overwrite_table`), with the
same threads. `--fresh N` also starts a `spark-submit` for each of the first N compactions, as `start.py` does.

Only ratios within one run mean anything; on a machine with other work, only ratios of CPU seconds do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.hudi.session import start_session
from tests.acceptance.daemon import ENDED, Daemon
from tests.benchmarks import process_tree, start, trips
from tests.benchmarks.process_tree import Cost, measured
from tests.integration.tables import writer_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPACTION, CLEANING, CLUSTERING, EXPANSION = "compaction", "cleaning", "clustering", "bucket_expansion"
KINDS = (COMPACTION, CLEANING, CLUSTERING, EXPANSION)
PARAMS: dict[str, dict[str, Any]] = {
    CLEANING: {"retain": 1},
    CLUSTERING: {"sort_by": ["city"]},
    # The writers are stopped, so the shortest watch is enough.
    EXPANSION: {"factor": 2, "settle_seconds": 1},
}
LOGS = 3
# Hudi's session has Java's default compiler options; our workers compile later.
JAVAS_DEFAULTS = (
    "-XX:Tier4InvocationThreshold=5000 -XX:Tier4MinInvocationThreshold=600 -XX:Tier4CompileThreshold=15000"
    " -XX:Tier4BackEdgeThreshold=40000"
)
MEMORY = "2g"


@dataclass(frozen=True)
class Small:
    """The shape of a small table: `rows` rows in `buckets` buckets of each of `partitions` partitions; each log changes
    a tenth of the rows."""

    rows: int
    buckets: int
    partitions: int

    @property
    def trips(self) -> trips.Shape:
        return trips.Shape(self.rows, 15, self.buckets, self.partitions, "gzip")


SHAPES = {
    "a": Small(30_000, 4, 1),  # 4 file slices, 6 MB
    "b": Small(4_000, 1, 1),  # 1 file slice of 1 MB
    "c": Small(10_000, 5, 10),  # 50 file slices of 100 KB, and their Bloom filters
}


@dataclass(frozen=True)
class Figures:
    """The figures of one kind of job on one side. `cpu_seconds` and `seconds` are averages per job; `megabytes` is the
    memory of all processes at the beginning and at the end."""

    kind: str
    side: str
    jobs: int
    seconds: float
    cpu_seconds: float
    cpu: dict[str, float]
    jobs_an_hour: int
    megabytes: tuple[int, int]
    load: float

    @classmethod
    def of(cls, kind: str, side: str, jobs: int, cost: Cost, megabytes: tuple[int, int]) -> Figures:
        cpu = {role: round(seconds / jobs, 3) for role, seconds in cost.cpu.items()}
        found = cls(
            kind,
            side,
            jobs,
            round(cost.seconds / jobs, 3),
            round(cost.cpu_seconds / jobs, 3),
            cpu,
            round(3600 * jobs / cost.seconds),
            megabytes,
            round(os.getloadavg()[0], 1),
        )
        print(
            f"{kind:>17} {side:>8}: {found.seconds:7.3f} s {found.cpu_seconds:7.3f} CPU s a job {cpu},"
            f" {found.jobs_an_hour} jobs an hour, {megabytes[0]} to {megabytes[1]} MB, load {found.load}",
            flush=True,
        )
        return found


class Fleet:
    """The tables of all shapes. Each is written once, and copied for each job."""

    def __init__(self, spark: SparkSession, folder: Path, shapes: list[str]) -> None:
        self._spark, self._folder, self._shapes = spark, folder, shapes

    def copies(self, kind: str, place: Path, count: int, *, has_index: bool = True) -> list[tuple[Small, Path]]:
        """Returns copies of the tables for jobs of this kind, below `place`."""
        shutil.rmtree(place, ignore_errors=True)
        found = []
        for number in range(count):
            name = self._shapes[number % len(self._shapes)]
            target = place / f"{name}{number}"
            shutil.copytree(self._model(name, is_compacted=kind == CLEANING, has_index=has_index), target)
            found.append((SHAPES[name], target))
        os.sync()
        return found

    def _model(self, name: str, *, is_compacted: bool, has_index: bool) -> Path:
        shape = SHAPES[name]
        model = self._folder / f"{name}{'_compacted' if is_compacted else ''}{'' if has_index else '_no_index'}"
        if model.exists():
            return model
        being_made = model.with_suffix(".part")
        shutil.rmtree(being_made, ignore_errors=True)
        if is_compacted:
            shutil.copytree(self._model(name, is_compacted=False, has_index=has_index), being_made)
            compact(self._spark, being_made)
            self._update(being_made, shape, 0, has_index=has_index)
        else:
            rows = trips.rows(self._spark, shape.trips)
            first = options(being_made, shape, has_index=has_index) | {
                "hoodie.datasource.write.operation": "bulk_insert"
            }
            rows.write.format("hudi").options(**first).mode("overwrite").save(str(being_made))
            for number in range(LOGS):
                self._update(being_made, shape, number, has_index=has_index)
        being_made.rename(model)
        return model

    def _update(self, base: Path, shape: Small, number: int, *, has_index: bool) -> None:
        rows = trips.rows(self._spark, shape.trips).where(f"pmod(xxhash64(id, 99), 10) = {number}")
        given = options(base, shape, has_index=has_index)
        rows.withColumn("ts", F.col("ts") + 1).write.format("hudi").options(**given).mode("append").save(str(base))


def options(base: Path, shape: Small, *, has_index: bool = True) -> dict[str, str]:
    """The options of the tables' writer."""
    more = {
        "hoodie.table.name": "trips",
        "hoodie.parquet.compression.codec": "gzip",
        "hoodie.bulkinsert.shuffle.parallelism": str(shape.buckets * shape.partitions),
        **trips.HUDIS_FILTERS,
    }
    return writer_options(base, num_buckets=shape.buckets if has_index else None) | more


# -- our side


def ours(fleet: Fleet, folder: Path, kinds: list[str], slots: int, tables: int, warm_up: int) -> list[Figures]:
    """Runs the jobs of each kind, which are all submitted at once."""
    settings = {"slots": str(slots), "spare_slots": "0", "workers": "1", "driver_memory": MEMORY}
    with Daemon(folder / f"daemon{slots}", **settings) as daemon:
        daemon.wait_for_worker()
        return [_of_kind(daemon, fleet, folder / "ours", kind, slots, tables, warm_up) for kind in kinds]


def _of_kind(daemon: Daemon, fleet: Fleet, place: Path, kind: str, slots: int, tables: int, warm_up: int) -> Figures:
    place = place.with_name(f"ours_{kind}{slots}")
    ids = []
    for shape, base in fleet.copies(kind, place, tables + warm_up):
        ids.append(daemon.register(base, shape.buckets, writers={"stopped": True}))
    _run(daemon, kind, ids[:warm_up])
    pid = daemon.process.pid
    before = process_tree.memory(pid)
    with measured(pid) as cost:
        _run(daemon, kind, ids[warm_up:])
    found = Figures.of(kind, f"{slots} slots", tables, cost, (before >> 20, process_tree.memory(pid) >> 20))
    # The service would look for tables that are gone while it serves the jobs of the next kind.
    for each in ids:
        daemon.unregister(each)
    shutil.rmtree(place)
    return found


def _run(daemon: Daemon, kind: str, ids: list[str]) -> None:
    jobs = [daemon.submit(each, kind, **PARAMS.get(kind, {})) for each in ids]
    for each in jobs:
        # The service's answers count, so one call waits for each job.
        while (job := daemon.job(each, wait_seconds=20))["state"] not in ENDED:
            pass
        assert job["state"] == "succeeded", job
        assert not job["result"].get("nothing_to_do"), job


# -- Hudi's side


def hudis(spark: SparkSession, fleet: Fleet, folder: Path, kind: str, tables: int, warm_up: int) -> Figures:
    place = folder / f"hudi_{kind}"
    copies = fleet.copies(kind, place, tables + warm_up, has_index=kind != CLUSTERING)
    for number, (shape, base) in enumerate(copies[:warm_up]):
        _call(spark, kind, shape, base, number)
    pid = os.getpid()
    before = process_tree.memory(pid)
    with measured() as cost:
        for number, (shape, base) in enumerate(copies[warm_up:], warm_up):
            _call(spark, kind, shape, base, number)
    found = Figures.of(kind, "hudi", tables, cost, (before >> 20, process_tree.memory(pid) >> 20))
    shutil.rmtree(place)
    return found


def _call(spark: SparkSession, kind: str, shape: Small, base: Path, number: int) -> None:
    match kind:
        case "compaction":
            compact(spark, base)
        case "bucket_expansion":
            given = options(base, shape) | {
                "hoodie.datasource.write.operation": "insert_overwrite_table",
                "hoodie.bucket.index.num.buckets": str(shape.buckets * 2),
            }
            frame = spark.read.format("hudi").load(str(base))
            data = frame.select(*(name for name in frame.columns if not name.startswith("_hoodie_")))
            data.write.format("hudi").options(**given).mode("append").save(str(base))
        case _:
            table = f"small_{kind}_{number}"
            spark.sql(f"create table {table} using hudi location '{base}'")
            call = "run_clean(table => '{}', retain_commits => 1, options => '{}')"
            if kind == CLUSTERING:
                call = "run_clustering(table => '{}', op => 'scheduleAndExecute', order => 'city', options => '{}')"
            assert spark.sql(f"call {call.format(table, start.NO_NEW_INDEX)}").collect(), (
                f"{kind} of {base} did nothing"
            )
            spark.sql(f"drop table {table}")


def compact(spark: SparkSession, base: Path) -> None:
    call = f"call run_compaction(op => 'scheduleAndExecute', path => '{base}', options => '{start.OPTIONS}')"
    assert spark.sql(call).collect(), f"nothing was compacted in {base}"


def fresh(fleet: Fleet, folder: Path, tables: int) -> Figures:
    """Runs a `spark-submit` for each compaction."""
    copies = fleet.copies(COMPACTION, folder / "fresh", tables)
    script = folder / "compact.py"
    idle = process_tree.memory(os.getpid())
    with measured() as cost:
        for _, base in copies:
            script.write_text(start.SCRIPT.format(base=base, options=start.OPTIONS))
            start.submit(script)
    return Figures.of(COMPACTION, "submit", tables, cost, (idle >> 20, process_tree.memory(os.getpid()) >> 20))


def run(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    kinds = given.kinds.split(",")
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": JAVAS_DEFAULTS}
    spark = start_session(master="local[2,4]", driver_memory=MEMORY, conf=conf)
    fleet = Fleet(spark, given.folder or folder / "models", given.shapes.split(","))
    found = [hudis(spark, fleet, folder, kind, given.tables, given.warm_up) for kind in kinds]
    for slots in map(int, given.slots.split(",")):
        found += ours(fleet, folder, kinds, slots, given.tables, given.warm_up)
    if given.fresh:
        found.append(fresh(fleet, folder, given.fresh))
    spark.stop()
    ratios = {}
    for kind in kinds:
        theirs, *others = [each for each in found if each.kind == kind]
        for each in others:
            side = each.side.replace(" ", "_")
            ratios[f"{kind}_{side}"] = {
                "cpu": round(theirs.cpu_seconds / each.cpu_seconds, 2),
                "time": round(theirs.seconds / each.seconds, 2),
            }
    return {"hudi_vs": ratios, "figures": [asdict(each) for each in found]}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=12)
    parser.add_argument("--warm-up", type=int, default=12)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--slots", default="1")
    parser.add_argument("--fresh", type=int, default=0, help="compactions by a `spark-submit` of their own")
    parser.add_argument("--full", action="store_true", help="200 tables, 1, 2 and 4 slots, 5 fresh ones: takes an hour")
    parser.add_argument("--folder", type=Path, help="keeps the tables that are copied, for other runs")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    given = parser.parse_args()
    if given.full:
        given.tables, given.warm_up, given.slots, given.fresh = 200, 30, "1,2,4", 5
    return given


def main() -> None:
    given = _options()
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        result = run(given, Path(folder).resolve())
    for name, ratio in result["hudi_vs"].items():
        print(f"{name:>26}: Hudi {ratio['cpu']:.2f} times the CPU, {ratio['time']:.2f} times the time")
    if given.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
