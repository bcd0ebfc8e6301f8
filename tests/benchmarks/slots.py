"""Measures for several numbers of slots how many jobs an hour one worker runs, how long each takes, and the memory of
its processes.

    python tests/benchmarks/slots.py [--slots 1,2,4] [--tables 12] [--rows 100000] [--kind compaction] [--json]

For each number of slots, a daemon of its own gets the same tables, as new copies of one table: merge-on-read, 4
buckets, half of the rows updated twice since the base files were written. After a first job, which warms the worker up,
jobs for all tables are submitted at once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.session import start_session
from tests.acceptance.daemon import Daemon
from tests.benchmarks import process_tree
from tests.integration import tables

MIB = 1024 * 1024


@dataclass(frozen=True)
class Figures:
    """`seconds` is the median time of a job, `peak_mib` the peak memory of the worker's processes together."""

    slots: int
    jobs_an_hour: int
    seconds: float
    peak_mib: int


class Peak:
    """Watches the resident memory of a process and all below it while the block runs; shared pages count once."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.bytes = 0

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(0.5):
            self.bytes = max(self.bytes, process_tree.memory(self._pid))


def measure(template: Path, folder: Path, *, slots: int, count: int, kind: str) -> Figures:
    with Daemon(folder, slots=str(slots), spare_slots="0", workers="1") as daemon:
        daemon.wait_for_worker()
        bases = [folder / f"table{number}" for number in range(count + 1)]
        for base in bases:
            shutil.copytree(template, base)
        ids = [daemon.register(base) for base in bases]
        daemon.succeed(ids.pop(), kind)
        worker = daemon.worker()
        assert worker is not None
        began = time.monotonic()
        with Peak(worker) as peak:
            jobs = [daemon.wait(each) for each in [daemon.submit(table_id, kind) for table_id in ids]]
        seconds = time.monotonic() - began
    assert {job["state"] for job in jobs} == {"succeeded"}, jobs
    times = sorted(_moment(job["finished_at"]) - _moment(job["started_at"]) for job in jobs)
    return Figures(slots, round(3600 * count / seconds), round(times[count // 2], 1), peak.bytes // MIB)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", default="1,2,4")
    parser.add_argument("--tables", type=int, default=12)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kind", default="compaction", choices=["compaction", "clustering", "audit"])
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template"
        spark = start_session()
        tables.write_table(spark, template, count=options.rows, updates=2, partitioned=False, copied=False)
        spark.stop()
        found = []
        for slots in map(int, options.slots.split(",")):
            place = Path(folder) / f"slots{slots}"
            found.append(measure(template, place, slots=slots, count=options.tables, kind=options.kind))
            shutil.rmtree(place)
            if not options.json:
                each = found[-1]
                print(
                    f"{each.slots} slots: {each.jobs_an_hour} jobs an hour, each {each.seconds:g} s,"
                    f" {each.peak_mib} MiB at most",
                    flush=True,
                )
    if options.json:
        print(json.dumps([asdict(each) for each in found]))


if __name__ == "__main__":
    main()
