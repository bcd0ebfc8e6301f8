"""Measures how well the cost model expects the cost of jobs on tables that it does not know.

    python tests/benchmarks/cost_model.py [--tables 50] [--warm-up 8] [--shapes b1,f4] [--keep jobs.json] [--json]
    python tests/benchmarks/cost_model.py --read jobs.json

Each table, a copy of one of several shapes, gets a compaction, a clustering, an expansion and a cleaning, one job after
the other, by a daemon with a worker of one slot: 200 jobs. More `--slots` give as many tables their jobs beside
each other. The model learns from the attempts as the service has stored them. Errors are measured on tables that were
left out of the learning: a fifth of the tables of each shape (`of_tables`), or all tables of a shape, whose size is
then new to the model (`of_shapes`). `without circumstances` is the error `of_tables` of a model that does not know how
warm and how busy the worker was. Each figure is the median of absolute errors, as a share of what a job took.

`alike` is the error that no model can avoid: it would remain if the model always expected the median of all jobs of
the same kind on tables of the same shape. On a machine with other work only CPU seconds mean anything;
`seconds by load` are seconds divided by the processes that wanted each core.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.session import start_session
from jobs.kinds.results import Work
from service.queue.circumstances import UNKNOWN, Circumstances
from service.queue.cost import CostPart, Ended
from service.queue.cost_model import CostModel
from tests.acceptance.daemon import Daemon
from tests.benchmarks import fleet

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
# A cleaning deletes what the others have replaced.
KINDS = (fleet.COMPACTION, fleet.CLUSTERING, fleet.EXPANSION, fleet.CLEANING)
FOLDS = 5


@dataclass(frozen=True)
class Measured:
    """A job: what it worked on, and what it took. `number` is the number of its table among the tables of its shape.
    `load` is the number of processes that wanted to run before it began, for each core."""

    shape: str
    number: int
    kind: str
    bytes: int
    files: int
    seconds: float
    cpu_seconds: float
    bytes_read: float | None
    bytes_written: float | None
    load: float
    jobs_before: int | None = None
    jobs_beside: float | None = None

    @property
    def circumstances(self) -> Circumstances:
        return Circumstances(self.jobs_before, self.jobs_beside)


def measure(folder: Path, given: argparse.Namespace) -> list[Measured]:
    shapes = given.shapes
    fleet.SHAPES.update(SHAPES)
    spark = start_session(master="local[2,4]", app_name="cost_model", driver_memory=fleet.MEMORY)
    models = fleet.Fleet(spark, folder / "models", shapes)
    copies = models.copies(fleet.COMPACTION, folder / "tables", given.tables + given.warm_up)
    spark.stop()
    loads: dict[tuple[str, str], float] = {}
    places: dict[str, tuple[str, int]] = {}
    settings = {"slots": str(given.slots), "spare_slots": "0", "workers": "1", "driver_memory": fleet.MEMORY}
    settings["recycle_jobs"] = str(given.recycle)
    with Daemon(folder / "daemon", **settings) as daemon:
        daemon.wait_for_worker()
        for first in range(0, len(copies), given.slots):
            batch = copies[first : first + given.slots]
            ids = [daemon.register(base, shape.buckets, writers={"stopped": True}) for shape, base in batch]
            for kind in KINDS:
                loads.update({(each, kind): max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)) for each in ids})
                jobs = [daemon.submit(each, kind, **fleet.PARAMS.get(kind, {})) for each in ids]
                ended = [daemon.wait(each) for each in jobs]
                assert all(each["state"] == "succeeded" for each in ended), ended
            for number, table in enumerate(ids, first):
                if number >= given.warm_up:
                    places[table] = shapes[number % len(shapes)], number // len(shapes)
            print(
                f"table {first + len(ids)} of {len(copies)}, load {os.getloadavg()[0]:.0f}", file=sys.stderr, flush=True
            )
        print(json.dumps(daemon.call("GET", "/v1/models/cost").json()), file=sys.stderr)
    return [
        Measured(*places[table], kind, *took, loads[table, kind], *circumstances)
        for table, kind, *took, circumstances in _stored(folder / "daemon")
        if table in places
    ]


def _stored(folder: Path) -> list[tuple[Any, ...]]:
    """Returns what the service has stored about ended attempts."""
    [database] = folder.rglob("*.db")
    columns = ", ".join(("table_id", "kind", "work_bytes", "work_files", *CostPart, *Circumstances._fields))
    with sqlite3.connect(database) as connection:
        rows = connection.execute(f"select {columns} from attempt_costs where succeeded order by id").fetchall()
    last = len(Circumstances._fields)
    return [(*row[:-last], row[-last:]) for row in rows]


def errors(
    jobs: Sequence[Measured], part: CostPart, fold: Callable[[Measured], Any], *, by_circumstances: bool = True
) -> dict[str, float]:
    """Returns the median error by kind, and of all jobs. The jobs of each fold are predicted from those of the other
    folds. Without `by_circumstances` the model does not know the circumstances of any job."""
    found: dict[str, list[float]] = {}
    for held_out in dict.fromkeys(map(fold, jobs)):
        model = CostModel()
        for each in jobs:
            if fold(each) != held_out:
                model.learn(_ended_attempt(each, by_circumstances=by_circumstances))
        for each in jobs:
            took = _ended_attempt(each).took(part)
            if fold(each) == held_out and took is not None:
                given = each.circumstances if by_circumstances else UNKNOWN
                work = Work(each.bytes, each.files)
                cost = model.expected("unknown", each.kind, work, dry_run=False, circumstances=given)
                expected = cost.seconds if part is CostPart.SECONDS else cost.further[part].expected
                found.setdefault(each.kind, []).append(abs(expected / took - 1))
    return _medians(found)


def unavoidable_errors(jobs: Sequence[Measured], part: CostPart) -> dict[str, float]:
    same: dict[tuple[str, str], list[float]] = {}
    for each in jobs:
        if (took := _ended_attempt(each).took(part)) is not None:
            same.setdefault((each.kind, each.shape), []).append(took)
    found: dict[str, list[float]] = {}
    for (kind, _), amounts in same.items():
        found.setdefault(kind, []).extend(abs(median(amounts) / each - 1) for each in amounts)
    return _medians(found)


def _medians(found: dict[str, list[float]]) -> dict[str, float]:
    by_kind = {kind: round(median(each), 3) for kind, each in found.items()}
    return {"all": round(median(error for each in found.values() for error in each), 3), **by_kind}


def _ended_attempt(job: Measured, *, by_circumstances: bool = True) -> Ended:
    took: dict[str, Any] = {part.value: getattr(job, part.value) for part in CostPart}
    if by_circumstances:
        took["circumstances"] = job.circumstances
    return Ended(f"{job.shape} {job.number}", job.kind, dry_run=False, work=Work(job.bytes, job.files), **took)


def summary(jobs: Sequence[Measured]) -> dict[str, Any]:
    result: dict[str, Any] = {"jobs": len(jobs), "load": round(median(each.load for each in jobs), 1)}
    by_load = [replace(each, seconds=each.seconds / each.load) for each in jobs]
    for name, part, those in (
        *((each.value, each, jobs) for each in CostPart),
        ("seconds by load", CostPart.SECONDS, by_load),
    ):
        result[name] = {
            "of_tables": errors(those, part, lambda each: each.number % FOLDS),
            "without circumstances": errors(those, part, lambda each: each.number % FOLDS, by_circumstances=False),
            "of_shapes": errors(those, part, lambda each: each.shape),
            "alike": unavoidable_errors(those, part),
        }
        print(f"{name}: {result[name]}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--warm-up", type=int, default=8, help="tables whose jobs do not count")
    parser.add_argument("--slots", type=int, default=1, help="jobs that the worker runs at once")
    parser.add_argument(
        "--recycle", type=int, default=1000, help="jobs after which the worker starts again, and is cold"
    )
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=list(SHAPES))
    parser.add_argument("--keep", type=Path, help="a file for the jobs")
    parser.add_argument("--read", type=Path, help="jobs of an earlier run, in place of new ones")
    parser.add_argument("--json", action="store_true", help="prints the result as JSON on the last line")
    given = parser.parse_args()
    if given.read:
        jobs = [Measured(**each) for each in json.loads(given.read.read_text())]
    else:
        with tempfile.TemporaryDirectory(prefix="cost-") as folder:
            jobs = measure(Path(folder).resolve(), given)
    if given.keep:
        given.keep.write_text(json.dumps([asdict(each) for each in jobs]))
    result = summary(jobs)
    if given.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
