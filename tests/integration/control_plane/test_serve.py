"""Tests `groundskeeper` as a process: its start, its answers, its end and a kill."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from service.model.backoff import BackOff
from service.runtime.local_worker import LocalWorkers
from tests.integration.serving import Serving
from tests.support.forked_service import ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

GROUNDSKEEPER = [sys.executable, "-m", "service.cli"]


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command in an empty directory, and waits for its end."""

    def start(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return ended(*arguments, cwd=tmp_path, env={**_clean(), **environment})

    return start


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Starts the service in an empty directory, and yields it with its URL as soon as it reports that it is ready."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            [*GROUNDSKEEPER, "serve", "--workers", "0", "--port", "0", *arguments],
            cwd=tmp_path,
            env={**_clean(), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        first = process.stdout.readline()
        match = re.search(r"ready at (http://\S+)", first)
        assert match, first + (process.stderr.read() if process.stderr else "")
        assert f"{match.group(1)}/docs" in process.stdout.readline()
        return process, match.group(1)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


def _send(connection: socket.socket, piece: bytes, count: int) -> None:
    for _ in range(count // 10_000):
        connection.sendall(piece * 10_000)
        time.sleep(0.001)


def _clean() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("GROUNDSKEEPER_")}


@pytest.mark.parametrize("stop", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.exhaustive)])
def test_the_service_starts_answers_and_stops_when_asked(
    serve: Callable[..., tuple[subprocess.Popen[str], str]], tmp_path: Path, stop: signal.Signals
) -> None:
    process, url = serve()
    assert httpx.get(f"{url}/readyz", timeout=60).json()["status"] == "ok"
    assert (tmp_path / "groundskeeper.db").exists()
    answer = httpx.post(f"{url}/v1/tables", json={"base_path": str(tmp_path)}, timeout=60)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/not-a-hudi-table")
    # A waiting worker must not delay the end of the service.
    waiting = threading.Thread(
        target=lambda: httpx.post(f"{url}/v1/worker/leases", json={"worker_id": "w", "wait_seconds": 20}, timeout=60)
    )
    began = time.monotonic()
    waiting.start()
    assert _eventually(lambda: httpx.get(f"{url}/v1/workers", timeout=60).json()["items"], 60)
    process.send_signal(stop)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 19
    assert process.returncode == 0
    assert "Traceback" not in err
    waiting.join(timeout=30)


def test_a_request_that_waits_for_hanging_storage_does_not_hold_the_service_up(tmp_path: Path) -> None:
    table = tmp_path / "table" / ".hoodie"
    table.mkdir(parents=True)
    os.mkfifo(table / "hoodie.properties")  # Without a writer, opening it to read never returns.
    answers: list[httpx.Response] = []
    with Serving(tmp_path) as service:
        body = {"base_path": str(table.parent)}
        waiting = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{service.url}/v1/tables", json=body, timeout=60))
        )
        waiting.start()
        time.sleep(2)
        assert service.stop() == 0
        assert "Traceback" not in service.log.read_text()
    waiting.join(timeout=60)
    assert [(each.status_code, each.json()["type"]) for each in answers] == [(502, "/problems/table-not-readable")]


@pytest.mark.parametrize(
    ("beginning", "more"),
    [
        (b"GET /", b"a"),
        (b"GET /healthz HTTP/1.1\r\nHost: h\r\nX-Long: ", b"a"),
        (b"GET /healthz HTTP/1.1\r\nHost: h\r\n", b"X-Short: a\r\n"),
        (b"POST /v1/callbacks/hudi HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Long: ", b"a"),
    ],
    ids=["address", "header", "headers", "trailer"],
)
def test_a_request_whose_head_does_not_end_is_refused(tmp_path: Path, beginning: bytes, more: bytes) -> None:
    with Serving(tmp_path) as service:
        address = httpx.URL(service.url)
        with socket.create_connection((address.host, address.port or 80), timeout=20) as connection:
            connection.sendall(beginning)
            with pytest.raises(ConnectionError):
                _send(connection, more, 10_000_000)
        assert httpx.get(f"{service.url}/healthz").status_code == 200


def test_killed_and_started_again_the_service_still_has_its_jobs(tmp_path: Path) -> None:
    with Serving(tmp_path) as service:
        service.kill()
        service.start()
        assert httpx.get(f"{service.url}/v1/tables").status_code == 200


def test_a_lease_that_ran_out_is_recovered_by_the_tick(tmp_path: Path) -> None:
    from jobs.contract import JobKind
    from service.catalog import table_store
    from service.catalog.registration import Registration
    from service.db.engine import writing
    from service.model.clock import utc_now
    from service.queue import job_store
    from service.queue.job import Job

    now = utc_now()
    with Serving(tmp_path, LEASE_SECONDS="1", RECOVER_SECONDS="0.2") as service:
        with writing(service.engine) as connection:
            table_store.register(connection, Registration("tbl_1", "/lake/a", "a", now, now))
            job_store.submit(connection, Job("job_1", "tbl_1", JobKind.AUDIT, now, now))
        lease = {"worker_id": "w", "wait_seconds": 5}
        leases = f"{service.url}/v1/worker/leases"
        assert httpx.post(leases, json=lease, timeout=60).json()["plan"]["attempt"] == 1
        # No worker sends heartbeats; the waiting call gets the job after its lease has expired.
        assert httpx.post(leases, json=lease, timeout=60).json()["plan"]["attempt"] == 2


def test_an_address_that_is_taken_is_one_line_and_exit_code_2(
    run: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("serve", "--workers", "0", "--port", str(taken.getsockname()[1]))
    assert ran.returncode == 2
    assert ran.stderr.startswith("groundskeeper: ")
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        (("serve", "--host", "0.0.0.0"), {}, "token create"),
        (("serve", "--database", "mysql://x"), {}, "Use SQLite or PostgreSQL"),
        (("migrate", "--database", "sqlite:////no/such/folder/x.db"), {}, "GROUNDSKEEPER_DATABASE"),
        (("serve",), {"GROUNDSKEEPER_PORT": "many"}, "GROUNDSKEEPER_PORT"),
        (("serve",), {"GROUNDSKEEPER_ADMIN_TOKEN": "gk_admin_guess"}, "GROUNDSKEEPER_ADMIN_TOKEN"),
        (("serve", "--host", "0.0.0.0"), {"GROUNDSKEEPER_FIRST_TOKEN_FILE": "/no/such/folder/token"}, "/no/such"),
        (("token", "revoke", "none"), {}, "There is no database sqlite:////"),
        (("worker", "--service", "http://127.0.0.1:1"), {"GROUNDSKEEPER_JARS": "/"}, "fetch_jars"),
        (("worker", "--service", "http://127.0.0.1:1", "--conf", "spark.scheduler.mode=FIFO"), {}, "--conf: "),
    ],
)
def test_errors_that_a_person_can_fix_are_one_line_with_exit_code_2(
    run: Callable[..., subprocess.CompletedProcess[str]],
    arguments: tuple[str, ...],
    environment: dict[str, str],
    words: str,
) -> None:
    ran = run(*arguments, **environment)
    assert ran.returncode == 2
    assert words in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


def test_tokens_are_made_shown_once_listed_and_revoked(
    run: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    made = run("token", "create", "--role", "admin", "--name", "Ada")
    bearer = made.stdout.strip()
    assert re.fullmatch(r"gk_[0-9a-f]+_[0-9a-f]{64}", bearer)
    listed = run("token", "list").stdout
    assert "Ada" in listed
    assert bearer.split("_")[2] not in listed
    assert bearer.split("_")[2].encode() not in (tmp_path / "groundskeeper.db").read_bytes()

    with Serving(tmp_path, HOST="0.0.0.0") as service:
        tables = f"{service.url}/v1/tables"
        assert httpx.get(tables).status_code == 401
        headers = {"Authorization": f"Bearer {bearer}"}
        assert httpx.get(tables, headers=headers).status_code == 200
        assert run("token", "revoke", bearer.split("_")[1]).returncode == 0
        assert httpx.get(tables, headers=headers).status_code == 401


def test_the_version_is_shown(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert run("--version").stdout.startswith("groundskeeper ")


def test_migrate_says_where_the_database_is(run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert "revision" in run("migrate").stdout


def _workers(code: str, count: int = 1, **more: Any) -> LocalWorkers:
    return LocalWorkers(
        [sys.executable, "-c", code],
        count=count,
        environment={"GROUNDSKEEPER_WORKER_TOKEN": "gk_a_b"},
        rng=Random(1),
        backoff=BackOff(first=0.05, most=0.2),
        **more,
    )


def _eventually(holds: Callable[[], bool], seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def test_a_local_worker_that_dies_is_started_again_and_knows_its_parent(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    workers = _workers(
        "import os, pathlib\n"
        f"with open({str(seen)!r}, 'a') as f:\n"
        "    print(os.environ['GROUNDSKEEPER_PARENT_PID'], os.environ['GROUNDSKEEPER_WORKER_TOKEN'], file=f)\n"
        "raise SystemExit(3)"
    )
    workers.start(on_death=pytest.fail)
    assert _eventually(lambda: seen.exists() and len(seen.read_text().splitlines()) >= 3)
    workers.stop()
    assert set(seen.read_text().splitlines()) == {f"{os.getpid()} gk_a_b"}
    count = len(seen.read_text().splitlines())
    time.sleep(0.5)
    assert len(seen.read_text().splitlines()) == count


def test_a_standby_is_called_as_soon_as_another_worker_has_ended(tmp_path: Path) -> None:
    started, called = tmp_path / "started", tmp_path / "called"
    workers = _workers(
        "import os, sys, time\n"
        f"print(os.getpid(), file=open({str(started)!r}, 'a'))\n"
        "sys.stdin.readline() or sys.exit()\n"
        f"print(os.getpid(), file=open({str(called)!r}, 'a'))\n"
        "time.sleep(60)",
        count=2,
        standbys=1,
    )
    workers.start(on_death=pytest.fail)
    try:
        assert _eventually(lambda: _has(started, 3) and _has(called, 2))
        for number in range(3, 6):
            first = int(called.read_text().split()[-1])
            os.kill(first, signal.SIGKILL)
            assert _eventually(partial(_has, called, number))
            # The forked process had started before, and another one is ready now.
            last = called.read_text().split()[-1]
            assert last in started.read_text().split()[:number]
            assert _eventually(partial(_has, started, number + 1))
        time.sleep(0.2)
        assert _has(called, 5)
    finally:
        workers.stop()


def _has(file: Path, numbers: int) -> bool:
    return file.exists() and len(file.read_text().split()) == numbers


def test_a_dead_worker_counts_as_lost_when_all_its_processes_are_gone(tmp_path: Path) -> None:
    lost: list[tuple[int, float]] = []
    workers = _workers(
        "import os, subprocess, sys, time\n"
        f"pids = open({str(tmp_path / 'pids')!r}, 'a')\n"
        # The child has its own process group, like Spark's Python workers.
        "child = subprocess.Popen(['sleep', '60'], preexec_fn=os.setpgrp)\n"
        "print(os.getpid(), child.pid, file=pids, flush=True)\n"
        "time.sleep(60)",
        on_lost=lambda process: lost.append((process, time.monotonic())),
    )
    workers.start(on_death=pytest.fail)
    try:
        assert _eventually(lambda: _has(tmp_path / "pids", 2))
        worker, child = map(int, (tmp_path / "pids").read_text().split())
        os.kill(worker, signal.SIGKILL)
        time.sleep(0.5)
        assert not lost
        os.kill(child, signal.SIGKILL)
        assert _eventually(lambda: [process for process, _ in lost] == [worker])
    finally:
        workers.stop()
        for each in (tmp_path / "pids").read_text().split()[1::2]:
            with suppress(ProcessLookupError):
                os.kill(int(each), signal.SIGKILL)


def test_local_workers_stop_when_asked_to(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys, time\n"
        f"folder = pathlib.Path({str(tmp_path)!r})\n"
        "def end(*_):\n"
        "    (folder / f'{os.getpid()}.ended').touch()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "(folder / f'{os.getpid()}.started').touch()\n"
        "time.sleep(60)"
    )
    workers = _workers(code, count=2)
    workers.start(on_death=pytest.fail)
    assert _eventually(lambda: len(list(tmp_path.glob("*.started"))) == 2)
    workers.stop()
    assert len(list(tmp_path.glob("*.ended"))) == 2


def test_a_worker_that_cannot_be_started_is_reported() -> None:
    told: list[str] = []
    workers = LocalWorkers(["/no/such/program"], count=1, environment={}, rng=Random(1))
    workers.start(on_death=told.append)
    assert _eventually(lambda: bool(told))
    assert "cannot be started" in told[0]
    workers.stop()


@pytest.mark.exhaustive
def test_tokens_from_secrets_are_accepted_and_stay_revoked(
    run: Callable[..., subprocess.CompletedProcess[str]],
    serve: Callable[..., tuple[subprocess.Popen[str], str]],
) -> None:
    secrets = {
        "GROUNDSKEEPER_ADMIN_TOKEN": f"gk_boss_{'a' * 64}",
        "GROUNDSKEEPER_WORKER_TOKEN": f"gk_spark_{'b' * 64}",
    }
    as_admin = {"Authorization": f"Bearer {secrets['GROUNDSKEEPER_ADMIN_TOKEN']}"}
    as_worker = {"Authorization": f"Bearer {secrets['GROUNDSKEEPER_WORKER_TOKEN']}"}
    for _replica in range(2):
        _, url = serve("--host", "0.0.0.0", **secrets)
        assert httpx.get(f"{url}/v1/tables").status_code == 401
        assert httpx.get(f"{url}/v1/tables", headers=as_admin).status_code == 200
        assert httpx.get(f"{url}/v1/tables", headers=as_worker).status_code == 403
        leased = httpx.post(f"{url}/v1/worker/leases", json={"worker_id": "w", "wait_seconds": 0}, headers=as_worker)
        assert leased.is_success
    assert run("token", "revoke", "boss").returncode == 0
    _, url = serve("--host", "0.0.0.0", **secrets)
    assert httpx.get(f"{url}/v1/tables", headers=as_admin).status_code == 401


@pytest.mark.exhaustive
def test_the_first_token_is_written_to_a_file_only_where_one_is_needed(
    serve: Callable[..., tuple[subprocess.Popen[str], str]], tmp_path: Path
) -> None:
    file = tmp_path / "first-token"
    _, url = serve(GROUNDSKEEPER_FIRST_TOKEN_FILE=str(file))
    assert httpx.get(f"{url}/v1/tables").status_code == 200
    assert not file.exists()
    for _start in range(2):
        _, url = serve("--host", "0.0.0.0", GROUNDSKEEPER_FIRST_TOKEN_FILE=str(file))
        assert httpx.get(f"{url}/v1/tables").status_code == 401
        headers = {"Authorization": f"Bearer {file.read_text().strip()}"}
        assert httpx.get(f"{url}/v1/tables", headers=headers).status_code == 200
    assert file.stat().st_mode & 0o777 == 0o600
