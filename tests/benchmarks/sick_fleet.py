"""Measures what sick tables cost the others: 40 healthy tables with a writer and 8 sick ones share one slot, whose
worker has a standby.

    python tests/benchmarks/sick_fleet.py [--minutes 15] [--healthy 40] [--lock-hosts] [--json]

The sick tables have the lock of a dead writer, a lock server that accepts connections and never answers, files that
cannot be written, no files any more, a damaged file of the timeline, a base file that is not Parquet, a job that hangs
until its timeout, and a job that kills its worker each time. After three fifths of the time all are repaired, and the
service is asked to poll them (`POST /v1/tables/{id}/poll`, which earlier versions do not have). Without `--lock-hosts`
the service may not connect to lock servers, so only attempts find out that one does not answer.

All tables are real Hudi tables, copies of one. The writer writes to the healthy tables one after the other, and every
20 seconds somebody submits a cleaning of one of them. The program ends with 1 unless the sick tables had at most a
tenth of the slot-seconds and each healthy table had a job.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from jobs.hudi.session import start_session
from tests.acceptance.daemon import Daemon
from tests.integration import tables

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

SETTINGS = {
    "automatic": "true",
    "poll_seconds": "10",
    "plan_seconds": "0.5",
    "lease_seconds": "10",
    "recover_seconds": "1",
    "problem_seconds": "2",
    "slots": "1",
    "standby_workers": "1",
    "log_level": "INFO",
}
POLICY = {
    "compaction": {"commits": 1, "min_interval_seconds": 0},
    "cleaning": {"commits": 3, "retain": 2, "min_interval_seconds": 0},
    "audit": {"enabled": False},
}
TIMEOUT_SECONDS = 20
SUBMIT_SECONDS = 20.0
_CAP_DAC_OVERRIDE = 1
_PR_CAPBSET_DROP = 24


@dataclass
class Sick:
    """A sick table. `harm` makes the table sick, `mend` repairs it; `kinds` are the kinds of jobs that fail."""

    name: str
    base: Path
    harm: Callable[[], None]
    mend: Callable[[], None]
    id: str = ""
    named: dict[str, float] = field(default_factory=dict)
    first_detail: str = ""
    green_after: float | None = None


class Fleet:
    def __init__(self, folder: Path, healthy: int, daemon: Daemon, model: Path) -> None:
        self.folder, self.daemon = folder, daemon
        self.ids: dict[str, Path] = {}
        self.beats: list[Path] = []
        self.silent = socket.socket()
        self.silent.bind(("127.0.0.1", 0))
        self.silent.listen(128)
        for number in range(healthy):
            base = folder / f"healthy_{number:02}"
            shutil.copytree(model, base)
            self.ids[daemon.register(base)] = base
        self.kills = threading.Event()
        self.killed_at: list[datetime] = []
        self.asked: tuple[str, tuple[str, str, Json]] | None = None
        self.sick = [self._sick(name, model) for name in SICKNESSES]

    def _sick(self, name: str, model: Path) -> Sick:
        base = self.folder / name
        shutil.copytree(model, base)
        lock: Json = {}
        if name == "silent_lock_server":
            lock = {"lock": {"provider": "zookeeper", "options": self._silent_lock()}}
        harm, mend = SICKNESSES[name]
        sick = Sick(name, base, lambda: None, lambda: None)
        sick.id = self.daemon.register(base, **lock)
        sick.harm, sick.mend = (lambda: harm(self, sick)), (lambda: mend(self, sick))
        return sick

    def _silent_lock(self) -> dict[str, str]:
        return {
            "hoodie.write.lock.zookeeper.url": f"127.0.0.1:{self.silent.getsockname()[1]}",
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.zookeeper.lock_key": "t",
        }

    # -- how tables become sick, and are mended

    def hold_lock(self, sick: Sick) -> None:
        lock = sick.base / ".hoodie" / "lock"
        lock.touch()
        old = time.time() - 2400
        os.utime(lock, (old, old))

    def free_lock(self, sick: Sick) -> None:
        (sick.base / ".hoodie" / "lock").unlink()

    def use_a_file(self, sick: Sick) -> None:
        self.daemon.call("PATCH", f"/v1/tables/{sick.id}", {"lock": {"provider": "filesystem", "options": {}}})

    def forbid(self, sick: Sick) -> None:
        _chmod(sick.base, 0o555, 0o444)

    def allow(self, sick: Sick) -> None:
        _chmod(sick.base, 0o755, 0o644)

    def take_away(self, sick: Sick) -> None:
        sick.base.rename(sick.base.with_name(f".{sick.name}"))

    def bring_back(self, sick: Sick) -> None:
        sick.base.with_name(f".{sick.name}").rename(sick.base)

    def damage_timeline(self, sick: Sick) -> None:
        _damage(max((sick.base / ".hoodie" / "timeline").glob("*_*.deltacommit")))

    def damage_base_file(self, sick: Sick) -> None:
        for file in sick.base.rglob("*.parquet"):
            if ".hoodie" not in file.parts:
                _damage(file)

    def restore(self, sick: Sick) -> None:
        for kept in list(sick.base.rglob("*.kept")):
            kept.rename(kept.with_suffix(""))

    def begin_write(self, sick: Sick) -> None:
        """Begins a writer's instant with a heartbeat, for which an expansion waits."""
        timeline = sick.base / ".hoodie" / "timeline"
        last = max(timeline.glob("*.deltacommit.requested")).name.partition(".")[0]
        now = datetime.now(UTC)
        instant = f"{now:%Y%m%d%H%M%S}{now.microsecond // 1000:03d}"
        for state in ("requested", "inflight"):
            shutil.copy(timeline / f"{last}.deltacommit.{state}", timeline / f"{instant}.deltacommit.{state}")
        beat = sick.base / ".hoodie" / ".heartbeat" / instant
        beat.parent.mkdir(exist_ok=True)
        beat.touch()
        self.beats.append(beat)
        params = {"factor": 2, "wait_seconds": 600}
        job = self.submit(sick.id, "bucket_expansion", timeout_seconds=TIMEOUT_SECONDS, **params)
        assert job
        self.asked = (job, (sick.id, "bucket_expansion", params))

    def end_write(self, sick: Sick) -> None:
        for beat in self.beats:
            for file in (sick.base / ".hoodie" / "timeline").glob(f"{beat.name}.*"):
                file.unlink()
            beat.unlink(missing_ok=True)
        self.beats.clear()

    def begin_kills(self, sick: Sick) -> None:
        threading.Thread(target=self._kill_each, args=(sick,), daemon=True).start()

    def _kill_each(self, sick: Sick) -> None:
        killed: set[tuple[str, int]] = set()
        while not self.kills.wait(0.2):
            with suppress(Exception):
                found = self.daemon.call("GET", "/v1/jobs", params={"table_id": sick.id, "state": "running"}).json()
                for job in found["items"]:
                    if (attempt := (job["id"], job["attempt"])) not in killed:
                        killed.add(attempt)
                        # The id of a worker: host, process, and something random.
                        os.kill(int(job["worker_id"].split("-")[-2]), signal.SIGKILL)
                        self.killed_at.append(datetime.now(UTC))

    def end_kills(self, sick: Sick) -> None:
        self.kills.set()

    # -- calls

    def submit(self, table_id: str, kind: str, timeout_seconds: int | None = None, **params: Any) -> str | None:
        body = {"kind": kind, "params": params, "timeout_seconds": timeout_seconds}
        answer = self.daemon.call("POST", f"/v1/tables/{table_id}/jobs", body)
        return str(answer.json()["id"]) if answer.status_code == 202 else None

    def ask_again(self) -> None:
        """Submits the expansion again, because no policy repeats a submitted job that has finally failed."""
        if self.asked and self.daemon.job(self.asked[0])["state"] == "failed":
            table_id, kind, params = self.asked[1]
            self.submit(table_id, kind, timeout_seconds=TIMEOUT_SECONDS, **params)

    def problems(self, table_id: str) -> list[Json]:
        found: list[Json] = self.daemon.call("GET", "/v1/problems", params={"table_id": table_id}).json()["items"]
        # Problems such as `compaction-behind` are left out: in the long queue at the beginning every table has them.
        return [each for each in found if each["severity"] != "notice" and not each["kind"].endswith("-behind")]

    def jobs(self) -> list[Json]:
        found: list[Json] = []
        cursor: str | None = None
        while True:
            params = {"limit": "500", **({"cursor": cursor} if cursor else {})}
            page = self.daemon.call("GET", "/v1/jobs", params=params).json()
            found += page["items"]
            if (cursor := page["next_cursor"]) is None:
                return [self.daemon.job(each["id"]) for each in found if each["attempt"]]


def _nothing(fleet: Fleet, sick: Sick) -> None:
    pass


SICKNESSES: dict[str, tuple[Callable[[Fleet, Sick], None], Callable[[Fleet, Sick], None]]] = {
    "held_lock": (Fleet.hold_lock, Fleet.free_lock),
    "silent_lock_server": (_nothing, Fleet.use_a_file),
    "not_writable": (Fleet.forbid, Fleet.allow),
    "vanished": (Fleet.take_away, Fleet.bring_back),
    "damaged_timeline": (Fleet.damage_timeline, Fleet.restore),
    "always_fails": (Fleet.damage_base_file, Fleet.restore),
    "hangs_to_timeout": (Fleet.begin_write, Fleet.end_write),
    "kills_its_worker": (Fleet.begin_kills, Fleet.end_kills),
}


def _damage(file: Path) -> None:
    file.rename(file.with_name(f"{file.name}.kept"))
    file.write_bytes(b"this is nothing that anybody can read " * 20)
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)


def _chmod(base: Path, folders: int, files: int) -> None:
    for each in [base, *base.rglob("*")]:
        each.chmod(folders if each.is_dir() else files)


def _obey_permissions() -> None:
    """Makes permissions apply to root's later processes as to any user's."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)


class Writer(threading.Thread):
    """Upserts some rows in one healthy table after the other."""

    def __init__(self, spark: Any, bases: list[Path]) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.commits, self.failed = 0, 0
        self._spark, self._bases = spark, bases

    def run(self) -> None:
        while not self.ended.is_set():
            for base in self._bases:
                if self.ended.wait(0.5):
                    return
                try:
                    frame = tables.rows(self._spark, 0, 40, ts=self.commits + 10)
                    tables.upsert(frame, base, {**tables.writer_options(base), "hoodie.table.name": "model"})
                    self.commits += 1
                except Exception as error:
                    self.failed += 1
                    print(f"writer: {base.name}: {str(error)[:200]}", file=sys.stderr)


def run(minutes: float, healthy: int, *, lock_hosts: bool) -> Json:
    _obey_permissions()
    spark = start_session(master="local[1]", app_name="sick fleet", conf={"spark.sql.shuffle.partitions": "1"})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "model"
        tables.write_table(spark, model, count=300, updates=2, copied=False)
        settings = {**SETTINGS, **({"lock_hosts": "127.0.0.1"} if lock_hosts else {})}
        with Daemon(folder / "service", **settings) as daemon:
            daemon.call("PUT", "/v1/pause", {"reason": "the tables are made"})
            daemon.call("PUT", "/v1/policies/*", POLICY)
            fleet = Fleet(folder, healthy, daemon, model)
            daemon.wait_for_worker()
            time.sleep(12)  # Each table has been polled.
            writer = Writer(spark, list(fleet.ids.values()))
            for sick in fleet.sick:
                sick.harm()
            daemon.call("DELETE", "/v1/pause")
            writer.start()
            outcome = _watch(fleet, minutes * 60)
            writer.ended.set()
            outcome |= _measured(fleet, minutes * 60, outcome.pop("begun"), outcome.pop("submitted"))
            outcome["commits"], outcome["failed_writes"] = writer.commits, writer.failed
            writer.join(60)
    spark.stop()
    return outcome


def _watch(fleet: Fleet, seconds: float) -> Json:
    begun, wall, rng = time.monotonic(), datetime.now(UTC), random.Random(1)
    mend_at, next_submit = begun + 0.6 * seconds, begun + SUBMIT_SECONDS
    mended: float | None = None
    submitted: list[str] = []
    healthy = list(fleet.ids)
    while (now := time.monotonic()) < begun + seconds:
        for beat in fleet.beats:
            beat.touch()
        for sick in fleet.sick:
            found = fleet.problems(sick.id)
            if mended is None:
                for each in found:
                    error = each["evidence"].get("error")
                    what = f"{each['kind']}{f' ({error})' if error else ''}"
                    sick.named.setdefault(what, round(now - begun, 1))
                    sick.first_detail = sick.first_detail or each["detail"][:300]
            elif not found and sick.green_after is None:
                sick.green_after = round(now - mended, 1)
        if now > next_submit:
            next_submit += SUBMIT_SECONDS
            if job := fleet.submit(rng.choice(healthy), "cleaning", retain=2):
                submitted.append(job)
        if mended is None and now > mend_at:
            for sick in fleet.sick:
                sick.mend()
                # A person who mends a table requests a poll of it.
                fleet.daemon.call("POST", f"/v1/tables/{sick.id}/poll", {})
            fleet.ask_again()
            mended = time.monotonic()
        time.sleep(1)
    return {"begun": wall, "submitted": submitted}


def _measured(fleet: Fleet, seconds: float, begun: datetime, submitted: list[str]) -> Json:
    names = {sick.id: sick.name for sick in fleet.sick}
    used: dict[str, float] = dict.fromkeys(names.values(), 0.0)
    tries: dict[str, int] = dict.fromkeys(names.values(), 0)
    first: dict[str, float] = {}
    well, lasted = 0.0, []
    served: set[str] = set()
    end = datetime.now(UTC)
    mended = begun.timestamp() + 0.6 * seconds
    after = 0.0
    delays: dict[str, float] = {}
    submitted_at: dict[str, float] = {}
    for job in fleet.jobs():
        for attempt in job["attempts"]:
            started = datetime.fromisoformat(attempt["started_at"])
            ended = datetime.fromisoformat(attempt["ended_at"]) if attempt["ended_at"] else end
            spent = (ended - started).total_seconds()
            if job["table_id"] in names:
                name, after_begin = names[job["table_id"]], (started - begun).total_seconds()
                first[name] = round(min(after_begin, first.get(name, after_begin)), 1)
                if attempt["outcome"] != "succeeded":
                    used[names[job["table_id"]]] += spent
                    tries[names[job["table_id"]]] += 1
                    after += spent if started.timestamp() > mended else 0.0
                else:
                    well += spent
            else:
                well += spent
                lasted.append(spent)
        if job["table_id"] not in names and job["state"] == "succeeded":
            served.add(job["table_id"])
        if job["id"] in submitted and job["leased_at"]:
            begins = job["attempts"][0]["started_at"]
            delay = datetime.fromisoformat(begins) - datetime.fromisoformat(job["created_at"])
            delays[job["id"]] = delay.total_seconds()
            submitted_at[job["id"]] = (datetime.fromisoformat(job["created_at"]) - begun).total_seconds()
    sick_seconds = sum(used.values())
    mean = statistics.mean(lasted) if lasted else 0.0
    return {
        "seconds": seconds,
        "sick_slot_seconds": {name: round(value, 1) for name, value in used.items()},
        "sick_attempts": tries,
        "sick_slot_seconds_after_mending": round(after, 1),
        "sick_share_of_time": round(sick_seconds / seconds, 3),
        "sick_share_of_work": round(sick_seconds / (sick_seconds + well), 3) if well else 1.0,
        "healthy_jobs": len(lasted),
        "healthy_slot_seconds": round(well, 1),
        "healthy_served": f"{len(served)} of {len(fleet.ids)}",
        "mean_job_seconds": round(mean, 2),
        "submitted": len(submitted),
        "submitted_started": len(delays),
        "start_delay_seconds": _distribution(list(delays.values())),
        "slowest_starts": [
            {"after": round(submitted_at[each], 1), "waited": round(delays[each], 2)}
            for each in sorted(delays, key=lambda each: -delays[each])[:5]
        ],
        "learned_costs": fleet.daemon.call("GET", "/v1/models/cost").json()["items"],
        "workers_killed_after_seconds": [round((each - begun).total_seconds(), 1) for each in fleet.killed_at],
        "first_attempt_after_seconds": first,
        "named_after_seconds": {sick.name: sick.named for sick in fleet.sick},
        "first_detail": {sick.name: sick.first_detail for sick in fleet.sick},
        "green_after_seconds": {sick.name: sick.green_after for sick in fleet.sick},
        "ok": sick_seconds <= 0.1 * seconds and len(served) == len(fleet.ids),
    }


def _distribution(values: list[float]) -> Json:
    if not values:
        return {}
    ordered = sorted(values)
    return {"median": round(statistics.median(ordered), 2), "worst": round(ordered[-1], 2)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--healthy", type=int, default=40)
    parser.add_argument("--lock-hosts", action="store_true", help="the service may ask the lock server")
    parser.add_argument("--json", action="store_true", help="the result as one line of JSON")
    arguments = parser.parse_args()
    result = run(arguments.minutes, arguments.healthy, lock_hosts=arguments.lock_hosts)
    print(json.dumps(result, indent=None if arguments.json else 2))
    sys.exit(0 if result["ok"] else 1)
