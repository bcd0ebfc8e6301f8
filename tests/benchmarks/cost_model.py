"""Measures how well the cost model expects the cost of jobs on tables that it does not know.

    python tests/benchmarks/cost_model.py [--tables 50] [--warm-up 8] [--shapes b1,f4] [--keep jobs.json] [--json]
    python tests/benchmarks/cost_model.py --read jobs.json

Each table, a copy of one of several shapes, gets a compaction, a cleaning, a clustering and an expansion, one job after
the other, by a daemon with a worker of one slot: 200 jobs. The model learns from the attempts as the service has stored
them, and from the same ones with their CPU seconds in place of their seconds. Errors are those for tables held out: a
fifth of the tables of each shape, or all tables of a shape, whose size is then new to the model.

`of_tables` and `of_shapes` are medians of the absolute errors, as shares of what a job took. On a machine with other
work only CPU seconds mean anything.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.session import start_session
from jobs.kinds.results import Work
from service.queue.cost import Ended
from service.queue.cost_model import CostModel
from tests.acceptance.daemon import Daemon
from tests.benchmarks import fleet
from tests.benchmarks.process_tree import measured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHAPES = {
    "b1": fleet.Small(4_000, 1, 1),
    "b4": fleet.Small(16_000, 1, 1),
    "f2": fleet.Small(8_000, 2, 1),
    "f4": fleet.Small(30_000, 4, 1),
    "f8": fleet.Small(24_000, 8, 1),
    "w4": fleet.Small(90_000, 4, 1),
    "p3": fleet.Small(9_000, 2, 3),
    "p6": fleet.Small(18_000, 2, 6),
}
FOLDS = 5


@dataclass(frozen=True)
class Measured:
    """A job: what it worked on, and what it took. `number` is that of its table among those of its shape."""

    shape: str
    number: int
    kind: str
    bytes: int
    files: int
    seconds: float
    cpu_seconds: float


def measure(folder: Path, tables: int, warm_up: int, shapes: list[str]) -> list[Measured]:
    fleet.SHAPES.update(SHAPES)
    spark = start_session(master="local[2,4]", app_name="cost_model", driver_memory=fleet.MEMORY)
    models = fleet.Fleet(spark, folder / "models", shapes)
    copies = models.copies(fleet.COMPACTION, folder / "tables", tables + warm_up)
    spark.stop()
    cpu: dict[tuple[str, str], float] = {}
    places: dict[str, tuple[str, int]] = {}
    settings = {"slots": "1", "spare_slots": "0", "workers": "1", "driver_memory": fleet.MEMORY}
    with Daemon(folder / "daemon", **settings) as daemon:
        daemon.wait_for_worker()
        for number, (shape, base) in enumerate(copies):
            table = daemon.register(base, shape.buckets, writers={"stopped": True})
            for kind in fleet.KINDS:
                with measured(daemon.process.pid) as cost:
                    daemon.succeed(table, kind, **fleet.PARAMS.get(kind, {}))
                cpu[table, kind] = cost.cpu_seconds
            if number >= warm_up:
                places[table] = shapes[number % len(shapes)], number // len(shapes)
            print(f"table {number + 1} of {len(copies)}, load {os.getloadavg()[0]:.0f}", file=sys.stderr, flush=True)
        daemon.call("GET", "/v1/models/cost").raise_for_status()
    return [
        Measured(*places[table], kind, size, files, seconds, cpu[table, kind])
        for table, kind, seconds, size, files in _stored(folder / "daemon")
        if table in places
    ]


def _stored(folder: Path) -> list[tuple[str, str, float, int, int]]:
    """Returns what the service has stored about ended attempts."""
    [database] = folder.rglob("*.db")
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "select table_id, kind, seconds, work_bytes, work_files from attempt_costs where succeeded order by id"
        )
        return rows.fetchall()


def errors(
    jobs: Sequence[Measured], took: Callable[[Measured], float], fold: Callable[[Measured], Any]
) -> dict[str, float]:
    """Returns the median error by kind, and of all jobs, where each fold is expected from the other ones."""
    found: dict[str, list[float]] = {}
    for held_out in dict.fromkeys(map(fold, jobs)):
        model = CostModel()
        for each in jobs:
            if fold(each) != held_out:
                model.learn(_ended(each, took(each)))
        for each in jobs:
            if fold(each) == held_out:
                work = Work(each.bytes, each.files)
                expected = model.expected("unknown", each.kind, work, dry_run=False).seconds
                found.setdefault(each.kind, []).append(abs(expected / took(each) - 1))
    by_kind = {kind: round(median(each), 3) for kind, each in found.items()}
    return {"all": round(median(error for each in found.values() for error in each), 3), **by_kind}


def _ended(job: Measured, took: float) -> Ended:
    table = f"{job.shape} {job.number}"
    return Ended(table, job.kind, dry_run=False, seconds=took, work=Work(job.bytes, job.files))


def tell(jobs: Sequence[Measured]) -> dict[str, Any]:
    result: dict[str, Any] = {"jobs": len(jobs), "load": round(os.getloadavg()[0], 1)}
    for name, took in (("seconds", lambda each: each.seconds), ("cpu_seconds", lambda each: each.cpu_seconds)):
        result[name] = {
            "of_tables": errors(jobs, took, lambda each: each.number % FOLDS),
            "of_shapes": errors(jobs, took, lambda each: each.shape),
        }
        print(f"{name}: {result[name]}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--warm-up", type=int, default=8, help="tables whose jobs do not count")
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=list(SHAPES))
    parser.add_argument("--keep", type=Path, help="a file for the jobs")
    parser.add_argument("--read", type=Path, help="jobs of an earlier run, in place of new ones")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    given = parser.parse_args()
    if given.read:
        jobs = [Measured(**each) for each in json.loads(given.read.read_text())]
    else:
        with tempfile.TemporaryDirectory(prefix="cost-") as folder:
            jobs = measure(Path(folder).resolve(), given.tables, given.warm_up, given.shapes)
    if given.keep:
        given.keep.write_text(json.dumps([asdict(each) for each in jobs]))
    result = tell(jobs)
    if given.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
