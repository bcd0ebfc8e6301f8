"""One service that watches very many tables: what it costs, how soon it sees a commit, how fast it answers meanwhile.

    python tests/benchmarks/control_plane.py --tables 10000 --minutes 5 --json

The tables lie on this disk, with the timelines and file names of Hudi 1.2 (`tests.small_table`). They are put into the
database by the store, not over REST, which would examine each. Then a real `groundskeeper serve` polls each of them
every minute, while 1 % of them commit each minute, each followed by Hudi's callback, and clients list, get and submit.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx
import sqlalchemy as sa

from jobs.contract import BucketIndex
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import migrate, schema
from service.db.engine import open_engine, reading, writing
from tests.acceptance.daemon import Daemon
from tests.benchmarks import process_tree
from tests.small_table import SmallTable, base_file, bucket_id, instant_at, later, log_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import DataclassInstance
    from sqlalchemy import Engine

_TICKS = os.sysconf("SC_CLK_TCK")
_COMMITS_BEFORE = 20
PARTITIONS = ("dt=2026-01-01", "dt=2026-01-02")
BUCKETS = 4


@dataclass
class Times:
    """Seconds."""

    count: int
    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        ordered = sorted(seconds)
        p99 = statistics.quantiles(ordered, n=100)[98] if len(ordered) > 1 else ordered[0]
        return cls(len(ordered), round(statistics.median(ordered), 4), round(p99, 4), round(ordered[-1], 4))


@dataclass
class Figures:
    """`cpu_share` is of one core. `overdue_seconds` is how late the latest table was polled; sizes are in bytes."""

    tables: int
    minutes: float
    first_looks_seconds: float
    cpu_share: float
    commits: int
    missed: int
    overdue_seconds: float
    lag: Times
    rest: dict[str, Times]
    memory: int
    database: int


def lay(root: Path, count: int) -> list[Path]:
    """The tables. One is written; the others consist of links to its files, in folders of their own."""
    model = SmallTable(root / "model")
    now = datetime.now(UTC) - timedelta(hours=1)
    for number in range(_COMMITS_BEFORE):
        instant = instant_at(now + timedelta(seconds=2 * number))
        name = base_file if number == 0 else log_file
        files = {path: {name(bucket_id(b), instant): 1000 * (b + 1) for b in range(BUCKETS)} for path in PARTITIONS}
        model.begin(instant)
        model.commit(instant, files, completed=later(instant, 500))
    shutil.rmtree(root / "model" / ".hoodie" / ".heartbeat", ignore_errors=True)
    bases = [root / f"{number // 100:04d}" / f"t{number:06d}" for number in range(count)]
    for base in bases:
        shutil.copytree(model.base, base, copy_function=os.link)
    return bases


def register(engine: Engine, bases: list[Path]) -> dict[str, Path]:
    migrate.upgrade(engine)
    now = datetime.now(UTC)
    ids = {f"tbl_{base.name}": base for base in bases}
    with writing(engine) as connection:
        for table_id, base in ids.items():
            table_store.register(
                connection,
                Registration(table_id, str(base), base.name, now, now, index=BucketIndex(BUCKETS, ("id",))),
            )
    return ids


class Writers:
    """Commit to one table after the other, `per_minute` of them, and call back as Hudi does."""

    def __init__(self, url: str, ids: dict[str, Path], per_minute: float) -> None:
        self._http = httpx.Client(base_url=url, timeout=20)
        self._ids = list(ids.items())
        self._pause = 60 / per_minute
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.committed: dict[tuple[str, str], datetime] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._ended.wait(self._pause):
            # All over the place, so that polls and commits have nothing to do with each other.
            table_id, base = self._ids[number * 7919 % len(self._ids)]
            number += 1
            self._commit(table_id, base)

    def _commit(self, table_id: str, base: Path) -> None:
        table = SmallTable.standing(base)
        instant = instant_at(datetime.now(UTC))
        table.begin(instant)
        files = {PARTITIONS[0]: {log_file(bucket_id(bucket), instant): 500 for bucket in range(BUCKETS)}}
        table.commit(instant, files, completed=instant_at(datetime.now(UTC)))
        self.committed[table_id, instant] = datetime.now(UTC)
        message = {"commitTime": instant, "tableName": base.name, "basePath": str(base), "hoodieWriteStat": []}
        self._http.post("/v1/callbacks/hudi", json=message).raise_for_status()


class Clients:
    """Each sort of call is made ten times a second, over a kept connection."""

    def __init__(self, url: str, ids: dict[str, Path]) -> None:
        self._ended = threading.Event()
        every = list(ids)
        self.seconds: dict[str, list[float]] = {"list": [], "get": [], "submit": [], "commits": [], "snapshot": []}

        def calls(http: httpx.Client) -> dict[str, Callable[[int], httpx.Response]]:
            body = {"kind": "compaction", "dry_run": True}
            return {
                "list": lambda _: http.get("/v1/tables", params={"limit": 100}),
                "get": lambda n: http.get(f"/v1/tables/{every[n * 31 % len(every)]}"),
                "submit": lambda n: http.post(f"/v1/tables/{every[n * 37 % len(every)]}/jobs", json=body),
                "commits": lambda _: http.get("/v1/commits", params={"limit": 100}),
                "snapshot": lambda n: http.get(f"/v1/tables/{every[n * 41 % len(every)]}/snapshot"),
            }

        def run(name: str) -> None:
            with httpx.Client(base_url=url, timeout=20) as http:
                call = calls(http)[name]
                number = 0
                while not self._ended.wait(0.1):
                    began = time.perf_counter()
                    call(number).raise_for_status()
                    self.seconds[name].append(time.perf_counter() - began)
                    number += 1

        self._threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in self.seconds]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


def measure(folder: Path, count: int, minutes: float, database: str) -> Figures:
    engine = open_engine(database)
    say(f"laying {count} tables")
    ids = register(engine, lay(folder / "lake", count))
    with Daemon(folder / "service", workers="0", database=database, log_level="WARNING") as daemon:
        url = daemon.url
        began = time.monotonic()
        while (left := count - looked_at(engine)) > 0:
            say(f"first looks: {left} left")
            time.sleep(2)
        first_looks = time.monotonic() - began
        # Meanwhile most tables have become due again.
        while _overdue(engine) > 1:
            time.sleep(2)
        writers, clients = Writers(url, ids, count / 100), Clients(url, ids)
        # The collector would stop the clients for as long as many a call takes.
        gc.collect()
        gc.freeze()
        say(f"first looks took {first_looks:.0f} s; measuring for {minutes:g} minutes")
        cpu, began = _cpu_seconds(daemon.process.pid), time.monotonic()
        overdue = 0.0
        writers.start()
        clients.start()
        while time.monotonic() - began < minutes * 60:
            time.sleep(5)
            overdue = max(overdue, _overdue(engine))
        share = (_cpu_seconds(daemon.process.pid) - cpu) / (time.monotonic() - began)
        writers.stop()
        clients.stop()
        time.sleep(5)
        bytes_used = process_tree.memory(daemon.process.pid)
    found = lags(engine, writers.committed)
    return Figures(
        tables=count,
        minutes=minutes,
        first_looks_seconds=round(first_looks, 1),
        cpu_share=round(share, 3),
        commits=len(writers.committed),
        missed=len(writers.committed) - len(found),
        overdue_seconds=round(overdue, 1),
        lag=Times.of(found),
        rest={name: Times.of(seconds) for name, seconds in clients.seconds.items()},
        memory=bytes_used,
        database=database_bytes(engine),
    )


def looked_at(engine: Engine) -> int:
    watches = schema.watches
    with reading(engine) as connection:
        query = sa.select(sa.func.count()).where(watches.c.looked_at.is_not(None) | (watches.c.failures > 0))
        return int(connection.execute(query).scalar_one())


def _overdue(engine: Engine) -> float:
    with reading(engine) as connection:
        due = connection.execute(sa.select(sa.func.min(schema.watches.c.next_poll_at))).scalar_one()
    due = datetime.fromisoformat(due) if isinstance(due, str) else due
    return (datetime.now(UTC) - (due if due.tzinfo else due.replace(tzinfo=UTC))).total_seconds()


def lags(engine: Engine, committed: dict[tuple[str, str], datetime]) -> list[float]:
    commits = schema.commits
    with reading(engine) as connection:
        rows = connection.execute(sa.select(commits.c.table_id, commits.c.requested_time, commits.c.seen_at))
        seen = {(row.table_id, row.requested_time): row.seen_at for row in rows}
    return [(seen[key] - at).total_seconds() for key, at in committed.items() if key in seen]


def _cpu_seconds(pid: int) -> float:
    """Of the process and all below it, ended children included."""
    total = 0
    for each in process_tree.tree(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += sum(map(int, fields[11:15]))
    return total / _TICKS


def database_bytes(engine: Engine) -> int:
    if engine.dialect.name == "sqlite":
        return sum(path.stat().st_size for path in Path(str(engine.url.database)).parent.glob("*.db*"))
    with reading(engine) as connection:
        return int(connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one())


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--database", help="SQLAlchemy URL of an empty database. Default: SQLite")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gk-control-plane-"))
    try:
        database = chosen.database or f"sqlite:///{folder}/gk.db"
        tell(measure(folder, chosen.tables, chosen.minutes, database), as_json=chosen.json)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tell(found: DataclassInstance, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(found)), flush=True)
        return
    for name, value in asdict(found).items():
        print(f"{name:>20}  {value}", flush=True)


if __name__ == "__main__":
    main()
