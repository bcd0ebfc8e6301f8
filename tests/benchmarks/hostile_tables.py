"""Measures what healthy tables and callers notice when one more table turns hostile each minute.

    python tests/benchmarks/hostile_tables.py --healthy 100 --minutes 10 --json

In the first two minutes nothing happens, for comparison. After that, each minute another table gets a commit, or
another file, that crashes or blocks the process that reads it or fills its memory. The healthy ones commit all the
time, each commit followed by Hudi's callback, and clients call as in `control_plane.py`. A hostile table calls back
too, once a second.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

import httpx

from service.catalog import watch_store
from service.db.engine import open_engine, reading
from tests.acceptance.daemon import Daemon
from tests.benchmarks import process_tree
from tests.benchmarks.control_plane import (
    Clients,
    Times,
    Writers,
    delays_until_seen,
    lay,
    log_progress,
    looked_at,
    print_figures,
    register,
)
from tests.hostile import avro
from tests.support.small_table import instant_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Engine

_COMMITS_PER_MINUTE = 60
_QUIET_MINUTES = 2.0
_MIB = 1024 * 1024


@dataclass
class Phase:
    """One part of the run; `memory` is that of all processes of the service, in bytes."""

    commits: int
    missed: int
    lag: Times
    rest: dict[str, Times]
    memory: int


@dataclass
class Figures:
    """`attacks` are the kinds of hostile tables with the problem that the service reports of each."""

    healthy: int
    minutes: float
    quiet: Phase
    attacked: Phase
    attacks: dict[str, str]


def _commit_of(content: bytes) -> Callable[[Path], None]:
    def attack(base: Path) -> None:
        instant = instant_at(datetime.now(UTC))
        (base / ".hoodie" / "timeline" / f"{instant}_{instant}.deltacommit").write_bytes(content)

    return attack


def _pipe(base: Path) -> None:
    instant = instant_at(datetime.now(UTC))
    os.mkfifo(base / ".hoodie" / "timeline" / f"{instant}_{instant}.deltacommit")


def _many_entries(base: Path) -> None:
    for number in range(200_000):
        (base / ".hoodie" / "timeline" / f"{number:017d}.deltacommit.requested").touch()


def _properties_of(content: bytes) -> Callable[[Path], None]:
    def attack(base: Path) -> None:
        properties = base / ".hoodie" / "hoodie.properties"
        properties.unlink()  # The file is a link to the file of all tables.
        properties.write_bytes(content)
        _commit_of(b"{}")(base)  # The service reads them after a commit.

    return attack


ATTACKS: dict[str, Callable[[Path], None]] = {
    "recursive Avro": _commit_of(avro.NESTED),
    "2^40 nulls": _commit_of(avro.ENDLESS),
    "3 GiB in 3 MB": _commit_of(avro.bomb(3 * 1024 * _MIB)),
    "deep JSON": _commit_of(b"[" * 1_000_000),
    "a pipe": _pipe,
    "torn Avro": _commit_of(avro.NESTED[:50]),
    "200 000 instants": _many_entries,
    "64 MiB of properties": _properties_of(b"x=" + b"y" * 64 * _MIB),
    "an infinite number": _commit_of(b'{"partitionToWriteStats": {"p": [{"fileId": 7, "numInserts": 1e400}]}}'),
    "binary properties": _properties_of(bytes(range(256)) * 1000),
}


class Attackers:
    """Turn one table after the other hostile, and let each of them call back once a second from then on."""

    def __init__(self, url: str, ids: dict[str, Path], pause: float) -> None:
        self._url = url
        self._ids = list(ids.items())
        self._pause = pause
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._attack, self._call_back)]
        self.hostile: dict[str, str] = {}

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _attack(self) -> None:
        for (table_id, base), (name, attack) in zip(self._ids, ATTACKS.items(), strict=True):
            log_progress(f"attack: {name}")
            attack(base)
            self.hostile[table_id] = name
            if self._ended.wait(self._pause):
                return

    def _call_back(self) -> None:
        bases = dict(self._ids)
        with httpx.Client(base_url=self._url, timeout=20) as http:
            while not self._ended.wait(1):
                for table_id in list(self.hostile):
                    body = {"commitTime": instant_at(datetime.now(UTC)), "basePath": str(bases[table_id])}
                    http.post("/v1/callbacks/hudi", json=body)


def measure(folder: Path, healthy: int, minutes: float) -> Figures:
    engine = open_engine(f"sqlite:///{folder}/gk.db")
    ids = list(register(engine, lay(folder / "lake", healthy + len(ATTACKS))).items())
    good, bad = dict(ids[:healthy]), dict(ids[healthy:])
    settings = {"workers": "0", "database": f"sqlite:///{folder}/gk.db", "log_level": "ERROR", "poll_seconds": "10"}
    with Daemon(folder / "service", **settings) as daemon:
        while looked_at(engine) < len(ids):
            time.sleep(1)

        def phase(seconds: float) -> Phase:
            writers, clients = Writers([daemon.url], good, _COMMITS_PER_MINUTE), Clients([daemon.url], good)
            writers.start()
            clients.start()
            time.sleep(seconds)
            writers.stop()
            clients.stop()
            time.sleep(5)
            found = delays_until_seen(engine, writers.committed)
            return Phase(
                len(writers.committed),
                len(writers.committed) - len(found),
                Times.of(found),
                {name: Times.of(seconds) for name, seconds in clients.seconds.items()},
                process_tree.memory(daemon.process.pid),
            )

        log_progress("nothing happens")
        quiet = phase(min(_QUIET_MINUTES, minutes) * 60)
        attackers = Attackers(daemon.url, bad, minutes * 60 / len(ATTACKS))
        attackers.start()
        attacked = phase(minutes * 60)
        attackers.stop()
        attacks = {name: _problem(engine, table_id) for table_id, name in attackers.hostile.items()}
    return Figures(healthy, minutes, quiet, attacked, attacks)


def _problem(engine: Engine, table_id: str) -> str:
    with reading(engine) as connection:
        error = watch_store.get(connection, table_id).error
    return error.type if error else "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--healthy", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gk-hostile-"))
    try:
        print_figures(measure(folder, chosen.healthy, chosen.minutes), as_json=chosen.json)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
