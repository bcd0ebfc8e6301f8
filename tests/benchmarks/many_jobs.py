"""Measures the resources of one worker during thousands of jobs on small tables: memory, threads, classes, open files.

    python tests/benchmarks/many_jobs.py [--jobs 2000] [--tables 20] [--json]

Tables of one file slice are clustered inside their bucket again and again, cleaned after every fourth clustering and
archived after every twelfth, by one worker that is not recycled. After every `--every` jobs the script notes what the
worker's processes hold. Ends with 1 if in the last fifth of the notes the JVM has more than a tenth more objects,
classes, threads or open files than in the second fifth: the first fifth is the warm-up.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
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
    that a full collection of that JVM leaves, `classes` loaded in it, threads and open files of all its processes, and
    the time of a job on average since the last note."""

    jobs: int
    python_mb: int
    jvm_mb: int
    alive_mb: int
    classes: int
    threads: int
    open_files: int
    seconds: float


# The figures that must not grow. Python's memory is not among them: its pools give little memory back, but are limited.
_FLAT = ("alive_mb", "classes", "threads", "open_files")


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
    growth = {name: _growth([getattr(each, name) for each in notes]) for name in _FLAT}
    return {"notes": [asdict(each) for each in notes], "growth": growth}


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
            while (job := daemon.job(job_id, wait_seconds=20))["state"] not in ENDED:
                pass
            assert job["state"] == "succeeded", job


def _note(daemon: Daemon, jobs: int, seconds: float) -> Note:
    worker, jvm = daemon.worker(), daemon.jvm()
    assert worker
    assert jvm
    # A histogram of live objects needs a full collection.
    histogram = _jcmd(jvm, "GC.class_histogram")
    total = next(line for line in histogram.splitlines()[::-1] if line.startswith("Total"))
    counters = dict(re.findall(r"^java\.cls\.(\w+)=(\d+)$", _jcmd(jvm, "PerfCounter.print"), re.MULTILINE))
    processes = [Path(f"/proc/{pid}") for pid in process_tree.tree(worker)]
    note = Note(
        jobs,
        process_tree.memory(worker, without=jvm) >> 20,
        process_tree.memory(jvm) >> 20,
        int(total.split()[2]) >> 20,
        int(counters["loadedClasses"]) - int(counters["unloadedClasses"]),
        sum(map(_threads, processes)),
        sum(len(list((each / "fd").iterdir())) for each in processes),
        round(seconds, 2),
    )
    print(note, flush=True)
    return note


def _threads(process: Path) -> int:
    """Counts the threads without those of two pools of Spark, which begins one for each task, up to 128 in each, and
    ends it a minute later (`ThreadUtils.newDaemonCachedThreadPool`): their number follows the jobs of that minute."""
    names = []
    for each in (process / "task").iterdir():
        with suppress(OSError):  # The process has ended.
            names.append((each / "comm").read_text())
    return sum(not name.startswith("block-manager-") for name in names)


def _jcmd(jvm: int, what: str) -> str:
    return subprocess.run(["jcmd", str(jvm), what], check=True, capture_output=True, text=True).stdout


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
    print(f"Growth over {given.jobs} jobs:", ", ".join(f"{k} {100 * v:+.1f} %" for k, v in result["growth"].items()))
    sys.exit(0 if max(result["growth"].values()) <= 0.1 else 1)
