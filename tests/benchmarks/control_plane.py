"""Measures one service that watches very many tables: its cost, how soon it sees a commit, and how fast it answers
meanwhile.

    python tests/benchmarks/control_plane.py --minutes 5 --json
    python tests/benchmarks/control_plane.py --replicas 2

The tables lie on this disk, with the timelines and file names of Hudi 1.2 (`tests.support.small_table`). The store adds
them to the database; REST would examine each of them. Then a real `groundskeeper serve` polls each of them every
minute. Meanwhile writers commit, and Hudi's callback follows each commit; jobs are submitted, and leased and ended by
workers without Spark; and clients make every sort of call. The default numbers are those that Uber has published about
its tables: 19 500 of them, 350 000 commits and 70 000 jobs a day. Several replicas share a PostgreSQL of their own.

The callers run in four processes. In one process their threads would wait for each other, and count that as time of the
service. The callers still share the processors with the service: the time of a call includes the caller's own
work, about a millisecond, and its wait for a processor. `callers_cpu_share` says how much of a core they take. The
same clients also call a server that does nothing, as often as the service (`control`): times
that the service has no part in.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from math import ceil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx
import sqlalchemy as sa

from jobs.contract import BucketIndex, Heartbeat, Outcome, Progress, Result, WorkOrder
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import migrate, schema
from service.db.engine import open_engine, reading, writing
from tests.acceptance.daemon import Daemon
from tests.benchmarks import process_tree
from tests.benchmarks.control_server import ControlServer
from tests.support import postgresql
from tests.support.small_table import SmallTable, base_file, bucket_id, instant_at, later, log_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from multiprocessing.connection import Connection

    from _typeshed import DataclassInstance
    from sqlalchemy import Engine

_TICKS = os.sysconf("SC_CLK_TCK")
_COMMITS_BEFORE = 20
_SWITCH_SECONDS = 0.0005  # The service sets the same; with Python's default of 5 ms threads wait longer for each other.
_forks = multiprocessing.get_context("fork")
PARTITIONS = ("dt=2026-01-01", "dt=2026-01-02")
BUCKETS = 4


@dataclass
class Times:
    """The distribution of the times of calls, in seconds."""

    count: int
    p50: float
    p99: float
    worst: float

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        ordered = sorted(seconds)
        p99 = statistics.quantiles(ordered, n=100)[98] if len(ordered) > 1 else ordered[0]
        return cls(len(ordered), round(statistics.median(ordered), 4), round(p99, 4), round(ordered[-1], 4))


@dataclass(frozen=True)
class Rates:
    tables: int
    commits_per_second: float
    jobs_per_second: float


@dataclass
class Figures:
    """`cpu_share` is of one core, of all replicas, and `callers_cpu_share` that of all callers. `load` is that of the
    machine at the beginning and at the end. `first_looks_cpu_seconds` is the CPU time of the service until each table
    was polled once. `failed` counts the calls that failed, by their sort and the problem. `overdue_seconds` is how late
    the latest table was polled; sizes are in bytes."""

    tables: int
    replicas: int
    minutes: float
    load: tuple[float, float]
    first_looks_seconds: float
    first_looks_cpu_seconds: float
    cpu_share: float
    callers_cpu_share: float
    commits: int
    missed: int
    failed: dict[str, int]
    jobs: int
    overdue_seconds: float
    lag: Times
    rest: dict[str, Times]
    memory: int
    database: int


def lay(root: Path, tables: int) -> list[Path]:
    """Makes the tables. One is written; the others are folders with links to its files."""
    model = SmallTable(root / "model")
    now = datetime.now(UTC) - timedelta(hours=1)
    for number in range(_COMMITS_BEFORE):
        instant = instant_at(now + timedelta(seconds=2 * number))
        name = base_file if number == 0 else log_file
        written = {path: {name(bucket_id(b), instant): 1000 * (b + 1) for b in range(BUCKETS)} for path in PARTITIONS}
        model.begin(instant)
        model.commit(instant, written, completed=later(instant, 500))
    shutil.rmtree(root / "model" / ".hoodie" / ".heartbeat", ignore_errors=True)
    found = sorted(model.base.rglob("*"))
    folders = [each.relative_to(model.base) for each in found if each.is_dir()]
    files = [(str(each), str(each.relative_to(model.base))) for each in found if not each.is_dir()]
    bases = [root / f"{number // 100:04d}" / f"t{number:06d}" for number in range(tables)]
    for base in bases:
        for folder in (Path(), *folders):
            (base / folder).mkdir(parents=True)
        for file, name in files:
            os.link(file, f"{base}/{name}")
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


class Callers:
    """Threads that call the replicas in turn until they are stopped. `seconds` are the times of their calls, `failed`
    counts those that failed, and `done` is what they have done."""

    done: Any = None

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._random = Random(0)
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.failed: Counter[str] = Counter()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _each(self, pause: float, step: Callable[[int, Sequence[httpx.Client]], None]) -> None:
        """Calls `step` with an increasing number in a thread of its own, after each `pause`. The first pause is shorter
        by a random part, because independent clients do not all call at the same moment."""
        first = pause * self._random.random()

        def run() -> None:
            clients = [httpx.Client(base_url=url, timeout=20) for url in self._urls]
            self._ended.wait(first)
            for number in count():
                if self._ended.wait(pause):
                    return
                with suppress(httpx.HTTPError):  # `_timed` has counted the failure.
                    step(number, clients[number % len(clients) :] + clients[: number % len(clients)])

        self._threads.append(threading.Thread(target=run, daemon=True))

    def _timed(self, name: str, call: Callable[[], httpx.Response]) -> httpx.Response:
        began = time.perf_counter()
        try:
            return call().raise_for_status()
        except httpx.HTTPStatusError as error:
            self.failed[f"{name}: {error.response.status_code} {error.response.json()['type']}"] += 1
            raise
        except httpx.HTTPError as error:
            self.failed[f"{name}: {type(error).__name__}"] += 1
            raise
        finally:
            self.seconds[name].append(time.perf_counter() - began)


@dataclass
class Called:
    """The results of callers in a process of their own, which they send at their end."""

    seconds: dict[str, list[float]]
    failed: Counter[str]
    done: Any
    cpu_seconds: float


class Apart:
    """Callers in a process of their own, which start at once."""

    def __init__(self, make: Callable[[], Callers]) -> None:
        self._ours, theirs = _forks.Pipe()
        self._process = _forks.Process(target=_call, args=(make, theirs), daemon=True)
        self._process.start()
        # Without this an end of the process would not end the wait for it.
        theirs.close()

    def stop(self) -> Called:
        self._ours.send(None)
        called = self._ours.recv()
        assert isinstance(called, Called)
        self._process.join()
        return called


def _call(make: Callable[[], Callers], connection: Connection[Called, None]) -> None:
    sys.setswitchinterval(_SWITCH_SECONDS)
    callers = make()
    # The collector would stop the callers for as long as many a call takes.
    gc.collect()
    gc.freeze()
    began = time.process_time()
    callers.start()
    connection.recv()
    cpu_seconds = time.process_time() - began
    callers.stop()
    connection.send(Called(dict(callers.seconds), callers.failed, callers.done, cpu_seconds))


class Writers(Callers):
    """Commit to one table after the other, `per_minute` of them, and call back as Hudi does."""

    def __init__(self, urls: Sequence[str], ids: dict[str, Path], per_minute: float) -> None:
        super().__init__(urls)
        self._ids = list(ids.items())
        self.done = self.committed = dict[tuple[str, str], datetime]()
        # A single thread would be late with so many commits.
        threads = ceil(per_minute / 120)
        for first in range(threads):
            self._each(60 * threads / per_minute, partial(self._commit, first=first, threads=threads))

    def _commit(self, number: int, clients: Sequence[httpx.Client], *, first: int, threads: int) -> None:
        # The order is random, so that polls and commits are independent.
        table_id, base = self._ids[(number * threads + first) * 7919 % len(self._ids)]
        table = SmallTable.standing(base)
        instant = instant_at(datetime.now(UTC))
        table.begin(instant)
        files = {PARTITIONS[0]: {log_file(bucket_id(bucket), instant): 500 for bucket in range(BUCKETS)}}
        table.commit(instant, files, completed=instant_at(datetime.now(UTC)))
        self.committed[table_id, instant] = datetime.now(UTC)
        message = {"commitTime": instant, "tableName": base.name, "basePath": str(base), "hoodieWriteStat": []}
        self._timed("callback", lambda: clients[0].post("/v1/callbacks/hudi", json=message))


class Workers(Callers):
    """Submit `per_minute` jobs, and lease, beat and end them as a worker with four slots does, without Spark."""

    _SLOTS = 4
    _JOB_SECONDS = 2.0
    _LEASE: ClassVar = {"worker_id": "benchmark", "worker": {"slots": _SLOTS, "state": "ready"}}

    def __init__(self, urls: Sequence[str], ids: Iterable[str], per_minute: float) -> None:
        super().__init__(urls)
        self._ids = list(ids)
        self.done = 0  # ended jobs
        self._each(60 / per_minute, self._submit)
        for _ in range(self._SLOTS):
            self._each(0.25, self._work)

    def _submit(self, number: int, clients: Sequence[httpx.Client]) -> None:
        table_id = self._ids[number * 4421 % len(self._ids)]
        body = {"kind": ("audit", "cleaning")[number % 2]}
        self._timed("submit a job", lambda: clients[0].post(f"/v1/tables/{table_id}/jobs", json=body))

    def _work(self, _number: int, clients: Sequence[httpx.Client]) -> None:
        http = clients[0]
        leased = self._timed("lease", lambda: http.post("/v1/worker/leases", json=self._LEASE))
        if leased.status_code != httpx.codes.OK:
            return
        order = WorkOrder.from_json(leased.json()["plan"])
        path = f"/v1/worker/leases/{order.job_id}"
        progress = Heartbeat(order.attempt, Progress("at work", 1, 2))
        for _ in range(2):
            self._timed("heartbeat", lambda: http.post(f"{path}/heartbeat", json=progress.to_json()))
            time.sleep(self._JOB_SECONDS / 2)
        report = {"attempt": order.attempt, "result": Result(Outcome.SUCCEEDED).to_json()}
        self._timed("result", lambda: http.post(f"{path}/result", json=report))
        self.done += 1


Call = Callable[[httpx.Client, int], httpx.Response]


def sorts_of_calls(ids: Iterable[str]) -> dict[int, dict[str, Call]]:
    """Returns every sort of call, by how often each client makes it in a second."""
    every = list(ids)
    body = {"kind": "compaction", "dry_run": True}

    def table(step: int, factor: int, more: str = "") -> str:
        return f"/v1/tables/{every[step * factor % len(every)]}{more}"

    often: dict[str, Call] = {
        "list": lambda http, _: http.get("/v1/tables", params={"limit": 100}),
        "get": lambda http, n: http.get(table(n, 31)),
        "submit": lambda http, n: http.post(table(n, 37, "/jobs"), json=body),
        "commits": lambda http, _: http.get("/v1/commits", params={"limit": 100}),
        "snapshot": lambda http, n: http.get(table(n, 41, "/snapshot")),
    }
    seldom: dict[str, Call] = {
        "overview": lambda http, _: http.get("/v1/overview"),
        "problems": lambda http, _: http.get("/v1/problems"),
        "jobs": lambda http, _: http.get("/v1/jobs", params={"limit": 100}),
        "queued jobs": lambda http, _: http.get("/v1/jobs", params={"state": "queued"}),
        "workers": lambda http, _: http.get("/v1/workers"),
        "demand": lambda http, _: http.get("/v1/workers/demand"),
        "decisions": lambda http, n: http.get(table(n, 43, "/decisions")),
        "policy": lambda http, n: http.get(table(n, 47, "/policy")),
        "timeline": lambda http, n: http.get(table(n, 53, "/timeline")),
        "incidents": lambda http, _: http.get("/v1/incidents"),
        "metrics": lambda http, _: http.get("/metrics"),
    }
    return {10: often, 2: seldom}


class Clients(Callers):
    """Clients make each sort of call over kept connections: five sorts ten times a second, the other sorts twice a
    second. `rates` selects among these two. `control` is the URL of a server that does nothing, which is called as
    well at each of the rates."""

    def __init__(
        self,
        urls: Sequence[str],
        ids: Iterable[str],
        rates: Sequence[int] = (10, 2),
        control: str | None = None,
    ) -> None:
        super().__init__(urls)
        for rate, calls in sorts_of_calls(ids).items():
            for name, call in calls.items() if rate in rates else ():
                self._each(1 / rate, partial(self._call, name=name, call=call))
            if control and rate in rates:
                name = f"control, {rate} a second"
                self._each(1 / rate, partial(self._call, name=name, call=lambda http, _: http.get(control)))

    def _call(
        self,
        number: int,
        clients: Sequence[httpx.Client],
        *,
        name: str,
        call: Call,
    ) -> None:
        self._timed(name, lambda: call(clients[0], number))


def measure(folder: Path, rates: Rates, minutes: float, database: str, replicas: int) -> Figures:
    engine = open_engine(database)
    log_progress(f"laying {rates.tables} tables")
    ids = register(engine, lay(folder / "lake", rates.tables))
    load = os.getloadavg()[0]
    with ExitStack() as stack:
        settings = {"workers": "0", "database": database, "log_level": "WARNING"}
        daemons = [stack.enter_context(Daemon(folder / f"service{number}", **settings)) for number in range(replicas)]
        urls = [each.url for each in daemons]
        control = stack.enter_context(ControlServer()).url
        began = time.monotonic()
        while (left := rates.tables - looked_at(engine)) > 0:
            log_progress(f"first looks: {left} left")
            time.sleep(2)
        first_looks, first_cpu = time.monotonic() - began, sum(map(_cpu_seconds, daemons))
        # Most tables have become due again meanwhile.
        while _overdue(engine) > 1:
            time.sleep(2)
        log_progress(f"first looks took {first_looks:.0f} s; measuring for {minutes:g} minutes")
        cpu, began = sum(map(_cpu_seconds, daemons)), time.monotonic()
        overdue = 0.0
        apart = [
            Apart(partial(Writers, urls, ids, 60 * rates.commits_per_second)),
            Apart(partial(Workers, urls, ids, 60 * rates.jobs_per_second)),
            *(Apart(partial(Clients, urls, ids, rates=(rate,), control=control)) for rate in (10, 2)),
        ]
        while time.monotonic() - began < minutes * 60:
            time.sleep(5)
            overdue = max(overdue, _overdue(engine))
        took = time.monotonic() - began
        share = (sum(map(_cpu_seconds, daemons)) - cpu) / took
        writers, workers, *clients = [each.stop() for each in apart]
        called = (writers, workers, *clients)
        time.sleep(5)
        bytes_used = sum(process_tree.memory(each.process.pid) for each in daemons)
    found = delays_until_seen(engine, writers.done)
    return Figures(
        tables=rates.tables,
        replicas=replicas,
        minutes=minutes,
        load=(round(load, 1), round(os.getloadavg()[0], 1)),
        first_looks_seconds=round(first_looks, 1),
        first_looks_cpu_seconds=round(first_cpu, 1),
        cpu_share=round(share, 3),
        callers_cpu_share=round(sum(each.cpu_seconds for each in called) / took, 3),
        commits=len(writers.done),
        missed=len(writers.done) - len(found),
        failed=dict(sum((each.failed for each in called), Counter())),
        jobs=workers.done,
        overdue_seconds=round(overdue, 1),
        lag=Times.of(found),
        rest={name: Times.of(seconds) for each in called for name, seconds in each.seconds.items()},
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


def delays_until_seen(engine: Engine, committed: dict[tuple[str, str], datetime]) -> list[float]:
    commits = schema.commits
    with reading(engine) as connection:
        rows = connection.execute(sa.select(commits.c.table_id, commits.c.requested_time, commits.c.seen_at))
        seen = {(row.table_id, row.requested_time): row.seen_at for row in rows}
    return [(seen[key] - at).total_seconds() for key, at in committed.items() if key in seen]


def _cpu_seconds(daemon: Daemon) -> float:
    """Returns the CPU time of the process and all below it, ended children included."""
    total = 0
    for each in process_tree.tree(daemon.process.pid):
        # A process may have ended since it was listed.
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, fields[11:15]))
    return total / _TICKS


def database_bytes(engine: Engine) -> int:
    if engine.dialect.name == "sqlite":
        return sum(path.stat().st_size for path in Path(str(engine.url.database)).parent.glob("*.db*"))
    with reading(engine) as connection:
        return int(connection.execute(sa.text("SELECT pg_database_size(current_database())")).scalar_one())


def log_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=19_500)
    parser.add_argument("--commits-per-second", type=float, default=4.05)
    parser.add_argument("--jobs-per-second", type=float, default=0.81)
    parser.add_argument("--replicas", type=int, default=1, help="more than one share a PostgreSQL")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--database", help="SQLAlchemy URL of an empty database. Default: SQLite, or a new PostgreSQL")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gk-control-plane-"))
    try:
        with ExitStack() as stack:
            database = chosen.database or f"sqlite:///{folder}/gk.db"
            if chosen.replicas > 1 and not chosen.database:
                database = stack.enter_context(postgresql.running()).new_database()
            rates = Rates(chosen.tables, chosen.commits_per_second, chosen.jobs_per_second)
            print_figures(measure(folder, rates, chosen.minutes, database, chosen.replicas), as_json=chosen.json)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def print_figures(found: DataclassInstance, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(found)), flush=True)
        return
    for name, value in asdict(found).items():
        print(f"{name:>20}  {value}", flush=True)


if __name__ == "__main__":
    main()
