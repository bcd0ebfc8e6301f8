"""Measures the memory of one worker during thousands of jobs on small tables.

    python tests/benchmarks/many_jobs.py [--jobs 2000] [--tables 20] [--json]

Tables of one file slice are clustered inside their bucket again and again, cleaned after every fourth clustering and
archived after every twelfth, by one worker that is not recycled. After every `--every` jobs the script notes the memory
of the worker's processes, and what is alive in its JVM after a full collection. Ends with 1 if the last fifth of the
notes is more than a tenth above the second fifth: the first one is the warming up.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.session import start_session
from tests.acceptance.daemon import ENDED, Daemon
from tests.benchmarks import process_tree
from tests.benchmarks.fleet import CLUSTERING, Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS_AT_ONCE = 20


@dataclass(frozen=True)
class Note:
    """The worker after `jobs` jobs: `python_mb` of its Python processes, `jvm_mb` of its JVM, `alive_mb` of objects
    that a full collection of that JVM leaves, and the time of a job on average since the last note."""

    jobs: int
    python_mb: int
    jvm_mb: int
    alive_mb: int
    seconds: float


def run(jobs: int, tables: int, every: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="many-jobs-") as name:
        folder = Path(name).resolve()
        spark = start_session(master="local[2,4]", conf={"spark.sql.shuffle.partitions": "2"})
        bases = [base for _, base in Fleet(spark, folder / "models", ["b"]).copies(CLUSTERING, folder / "lake", tables)]
        spark.stop()
        settings = {"recycle_jobs": "1000000", "spare_slots": "0", "workers": "1"}
        with Daemon(folder / "service", **settings) as daemon:
            daemon.wait_for_worker()
            work = _work(daemon, [daemon.register(base, 1, writers={"stopped": True}) for base in bases])
            notes = []
            for done in range(every, jobs + 1, every):
                begun = time.monotonic()
                _run(daemon, work, every)
                notes.append(_note(daemon, done, (time.monotonic() - begun) / every))
    return {"notes": [asdict(each) for each in notes], "growth": _growth([each.alive_mb for each in notes])}


def _work(daemon: Daemon, ids: list[str]) -> Iterator[str]:
    """Submits one job after the other, and yields their ids."""
    for number in count(1):
        for table in ids:
            yield daemon.submit(table, "clustering", sort_by=["city" if number % 2 else "ts"])
            if number % 4 == 0:
                yield daemon.submit(table, "cleaning", retain=1)
            if number % 12 == 0:
                yield daemon.submit(table, "archival")


def _run(daemon: Daemon, work: Iterator[str], jobs: int) -> None:
    for _ in range(jobs // JOBS_AT_ONCE):
        for job_id in [next(work) for _ in range(JOBS_AT_ONCE)]:
            while (job := daemon.job(job_id))["state"] not in ENDED:
                time.sleep(0.2)
            assert job["state"] == "succeeded", job


def _note(daemon: Daemon, jobs: int, seconds: float) -> Note:
    worker, jvm = daemon.worker(), daemon.jvm()
    assert worker
    assert jvm
    # A histogram of live objects needs a full collection.
    histogram = subprocess.run(["jcmd", str(jvm), "GC.class_histogram"], check=True, capture_output=True, text=True)
    total = next(line for line in histogram.stdout.splitlines()[::-1] if line.startswith("Total"))
    in_python = process_tree.memory(worker, without=jvm)
    alive = int(total.split()[2])
    note = Note(jobs, in_python >> 20, process_tree.memory(jvm) >> 20, alive >> 20, round(seconds, 2))
    print(note, flush=True)
    return note


def _growth(values: list[int]) -> float:
    """Returns the relative growth from the second fifth to the last one."""
    fifth = max(1, len(values) // 5)
    early, late = values[fifth : 2 * fifth] or values[:1], values[-fifth:]
    return round(statistics.median(late) / statistics.median(early) - 1, 3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON")
    given = parser.parse_args()
    result = run(given.jobs, given.tables, given.every)
    if given.json:
        print(json.dumps(result))
    print(f"Of {given.jobs} jobs, alive in the JVM: {100 * result['growth']:+.1f} %")
    sys.exit(0 if result["growth"] <= 0.1 else 1)
