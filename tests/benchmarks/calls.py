"""Measures the CPU time of a service for each sort of call of `control_plane.py`, one call at a time.

    python tests/benchmarks/calls.py --tables 19500 --folder /tmp/fleet
    python tests/benchmarks/calls.py --tables 3000 --folder /tmp/fleet --database postgresql://gk@/fleet

Other work on the machine hardly changes the CPU time, so two versions of the code can be compared on a busy machine.
Nothing else happens in the service meanwhile: the tables are not polled again and no jobs are due. The tables and the
database stay in the folder, and the next run uses them again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx

from service.db.engine import open_engine
from tests.acceptance.daemon import JSON, Daemon
from tests.benchmarks.control_plane import lay, log_progress, looked_at, register, sorts_of_calls
from tests.support.small_table import SmallTable, instant_at

_QUIET = {
    "workers": "0",
    "log_level": "WARNING",
    "poll_seconds": "86400",
    "problem_seconds": "600",
    "plan_seconds": "3600",
}
_TICKS = os.sysconf("SC_CLK_TCK")
_COMMITS = 200


def prepare(folder: Path, tables: int, settings: dict[str, str]) -> None:
    """Makes the tables, has each polled once, and commits to some of them, so that lists have a whole page."""
    ids = register(open_engine(settings["database"]), lay(folder / "lake", tables))
    engine = open_engine(settings["database"])
    with Daemon(folder / "service", **settings | {"problem_seconds": "10"}) as daemon:
        while (left := tables - looked_at(engine)) > 0:
            log_progress(f"first looks: {left} left")
            time.sleep(2)
        for number, (table_id, base) in enumerate(list(ids.items())[:_COMMITS]):
            table, instant = SmallTable.standing(base), instant_at(datetime.now(UTC))
            table.begin(instant)
            table.commit(instant, {}, completed=instant_at(datetime.now(UTC)))
            daemon.call("POST", f"/v1/tables/{table_id}/poll").raise_for_status()
            body = {"kind": "cleaning", "dry_run": number % 2 == 0}
            daemon.call("POST", f"/v1/tables/{table_id}/jobs", body).raise_for_status()
        while not daemon.call("GET", "/v1/overview").json()["problems"]["as_of"]:
            time.sleep(1)
        time.sleep(12)


def measure(folder: Path, settings: dict[str, str], times: int) -> dict[str, dict[str, float]]:
    """Returns for each sort of call the median milliseconds: CPU time of the service's process, CPU time of the thread
    that answers, and time on the clock."""
    engine = open_engine(settings["database"])
    ids = [f"tbl_t{number:06d}" for number in range(looked_at(engine))]
    found = {}
    with (
        Daemon(folder / "service", **settings) as daemon,
        httpx.Client(base_url=daemon.url, headers=JSON, timeout=60) as http,
    ):
        time.sleep(10)
        calls = {name: call for of_rate in sorts_of_calls(ids).values() for name, call in of_rate.items()}
        for name, call in calls.items():
            for number in range(10):
                call(http, number).raise_for_status()
            seconds, of_thread, before = [], [], _cpu_seconds(daemon)
            for number in range(times):
                began = time.perf_counter()
                answer = call(http, number + 10)
                seconds.append(time.perf_counter() - began)
                of_thread.append(_part(answer, "cpu"))
            cpu = 1000 * (_cpu_seconds(daemon) - before) / times
            found[name] = {
                "cpu": round(cpu, 2),
                "thread": round(statistics.median(of_thread), 2),
                "p50": round(1000 * statistics.median(seconds), 2),
            }
            log_progress(f"{name:>12}  {found[name]}")
    return found


def _part(answer: httpx.Response, name: str) -> float:
    parts = dict(each.strip().split(";dur=") for each in answer.headers.get("server-timing", "").split(",") if each)
    return float(parts.get(name, 0.0))


def _cpu_seconds(daemon: Daemon) -> float:
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / _TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=19_500)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--database", help="SQLAlchemy URL of an empty database, later the same. Default: SQLite")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--only-prepare", action="store_true")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    settings = _QUIET | {"database": chosen.database or f"sqlite:///{chosen.folder}/gk.db"}
    if not (chosen.folder / "prepared").exists():
        prepare(chosen.folder, chosen.tables, settings)
        (chosen.folder / "prepared").touch()
    if not chosen.only_prepare:
        print(json.dumps(measure(chosen.folder, settings, chosen.times)), flush=True)


if __name__ == "__main__":
    main()
