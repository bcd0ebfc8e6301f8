"""Compares the commits of three writers, each of which writes the same batches to its own copy of one merge-on-read
table: `python tests/benchmarks/delegated.py [--metadata] [--commits 60] [--minutes 8] [--pause 2]`

One compacts inline, one leaves compaction to the service's policy (async) and plans nothing, and one delegates its
plans to the service. There is a compaction every five commits.

Nobody compacts the table itself with `--metadata`. One writer compacts the metadata table every ten commits, as Hudi
does by default. The metadata table of the second writer is compacted by a policy of the service every `--every`
commits. The metadata table of the third is always compact: a job compacts it before each commit, and the time of this
job does not count.

The writers take turns of `TURN` commits. A turn begins when the jobs for the previous writer have ended, so the service
only works beside the writer for which it works.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from jobs.hudi.session import start_session
from tests.acceptance.daemon import Daemon
from tests.integration import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = 5
TURN = 4 * EVERY
_INLINE = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": str(EVERY)}
_OFF = {"enabled": False}
_IDLE_SECONDS = 120.0


@dataclass(frozen=True)
class Mode:
    """`options` are those of the writer, `policy` is that of its table."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=dict)
    is_delegated: bool = False
    is_compact: bool = False  # Whether a job compacts the metadata table before each commit.


_WITHOUT_METADATA = {"hoodie.metadata.compact.max.delta.commits": "1000"}
COMPACTION = (
    Mode("inline", _INLINE | _WITHOUT_METADATA),
    Mode(
        "async",
        _WITHOUT_METADATA,
        {"compaction": {"enabled": True, "commits": EVERY, "min_interval_seconds": 0}},
    ),
    Mode("delegated", _INLINE | _WITHOUT_METADATA, is_delegated=True),
)


def of_metadata(every: int) -> tuple[Mode, ...]:
    policy = {"metadata_table": {"enabled": True, "commits": every, "min_interval_seconds": 0}}
    return (Mode("writer"), Mode("service", policy=policy), Mode("compact", is_compact=True))


class Measured:
    """One writer, and the seconds of its commits."""

    def __init__(self, mode: Mode, daemon: Daemon, base: Path, options: Mapping[str, str]) -> None:
        self.seconds: list[float] = []
        self._mode, self._daemon, self._base = mode, daemon, base
        self._table = daemon.register(base)
        policy = {"cleaning": _OFF, "compaction": _OFF, **mode.policy}
        daemon.call("PUT", f"/v1/tables/{self._table}/policy", policy).raise_for_status()
        self._options = {
            **options,
            **mode.options,
            "hoodie.write.commit.callback.on": "true",
            "hoodie.write.commit.callback.http.url": f"{daemon.url}/v1/callbacks/hudi",
        }
        if mode.is_delegated:
            shown = daemon.call("GET", f"/v1/tables/{self._table}/writer-options?services=delegated").json()["options"]
            self._options |= {name: value for name, value in shown.items() if "table.service.manager" in name}

    def take_turn(self, spark: SparkSession, commits: int, rows: int, until: float, pause: float) -> None:
        for _ in range(commits):
            if len(self.seconds) > 1 and time.monotonic() > until:
                break
            time.sleep(pause)
            if self._mode.is_compact:
                self._daemon.succeed(self._table, "metadata_table", action="compact")
            batch = tables.rows(spark, 0, rows // 4, ts=len(self.seconds) + 1)
            began = time.perf_counter()
            tables.upsert(batch, self._base, self._options)
            self.seconds.append(time.perf_counter() - began)
        self._wait_until_idle()

    def _wait_until_idle(self) -> None:
        deadline = time.monotonic() + _IDLE_SECONDS
        while (jobs := self._jobs("queued,leased,running")) and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not jobs, jobs

    def _jobs(self, states: str) -> list[Any]:
        found: list[Any] = []
        for state in states.split(","):
            path = f"/v1/jobs?table_id={self._table}&state={state}"
            found += self._daemon.call("GET", path).raise_for_status().json()["items"]
        return found

    def result(self) -> dict[str, Any]:
        by_percent = statistics.quantiles(self.seconds, n=100, method="inclusive")
        return {
            "mode": self._mode.name,
            "commits": len(self.seconds),
            "p50": round(by_percent[49], 2),
            "p99": round(by_percent[98], 2),
            "worst": round(max(self.seconds), 2),
            "compactions": _compactions(self._base),
            "compactions_of_metadata": _compactions(self._base / ".hoodie" / "metadata"),
            "failed_jobs": [job["error"] for job in self._jobs("failed")],
        }


def _compactions(base: Path) -> int:
    return len(list((base / ".hoodie" / "timeline").glob("*_*.commit")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metadata", action="store_true", help="compare who compacts the metadata table")
    parser.add_argument("--every", type=int, default=6, help="commits after which the service compacts that table")
    parser.add_argument("--commits", type=int, default=60)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=8.0, help="fewer commits are made rather than taking longer")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before each commit")
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    folder = Path(tempfile.mkdtemp(prefix="delegated-"))
    spark = start_session(
        driver_memory="2g", packages=[], conf={"spark.sql.shuffle.partitions": "2"}, storage_options={}
    )
    tables.let_delegate(spark)
    try:
        options = tables.write_table(spark, folder / "first", count=given.rows, partitioned=False, copied=False)
        # The session is warmed up, so that no mode pays for its start.
        for number in range(3):
            tables.upsert(tables.rows(spark, 0, given.rows // 4, ts=-number - 1), folder / "first", options)
        with Daemon(folder / "daemon", automatic="true") as daemon:
            try:
                measure(spark, daemon, folder, options, given, until)
            except httpx.TransportError as error:
                raise SystemExit(_epitaph(daemon, error)) from error
    finally:
        spark.stop()
    shutil.rmtree(folder)


def measure(
    spark: SparkSession,
    daemon: Daemon,
    folder: Path,
    options: Mapping[str, str],
    given: argparse.Namespace,
    until: float,
) -> None:
    daemon.wait_for_worker()
    modes = of_metadata(given.every) if given.metadata else COMPACTION
    writers = []
    for mode in modes:
        shutil.copytree(folder / "first", folder / mode.name)
        writers.append(Measured(mode, daemon, folder / mode.name, options))
    took = 0.0
    for done in range(0, given.commits, TURN):
        began = time.monotonic()
        if began + took > until:
            break
        # Every other round runs backwards, because the JVM gets faster with time.
        for writer in writers if done // TURN % 2 == 0 else reversed(writers):
            # Each turn has its own time limit, so that the first one leaves time for the others on a busy machine.
            share = time.monotonic() + (until - began) / len(modes)
            writer.take_turn(spark, min(TURN, given.commits - done), given.rows, share, given.pause)
        took = time.monotonic() - began
    for writer in writers:
        print(json.dumps(writer.result()), flush=True)


def _epitaph(daemon: Daemon, error: Exception) -> str:
    """Returns the facts about a daemon that does not answer; its folder is kept."""
    with suppress(subprocess.TimeoutExpired):
        daemon.process.wait(5)
    code = daemon.process.poll()
    state = "is alive" if code is None else f"has ended with code {code}"
    return f"{error}: the service {state}; {daemon.log}:\n{daemon.log.read_text()[-6000:]}"


if __name__ == "__main__":
    main()
