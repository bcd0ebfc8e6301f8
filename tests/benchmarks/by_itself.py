"""Runs a writer that never pauses with all services by policy, kills processes if requested, and checks every row.

    python tests/benchmarks/by_itself.py [--writer batch] [--index bucket] [--minutes 10] [--kills 0] [--json] ...

Writers: `batch` writes DataFrame upserts and repeats those that conflict (OCC, its own Spark session, its first number
of buckets). Option `--overlapping` adds a second writer to other partitions, so there is hardly a moment without a
write in flight. `0.15`, `1.0.2` and `1.1.1` are the same as `batch`, with that version of Hudi. `stream` is Hudi's
streaming sink. `sql` is one session of Spark SQL statements; if `--careless` is given, the session lacks the options
that make it notice changes of the table. `flink` is a
job on a real cluster that the service stops for each hand-over, and this script starts again; `flink-state` is such a
job with Flink's default index.

All have the options that the service prints. `--zone` and `--skew-seconds` apply only to the writer's processes.
`--kills` is the number of SIGKILLs of the service or its worker, in turn and at random moments; a killed service is
started again on its database. `--submitted` submits other jobs one after the other meanwhile: index builds and drops,
and on tables with buckets other numbers of buckets. The policy then compacts the metadata table, too.

The exit code is 0 only if three checks succeed. First, the table has exactly the acknowledged rows, read by the
metadata table, by listing and with the writer's own version of Hudi (except Flink's). Second, an audit finds nothing.
Third, no job is unfinished, and no two jobs that write ran at once.
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
from contextlib import ExitStack, nullcontext
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.benchmarks.beside.writer import Writer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.session import start_session
from tests.acceptance.daemon import ENDED, Daemon
from tests.benchmarks.beside.batches import OURS, TABLE_VERSIONS, Batches
from tests.benchmarks.beside.clock import Clock
from tests.benchmarks.beside.flink_stream import FlinkStream
from tests.benchmarks.beside.sql_user import SqlUser
from tests.benchmarks.beside.stream import Stream
from tests.integration.run import run_job

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
SUBMIT_SECONDS = 5.0
_BUILD, _DROP = {"action": "build", "wait_seconds": 60}, {"action": "drop", "wait_seconds": 60}
_STATISTICS, _RECORDS, _FILTERS = {"index": "column_stats"}, {"index": "record"}, {"index": "bloom_filters"}
ON_BUCKETS = (
    ("index", _BUILD | _STATISTICS),
    ("bucket_count", {"num_buckets": 5, "wait_seconds": 60}),
    ("index", {"action": "verify"}),
    ("bucket_count", {"num_buckets": 3, "way": "through_multiple", "wait_seconds": 60}),
    ("index", _DROP | _STATISTICS),
)
WITHOUT_BUCKETS = (
    ("index", _BUILD | _RECORDS),
    ("index", _BUILD | _FILTERS),
    ("index", {"action": "verify"}),
    ("index", _DROP | _RECORDS),
    ("index", _DROP | _FILTERS),
)


class Submitter:
    """Submits jobs one after the other. Before a build the writer gets the options that the dry run names."""

    def __init__(self, writer: Writer, table: str) -> None:
        self._writer, self._table = writer, table
        self._orders = cycle(ON_BUCKETS if writer.index else WITHOUT_BUCKETS)
        self._next = next(self._orders)
        self._last: str | None = None
        self.refused: Counter[str] = Counter()

    def submit(self, daemon: Daemon) -> None:
        """Submits the next job if the last one has ended and the service takes one more."""
        if self._last and daemon.job(self._last)["state"] not in ENDED:
            return
        kind, params = self._next
        if params.get("action") == "build" and params["index"] == "column_stats":
            # Hudi's statistics of values beyond 4 KB hide rows, and the batches have such a column.
            params = {**params, "columns": [self._writer.sort_by]}
        if params.get("action") == "build":
            planned = daemon.wait(daemon.submit(self._table, kind, dry_run=True, **params))["result"] or {}
            options = {each["name"]: each["value"] for each in planned.get("writer_options") or ()}
            self._writer.changed(options)
        answer = daemon.call("POST", f"/v1/tables/{self._table}/jobs", {"kind": kind, "params": params})
        if answer.is_success:
            self._last, self._next = str(answer.json()["id"]), next(self._orders)
        else:
            self.refused[f"{kind}: {answer.json()['type']}"] += 1


def run(
    minutes: float, kills: int, writer: Writer, kept: Path | None = None, *, submits: bool = False
) -> dict[str, Any]:
    rng = random.Random()
    with nullcontext(kept) if kept else tempfile.TemporaryDirectory() as name, ExitStack() as services:
        folder = Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        base = folder / "trips"
        with writer.running(folder, base):
            settings = {**SETTINGS, **writer.settings}
            daemon = services.enter_context(Daemon(folder / "service", **settings))
            buckets = writer.index.num_buckets if writer.index else None
            table = daemon.register(base, buckets, writers=writer.declared)
            metadata_table = {"metadata_table": {"enabled": True, "commits": 3, "min_interval_seconds": 0}}
            policy = {**_policy(writer), **(metadata_table if submits else {})}
            answer = daemon.call("PUT", f"/v1/tables/{table}/policy", policy)
            assert answer.is_success, answer.text
            writer.registered(daemon, table)
            submitter = Submitter(writer, table)
            for victim in _moments(minutes * 60, kills, rng, pause=SUBMIT_SECONDS if submits else None):
                if victim is None:
                    submitter.submit(daemon)
                elif _kill(daemon, victim):
                    daemon = services.enter_context(Daemon(folder / "service", **settings))
                    writer.registered(daemon, table)
        left = settled(daemon, table)
        jobs = jobs_of(daemon, table)
        incidents = _incidents(daemon, table)
        at_once = _at_once(daemon, jobs)
        services.close()
        spark = start_session(master="local[2,4]", app_name="by itself", conf={"spark.sql.shuffle.partitions": "2"})
        compared = writer.compared(spark, base)
        audit = run_job(spark, base, "audit", index=writer.index).details
        spark.stop()
    outcome = {
        **compared,
        "misplaced": audit["misplaced"],
        "duplicates": audit["duplicates"],
        "stale_writes": len(audit["stale_writes"]),
        "audit": [*audit["findings"], *audit["unchecked"]],
        "jobs": dict(sorted(Counter(f"{job['kind']} {_described(job)}" for job in jobs).items())),
        "fenced": sum(len((job["result"] or {}).get("fenced", ())) for job in jobs),
        "incidents": incidents,
        "attempts": sum(job["attempt"] for job in jobs),
        "kills": kills,
        "refused": dict(submitter.refused),
        "jobs_left": left,
        "at_once": at_once,
    }
    ok = compared["ok"] and bool(audit["clean"]) and not left and outcome["at_once"] <= 1
    return {**outcome, "ok": ok}


def _policy(writer: Writer) -> dict[str, Any]:
    pause = {"min_interval_seconds": writer.pause_seconds}
    if writer.index is None:
        # Small files are merged as well on tables without buckets.
        clustering = {**POLICY["clustering"], **pause, "sort_by": [writer.sort_by], "small_file_share": 0.01}
        return {**{kind: POLICY[kind] for kind in ("compaction", "cleaning")}, "clustering": clustering}
    return {
        **POLICY,
        "clustering": {**POLICY["clustering"], **pause, "sort_by": [writer.sort_by]},
        "bucket_expansion": {**POLICY["bucket_expansion"], **pause},
    }


def _incidents(daemon: Daemon, table: str) -> dict[str, int]:
    found = daemon.call("GET", f"/v1/tables/{table}/incidents").json()["items"]
    return dict(Counter(f"{each['kind']} {each['state']}" for each in found))


def _moments(seconds: float, kills: int, rng: random.Random, *, pause: float | None) -> Iterator[str | None]:
    """Waits for each random time, and yields the process to kill, or None after each `pause`."""
    ends = time.monotonic() + seconds

    def pauses_until(until: float) -> Iterator[None]:
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, pause or left))
            if pause:
                yield None

    for number, victim in zip(range(kills), cycle(("worker", "service", "jvm")), strict=False):
        now = time.monotonic()
        yield from pauses_until(now + (ends - now) / (kills - number) * rng.uniform(0.5, 1.5))
        print(f"kill {number + 1}: {victim}", file=sys.stderr, flush=True)
        yield victim
    yield from pauses_until(ends)


def _kill(daemon: Daemon, victim: str) -> bool:
    """Kills a process, and returns whether it was the service. Does nothing if the worker is just restarting."""
    process = {"worker": daemon.worker(), "jvm": daemon.jvm(), "service": daemon.process.pid}[victim]
    if process is None:
        return False
    os.kill(process, signal.SIGKILL)
    if victim == "service":
        daemon.process.wait()
    return victim == "service"


def settled(daemon: Daemon, table: str) -> list[str]:
    """Pauses the policies, and returns the jobs that have not ended after a while, without those that wait for another
    attempt: the pause holds these back."""
    daemon.call("PUT", "/v1/pause", {"reason": "the end of the benchmark"})
    deadline = time.monotonic() + SETTLING_SECONDS
    while left := [job["id"] for job in jobs_of(daemon, table) if job["state"] not in ENDED and not _waits_again(job)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.5)
    return left


def _waits_again(job: dict[str, Any]) -> bool:
    return job["state"] == "queued" and job["attempt"] > 0


def jobs_of(daemon: Daemon, table: str) -> list[dict[str, Any]]:
    """Returns all jobs of the table, the newest first."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        params = {"table_id": table, "limit": "200", **({"cursor": cursor} if cursor else {})}
        page = daemon.call("GET", "/v1/jobs", params=params).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


def _described(job: dict[str, Any]) -> str:
    return f"{job['state']}: {job['error']['type']}" if job["state"] == "failed" else str(job["state"])


def _at_once(daemon: Daemon, jobs: list[dict[str, Any]]) -> int:
    """Returns the maximum number of concurrent attempts of jobs that write to the table."""
    writing = [job for job in jobs if not (job["dry_run"] or job["params"].get("action") == "verify")]
    attempts = [each for job in writing for each in daemon.job(job["id"])["attempts"]]
    held = [(each["started_at"], each["ended_at"]) for each in attempts if each["ended_at"]]
    return max((sum(start <= moment < end for start, end in held) for moment, _ in held), default=0)


def _writer(given: argparse.Namespace) -> Writer:
    clock = Clock(given.zone, given.skew_seconds)
    version = {"0.15": "0.15.0", "batch": OURS}.get(given.writer, given.writer)
    match given.writer:
        case "sql":
            return SqlUser(
                given.type, given.version, given.seed, careless=given.careless, index=given.index, clock=clock
            )
        case "stream":
            return Stream(given.type, given.version, index=given.index, clock=clock)
        case "flink" | "flink-state":
            return FlinkStream(given.type, given.minutes, in_state=given.writer == "flink-state", clock=clock)
    return Batches(
        given.type,
        given.version,
        hudi_version=version,
        index=given.index,
        clock=clock,
        overlapping=given.overlapping,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    writers = ["batch", "sql", "stream", "flink", "flink-state", "0.15", *(TABLE_VERSIONS.keys() - {"0.15.0", OURS})]
    parser.add_argument("--writer", choices=writers, default="batch")
    parser.add_argument("--index", choices=["bucket", "none", "simple", "bloom"], default="bucket", help="not of Flink")
    parser.add_argument("--zone", help="of the writer, such as America/Los_Angeles")
    parser.add_argument(
        "--skew-seconds", type=float, default=0.0, help="seconds by which the writer's clock is ahead, whole minutes"
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--submitted", action="store_true", help="index builds and numbers of buckets meanwhile")
    parser.add_argument("--overlapping", action="store_true", help="batches: a second writer, on other partitions")
    parser.add_argument("--careless", action="store_true", help="sql: a session that caches what it has read")
    parser.add_argument("--seed", type=int, default=1, help="sql: of the order of statements")
    parser.add_argument("--type", choices=["MERGE_ON_READ", "COPY_ON_WRITE"], default="MERGE_ON_READ")
    parser.add_argument("--version", type=int, choices=[6, 8, 9], default=9, help="of the table, at most")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="an empty one, for the table and all logs")
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON, the last one")
    arguments = parser.parse_args()
    result = run(arguments.minutes, arguments.kills, _writer(arguments), arguments.keep, submits=arguments.submitted)
    print(json.dumps(result, indent=None if arguments.json else 2))
    sys.exit(0 if result["ok"] else 1)
