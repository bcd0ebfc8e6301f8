"""A writer that never pauses, and all four services on automatic; killed as often as asked for. Every row is looked at.

    python tests/benchmarks/by_itself.py [--minutes 10] [--kills 0] [--overlapping] [--type MERGE_ON_READ] [--json]

The writer (OCC, its own Spark session, its first number of buckets) repeats batches that conflict, as the service
advises. With `--overlapping` a second one writes to other partitions, so there is hardly a moment without a write in
flight. `--kills` are SIGKILLs of the service or its worker, in turn and at random moments; a killed service is started
again on its database. Ends with 1 unless no batch failed, the table equals the writer's acknowledged batches row for
row, an audit finds it clean, and no job is left behind or has run twice at once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.contract import BucketIndex
from jobs.session import start_session
from tests.acceptance.daemon import ENDED, Daemon
from tests.integration import ceaseless_writer, tables
from tests.integration.run import run_job

INDEX = BucketIndex(2, ("id",))
POLICY = {
    "compaction": {"commits": 5, "min_interval_seconds": 0},
    "cleaning": {"commits": 8, "retain": 3, "min_interval_seconds": 0},
    "clustering": {
        "enabled": True,
        "sort_by": ["fare"],
        "unsorted_bytes": 50_000,
        "min_interval_seconds": 60,
        "wait_seconds": 20,
    },
    "bucket_expansion": {
        "mode": "auto",
        "max_bucket_bytes": 1024 * 1024,
        "min_interval_seconds": 60,
        "settle_seconds": 5,
        "wait_seconds": 60,
    },
}
SETTINGS = {
    "automatic": "true",
    "poll_seconds": "1",
    "plan_seconds": "0.5",
    "lease_seconds": "10",
    "recover_seconds": "1",
    "retry_first_seconds": "1",
    "max_attempts": "30",
}
SETTLING_SECONDS = 300.0
# So that buckets reach the least size that a policy may name.
PAYLOAD_BYTES = 8000
FIRST_ID_OF_THE_SECOND = 3_000_000


def run(minutes: float, kills: int, table_type: str, *, is_overlapping: bool) -> dict[str, Any]:
    rng = random.Random()
    with tempfile.TemporaryDirectory() as name, ExitStack() as services:
        folder = Path(name)
        base = folder / "trips"
        options = tables.writer_options(base, table_type=table_type, num_buckets=INDEX.num_buckets)
        options |= {
            "hoodie.write.num.retries.on.conflict.failures": "5",
            # Else every small file has 430 KB of it, and buckets hardly get smaller.
            "hoodie.parquet.bloom.filter.enabled": "false",
        }
        with ExitStack() as writing:
            ledgers = [
                writing.enter_context(
                    ceaseless_writer.running(folder / f"writer_{first_id}", base, options, PAYLOAD_BYTES, first_id)
                )
                for first_id in ((0, FIRST_ID_OF_THE_SECOND) if is_overlapping else (0,))
            ]
            daemon = services.enter_context(Daemon(folder / "service", **SETTINGS))
            writers = {"hudi_version": "1.2.0", "retry_conflicts": True}
            table = daemon.register(base, INDEX.num_buckets, writers=writers)
            answer = daemon.call("PUT", f"/v1/tables/{table}/policy", POLICY)
            assert answer.is_success, answer.text
            for victim in _moments(minutes * 60, kills, rng):
                if _kill(daemon, victim):
                    daemon = services.enter_context(Daemon(folder / "service", **SETTINGS))
        left = _settled(daemon, table)
        jobs = _jobs(daemon, table)
        services.close()
        lines = [line for ledger in ledgers for line in ceaseless_writer.read(ledger)]
        spark = start_session(master="local[2,4]", app_name="by itself", conf={"spark.sql.shuffle.partitions": "2"})
        found, expected = ceaseless_writer.found(spark, base), ceaseless_writer.expected(lines)
        audit = run_job(spark, base, "audit", index=INDEX).details
        spark.stop()
    failed = [line.error for line in lines if line.error]
    outcome = {
        "rows": len(found),
        "lost_or_old": sum(found.get(key) != number for key, number in expected.items()),
        "misplaced": audit["misplaced"],
        "duplicates": audit["duplicates"],
        "batches": len(lines) - len(failed),
        "failed_batches": len(failed),
        "jobs": dict(sorted(Counter(f"{job['kind']} {_told(job)}" for job in jobs).items())),
        "attempts": sum(job["attempt"] for job in jobs),
        "kills": kills,
        "jobs_left": left,
        "at_once": _at_once(jobs),
    }
    ok = found == expected and bool(audit["clean"]) and not failed and not left and outcome["at_once"] <= 1
    return {"ok": ok, **outcome}


def _moments(seconds: float, kills: int, rng: random.Random) -> Any:
    """Waits, and names who is to be killed now."""
    ends = time.monotonic() + seconds
    for number, victim in zip(range(kills), cycle(("worker", "service", "jvm")), strict=False):
        time.sleep(max(0.0, (ends - time.monotonic()) / (kills - number) * rng.uniform(0.5, 1.5)))
        print(f"kill {number + 1}: {victim}", file=sys.stderr, flush=True)
        yield victim
    time.sleep(max(0.0, ends - time.monotonic()))


def _kill(daemon: Daemon, victim: str) -> bool:
    """Whether the service is gone. A worker may be between two lives, and is left alone then."""
    process = {"worker": daemon.worker(), "jvm": daemon.jvm(), "service": daemon.process.pid}[victim]
    if process is None:
        return False
    os.kill(process, signal.SIGKILL)
    if victim == "service":
        daemon.process.wait()
    return victim == "service"


def _settled(daemon: Daemon, table: str) -> list[str]:
    """Pauses, and answers the jobs that have not ended after a while."""
    daemon.call("PUT", "/v1/pause", {"reason": "the end of the benchmark"})
    deadline = time.monotonic() + SETTLING_SECONDS
    while left := [job["id"] for job in _jobs(daemon, table) if job["state"] not in ENDED]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return left


def _jobs(daemon: Daemon, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        params = {"table_id": table, "limit": "200", **({"cursor": cursor} if cursor else {})}
        page = daemon.call("GET", "/v1/jobs", params=params).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def _told(job: dict[str, Any]) -> str:
    return f"{job['state']}: {job['error']['type']}" if job["state"] == "failed" else str(job["state"])


def _at_once(jobs: list[dict[str, Any]]) -> int:
    """The most jobs of the table that were held by a worker at one moment."""
    held = [(job["leased_at"], job["finished_at"]) for job in jobs if job["leased_at"] and job["finished_at"]]
    return max((sum(start <= moment < end for start, end in held) for moment, _ in held), default=0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--overlapping", action="store_true", help="a second writer, on other partitions")
    parser.add_argument("--type", choices=["MERGE_ON_READ", "COPY_ON_WRITE"], default="MERGE_ON_READ")
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON, the last one")
    given = parser.parse_args()
    result = run(given.minutes, given.kills, given.type, is_overlapping=given.overlapping)
    print(json.dumps(result, indent=None if given.json else 2))
    sys.exit(0 if result["ok"] else 1)
