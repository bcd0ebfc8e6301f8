"""Tests running and starting services whose database is deleted, overwritten or locked, or whose disk is full."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa

from service.db import schema
from service.db.engine import open_engine, reading, writing
from service.db.probe import Probe, check_integrity
from service.model.errors import DatabaseDamagedError, DatabaseUnavailableError
from tests.integration.control_plane.databases import new_sqlite
from tests.integration.serving import Serving, eventually
from tests.support.forked_service import ended

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NAME = "groundskeeper.db"
HOOK = {"url": "http://127.0.0.1:9/hook"}


def ready(service: Serving) -> tuple[int, str]:
    """Returns the status, and the reason if the service is not ready."""
    answer = httpx.get(f"{service.url}/readyz", timeout=60)
    return answer.status_code, answer.json().get("type", "").removeprefix("/problems/")


def create(service: Serving) -> tuple[int, str]:
    answer = httpx.post(f"{service.url}/v1/webhooks", json=HOOK, timeout=60)
    return answer.status_code, answer.json().get("type", "").removeprefix("/problems/")


def overwrite(path: Path) -> None:
    """Overwrites the middle half of the file."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 4)
        file.write(os.urandom(path.stat().st_size // 2))


def checkpoint(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize(
    "suffix", ["", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("-wal", "-shm"))]
)
def test_a_file_that_was_moved_away_is_noticed_before_anything_is_accepted(tmp_path: Path, suffix: str) -> None:
    with Serving(tmp_path) as service:
        assert create(service) == (201, "")
        assert ready(service) == (200, "")
        file, away = tmp_path / f"{NAME}{suffix}", tmp_path / "away"
        file.rename(away)
        assert create(service) == (503, "database-unavailable")
        assert eventually(lambda: ready(service) == (503, "database-unavailable"), 60)
        assert not file.exists()
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        away.rename(file)
        assert create(service) == (201, "")
        assert eventually(lambda: ready(service) == (200, ""), 60)
        assert service.stop() == 0


def test_a_file_that_was_replaced_is_not_written_to(tmp_path: Path) -> None:
    with Serving(tmp_path) as service:
        (tmp_path / NAME).rename(tmp_path / "away")
        (tmp_path / NAME).touch()
        assert create(service) == (503, "database-unavailable")
        assert (tmp_path / NAME).stat().st_size == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 8 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(path: Path) -> None:
    try:
        with path.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass


@pytest.mark.exhaustive
def test_a_full_disk_is_reported_and_the_service_survives_it(small_disk: Path) -> None:
    with Serving(small_disk, WEBHOOK_POLL_SECONDS="0.1") as service:
        assert ready(service) == (200, "")
        fill(small_disk / "filler")
        assert eventually(lambda: ready(service) == (503, "database-unavailable"), 60)
        answers = [create(service) for _ in range(200)]
        assert set(answers) <= {(201, ""), (503, "database-unavailable")}
        assert answers[-1][0] == 503
        (small_disk / "filler").unlink()
        assert eventually(lambda: ready(service) == (200, ""), 60)
        assert create(service) == (201, "")
        accepted = 1 + answers.count((201, ""))
        with reading(service.engine) as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(schema.webhooks)).scalar() == accepted
        assert service.stop() == 0


def test_a_full_disk_is_reported_even_if_sqlite_writes_in_place(small_disk: Path) -> None:
    with Serving(small_disk) as service:
        # The log is long enough now to be written again from its start.
        with closing(sqlite3.connect(small_disk / NAME)) as other:
            other.executescript("CREATE TABLE t (a); INSERT INTO t VALUES (zeroblob(1000000)); DROP TABLE t;")
            other.execute("PRAGMA wal_checkpoint")
        fill(small_disk / "filler")
        # The call usually succeeds, but not after another write of the service that has filled the log.
        assert create(service) in {(201, ""), (503, "database-unavailable")}
        assert eventually(lambda: ready(service) == (503, "database-unavailable"), 60)


@pytest.mark.exhaustive
def test_an_overwritten_database_file_is_reported_and_the_service_goes_on(tmp_path: Path) -> None:
    with Serving(tmp_path) as service:
        for _ in range(50):
            create(service)
        assert ready(service) == (200, "")
        checkpoint(tmp_path / NAME)
        overwrite(tmp_path / NAME)
        assert eventually(lambda: ready(service) == (503, "database-damaged"), 60)
        for path in ("tables", "jobs", "webhooks", "commits", "incidents", "workers", "policies", "events?after=0"):
            answer = httpx.get(f"{service.url}/v1/{path}", headers={"Accept": "application/json"}, timeout=15)
            assert answer.status_code in (200, 503), answer.text
        time.sleep(3)
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        assert service.stop() == 0


def overwrite_with_garbage(path: Path) -> None:
    path.write_bytes(os.urandom(100_000))


def truncate(path: Path) -> None:
    os.truncate(path, 40_000)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def set_newer_revision(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (overwrite_with_garbage, "is damaged: file is not a database"),
        pytest.param(overwrite, "is damaged: ", marks=pytest.mark.exhaustive),
        pytest.param(truncate, "is damaged: ", marks=pytest.mark.exhaustive),
        pytest.param(folder, "unable to open database file", marks=pytest.mark.exhaustive),
        (set_newer_revision, "newer"),
    ],
)
def test_a_service_on_a_broken_database_does_not_start_and_says_why_in_a_line(
    tmp_path: Path, breaks: Any, words: str
) -> None:
    migrated(tmp_path)
    breaks(tmp_path / NAME)
    said = serve(tmp_path)
    assert (said.returncode, len(said.stderr.splitlines())) == (2, 1), said.stderr
    assert words in said.stderr
    assert NAME in said.stderr


@pytest.mark.parametrize("mode", [pytest.param(0o000, marks=pytest.mark.exhaustive), 0o444])
def test_a_service_without_the_permission_to_write_does_not_start(tmp_path: Path, mode: int) -> None:
    migrated(tmp_path)
    (tmp_path / NAME).chmod(mode)
    # Root may write to all files unless it gives up this capability.
    bare = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    said = serve_by(bare, tmp_path)
    assert (said.returncode, len(said.stderr.splitlines())) == (2, 1), said.stderr
    assert NAME in said.stderr


def migrated(folder: Path) -> None:
    new_sqlite(folder / NAME)
    checkpoint(folder / NAME)


SERVE = ("serve", "--workers", "0", "--port", "0")


def serve(folder: Path) -> subprocess.CompletedProcess[str]:
    return ended(*SERVE, cwd=folder, env=os.environ)


def serve_by(prefix: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-m", "service.cli", *SERVE],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_many_concurrent_probes_cost_one_write_a_second(sqlite: sa.Engine) -> None:
    commits: list[object] = []
    sa.event.listen(sqlite, "commit", lambda connection: commits.append(connection))
    probe = Probe(sqlite)
    started = time.monotonic()
    with ThreadPoolExecutor(20) as pool:
        outcomes = list(pool.map(lambda _: probe.outcome().result(), range(2000)))
    assert set(outcomes) == {None}
    # An attempt has four transactions.
    assert 4 <= len(commits) <= 5 * (1 + time.monotonic() - started)


def test_a_locked_database_is_reported_and_delays_no_call_that_does_not_need_it(tmp_path: Path) -> None:
    with Serving(tmp_path) as service, closing(sqlite3.connect(tmp_path / NAME, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(50) as pool:
            started = time.monotonic()
            asked = [pool.submit(ready, service) for _ in range(50)]
            for _ in range(10):
                assert httpx.get(f"{service.url}/healthz", timeout=60).status_code == 200
                assert httpx.get(f"{service.url}/v1/tables", timeout=60).status_code == 200
            assert {each.result() for each in asked} == {(503, "not-ready")}
            # A call that waits for the database is answered after five seconds, so calls in turn would take minutes.
            assert time.monotonic() - started < 90
        other.execute("ROLLBACK")
        assert eventually(lambda: ready(service) == (200, ""), 60)


def test_the_integrity_of_a_postgresql_database_is_left_to_it(postgresql: Any) -> None:
    engine = open_engine(postgresql.new_database())
    check_integrity(engine)
    engine.dispose()


def test_each_error_of_sqlite_has_its_type(sqlite: sa.Engine) -> None:
    with pytest.raises(DatabaseUnavailableError, match="no such table"), writing(sqlite) as connection:
        connection.execute(sa.text("SELECT * FROM nowhere"))
    with reading(sqlite) as connection:
        path = str(sqlite.url.database)
        connection.execute(sa.text("SELECT 1"))
    sqlite.dispose()
    with open(path, "r+b") as file:  # noqa: PTH123
        file.write(b"no database")
    with pytest.raises(DatabaseDamagedError, match="not a database"), reading(sqlite):
        pass
