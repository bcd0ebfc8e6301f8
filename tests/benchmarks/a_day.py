"""Measures the size of the database after a day of many tables, simulated minute by minute.

    python tests/benchmarks/a_day.py --tables 1000 --json

Each minute 1 % of the tables commit, as in `control_plane.py`. The service's own code polls, decides, leases and
prunes. Only the worker is simulated: it writes the instants of compactions and cleanings. Rows are kept for the days in
the settings, so the final size is computed from the growth of a day.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

import sqlalchemy as sa

from jobs.contract import DEFAULT_GROUP, Heartbeat, JobKind, Outcome, Progress, Result
from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher
from service.catalog import watch_store
from service.db import schema
from service.db.engine import open_engine, reading
from service.events.database import Database
from service.events.notifier import Notifier
from service.model.backoff import BackOff
from service.model.clock import utc_now
from service.observation.poll import poll_table
from service.observation.table_read import TableReader
from service.queue import leases
from service.queue.leases import LeaseConfig
from service.runtime import retention
from service.runtime.settings import Settings
from service.scheduling import scheduler
from tests.benchmarks.control_plane import BUCKETS, PARTITIONS, database_bytes, lay, log_progress, register
from tests.support.small_table import SmallTable, base_file, bucket_id, instant_at, log_file

if TYPE_CHECKING:
    from jobs.contract import WorkOrder

CONFIG = LeaseConfig(timedelta(seconds=30), 3600.0, BackOff())
PRUNE_EVERY_MINUTES = 10


@dataclass
class Figures:
    """Sizes are in bytes; `settled` is the size at which the database stops growing, because rows are deleted after the
    time in the settings."""

    tables: int
    hours: float
    commits: int
    jobs: int
    database_before: int
    database: int
    bytes_per_commit: float
    rows: dict[str, int]
    settled_bytes: int


class Day:
    def __init__(self, folder: Path, count: int, database: str) -> None:
        self.engine = open_engine(database)
        self.notifier = Notifier()
        self.now = utc_now()
        self.rng = random.Random(1)
        self.plans = scheduler.SchedulerConfig()
        self.cipher = SecretCipher.fresh()
        self.database = Database(self.engine, self.clock, self.notifier, self.cipher)
        self.ids = register(self.engine, lay(folder / "lake", count))
        self.order = list(self.ids)
        self.id_of = {str(base): table_id for table_id, base in self.ids.items()}
        self.counts: Counter[str] = Counter()

    def clock(self) -> datetime:
        return self.now

    def look(self, table_id: str) -> None:
        with reading(self.engine) as connection:
            watch = watch_store.get(connection, table_id)
        poll_table(self.engine, self.clock, watch, TableReader(self.engine, {}, 100 * 1024 * 1024))

    def minute(self, number: int) -> None:
        """Makes one commit for each hundred tables, spread over the minute, and then all due work."""
        for each in range(max(1, len(self.order) // 100)):
            self.now += timedelta(seconds=60 / max(1, len(self.order) // 100))
            table_id = self.order[(number * len(self.order) // 100 + each) * 7919 % len(self.order)]
            self.write(table_id)
            self.look(table_id)
        self.serve()
        if number % PRUNE_EVERY_MINUTES == 0:
            chosen = Settings()
            keep = [timedelta(days=days) for days in (chosen.history_days, chosen.commit_days, chosen.events_days)]
            retention.run_once(self.engine, self.clock, retention.Keep(*keep))

    def serve(self) -> None:
        """Decides and works until no work is left."""
        while True:
            scheduler.run_once(self.database, self.plans)
            taken = self.lease()
            if taken is None:
                return
            while taken:
                self.work(taken)
                taken = self.lease()

    def lease(self) -> WorkOrder | None:
        return leases.lease(
            self.database,
            CONFIG,
            worker_id="w1",
            group=DEFAULT_GROUP,
            permissions=Permissions(),
        )

    def write(self, table_id: str) -> None:
        table, instant = self.table(table_id), instant_at(self.now)
        table.begin(instant)
        files = {PARTITIONS[0]: {log_file(bucket_id(bucket), instant): 500 for bucket in range(BUCKETS)}}
        table.commit(instant, files, completed=instant_at(self.now + timedelta(milliseconds=500)))
        self.counts["commits"] += 1

    def work(self, taken: WorkOrder) -> None:
        """Reports as a worker does, and writes the job's instants to the timeline."""
        instant = instant_at(self.now)
        progress = Progress("working", 1, 8, 10_000, 80_000)
        beat = Heartbeat(taken.attempt, progress, (instant,))
        leases.heartbeat(self.database, CONFIG, job_id=taken.job_id, beat=beat)
        self.now += timedelta(milliseconds=700)
        table_id = self.id_of[taken.table.base_path]
        table = self.table(table_id)
        if taken.kind is JobKind.COMPACTION:
            files = {PARTITIONS[0]: {base_file(bucket_id(bucket), instant): 4000 for bucket in range(BUCKETS)}}
            table.begin(instant, "compaction")
            completed = instant_at(self.now)
            table.commit(instant, files, action="commit", operation="COMPACT", completed=completed)
        else:
            table.clean(instant, PARTITIONS)
        details = {"files_read": 40, "files_written": 4, "bytes_read": 80_000, "bytes_written": 16_000, "seconds": 0.7}
        result = Result(Outcome.SUCCEEDED, details=details, instants=(instant,))
        leases.report(
            self.database,
            self.rng,
            CONFIG,
            job_id=taken.job_id,
            attempt=taken.attempt,
            result=result,
        )
        self.look(table_id)
        self.counts["jobs"] += 1

    def table(self, table_id: str) -> SmallTable:
        return SmallTable.standing(self.ids[table_id])


def measure(folder: Path, count: int, hours: float, database: str) -> Figures:
    day = Day(folder, count, database)
    for table_id in day.order:
        day.look(table_id)
    day.serve()
    day.counts.clear()
    before = database_bytes(day.engine)
    minutes = round(hours * 60)
    for number in range(minutes):
        if number % 60 == 0:
            log_progress(f"{number // 60} hours: {dict(day.counts)}")
        day.minute(number)
    after = database_bytes(day.engine)
    growth = (after - before) / (hours / 24)
    names = ("commits", "jobs", "job_attempts", "decisions", "events")
    return Figures(
        tables=count,
        hours=hours,
        commits=day.counts["commits"],
        jobs=day.counts["jobs"],
        database_before=before,
        database=after,
        bytes_per_commit=round((after - before) / day.counts["commits"], 1),
        rows={name: _rows(day, name) for name in names},
        # The estimate is an upper limit, because commits are kept longest.
        settled_bytes=round(before + growth * Settings().commit_days),
    )


def _rows(day: Day, name: str) -> int:
    with reading(day.engine) as connection:
        return int(
            connection.execute(sa.select(sa.func.count()).select_from(schema.metadata.tables[name])).scalar_one()
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--database", help="SQLAlchemy URL of an empty database. Default: SQLite")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gk-a-day-"))
    try:
        found = measure(folder, chosen.tables, chosen.hours, chosen.database or f"sqlite:///{folder}/gk.db")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(asdict(found), indent=None if chosen.json else 2), flush=True)


if __name__ == "__main__":
    main()
