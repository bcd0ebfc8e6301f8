"""Tests each check of `groundskeeper doctor` with a real service: without a fault, and with a fault and its hint."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome, Problem, Progress, Result, TableLock
from jobs.hudi.java import JAVA_VERSION
from jobs.hudi.session import HUDI_BUNDLE
from service.catalog import table_store
from service.cli import lock_check
from service.db import schema
from service.db.engine import writing
from service.model.clock import utc_now
from tests.integration.control_plane.command_line import CommandLine, serving_command_line
from tests.integration.serving import eventually
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.control_plane.protocol_worker import Worker

ZOOKEEPER = TableLock("zookeeper", {"hoodie.write.lock.zookeeper.url": "zk:2181"})


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """The command line of a service without faults."""
    folder = tmp_path_factory.mktemp("doctor")
    _, artifact, version = HUDI_BUNDLE.split(":")
    jars = folder / "jars"
    jars.mkdir()
    (jars / f"{artifact}-{version}.jar").touch()
    with serving_command_line(folder) as cli:
        cli.environment |= {
            "GROUNDSKEEPER_JARS": str(jars),
            "GROUNDSKEEPER_ALLOWED_ROOTS": str(folder),
            "GROUNDSKEEPER_DATABASE": f"sqlite:///{folder}/groundskeeper.db",
        }
        cli.table("orders")
        yield cli


@pytest.fixture(autouse=True)
def worker(cli: CommandLine) -> Iterator[Worker]:
    """Adds a worker that has just called, and returns it."""
    with cli.worker() as worker:
        worker.lease()
        yield worker


@pytest.fixture
def lock(cli: CommandLine) -> Iterator[Path]:
    """The file of the table's lock, which nobody holds before and after the test."""
    file = cli.folder / "orders" / ".hoodie" / "lock"
    yield file
    file.unlink(missing_ok=True)


def _checks(cli: CommandLine, code: int = 0, **environment: str | None) -> list[dict[str, str]]:
    document: dict[str, Any] = cli.json("doctor", code=code, **environment)
    assert document["ok"] == (code == 0)
    checks: list[dict[str, str]] = document["checks"]
    return checks


def _one(cli: CommandLine, name: str, state: str, **environment: str | None) -> dict[str, str]:
    """Returns the only check of this name."""
    code = 1 if state == "failed" else 0
    [found] = [check for check in _checks(cli, code, **environment) if check["name"] == name]
    assert found["state"] == state, found
    return found


def test_when_all_is_well_each_check_says_so_by_name(cli: CommandLine) -> None:
    checks = _checks(cli)
    names = ["settings", "java", "bundle", "storage", "database", "service", "worker", "lock", "jobs"]
    assert [(each["name"], each["state"], each["hint"]) for each in checks] == [(name, "ok", "") for name in names]
    found = {each["name"]: each["detail"] for each in checks}
    assert "Ready: w1" in found["worker"]
    assert found["lock"] == "Of 1 table: 1 free."
    shown = cli.run("doctor").stdout.splitlines()
    assert [line.split()[:2] for line in shown] == [["ok", name] for name in names]


def test_a_java_that_does_not_run_is_a_fault(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "release").write_text(f'JAVA_VERSION="{JAVA_VERSION}.0.1"\n')
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    found = _one(cli, "java", "failed", JAVA_HOME=str(tmp_path))
    assert f"{tmp_path}/bin/java does not run" in found["detail"]
    assert "JAVA_HOME" in found["hint"]


def test_a_folder_of_jars_without_the_bundle_is_a_fault(cli: CommandLine, tmp_path: Path) -> None:
    assert "jobs.hudi.fetch_jars" in _one(cli, "bundle", "failed", GROUNDSKEEPER_JARS=str(tmp_path))["hint"]


def test_a_missing_root_is_a_fault(cli: CommandLine, tmp_path: Path) -> None:
    found = _one(cli, "storage", "failed", GROUNDSKEEPER_ALLOWED_ROOTS=f"{tmp_path}/none")
    assert (found["detail"], found["hint"]) == (
        f"{tmp_path}/none does not exist.",
        "Correct GROUNDSKEEPER_ALLOWED_ROOTS.",
    )
    assert _one(cli, "storage", "absent", GROUNDSKEEPER_ALLOWED_ROOTS=None)["hint"] == ""


def test_a_database_of_another_program_is_a_fault_but_a_missing_one_is_not(cli: CommandLine, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE theirs (id)")
    found = _one(cli, "database", "failed", GROUNDSKEEPER_DATABASE=f"sqlite:///{tmp_path}/other.db")
    assert "groundskeeper migrate" in found["hint"]
    _one(cli, "database", "absent", GROUNDSKEEPER_DATABASE=f"sqlite:///{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()


def test_without_a_service_its_workers_and_locks_are_not_checked(cli: CommandLine) -> None:
    gate = TcpGate(1)
    gate.end()
    checks = _checks(cli, 1, GROUNDSKEEPER_URL=f"http://127.0.0.1:{gate.port}")
    assert [(each["name"], each["state"]) for each in checks[-4:]] == [
        ("service", "failed"),
        ("worker", "absent"),
        ("lock", "absent"),
        ("jobs", "absent"),
    ]
    assert "groundskeeper serve" in checks[-4]["hint"]


def test_a_job_that_no_worker_takes_is_a_fault(cli: CommandLine) -> None:
    cli.json("policy", "set", "orders", "worker_group=large")
    job = cli.json("jobs", "run", "audit", "orders")
    found = _one(cli, "worker", "failed")
    assert "no worker of the group large is ready" in found["detail"]
    assert found["hint"] == f"Start one: groundskeeper worker --service {cli.serving.url}"
    cli.run("jobs", "cancel", job["id"])
    cli.run("policy", "set", "orders", "--unset", "worker_group")
    _one(cli, "worker", "ok")


def test_a_job_that_failed_for_good_is_a_fault_until_one_of_its_kind_succeeds(cli: CommandLine, worker: Worker) -> None:
    error = Problem("rows-differ", "Rows would be lost", "0 of 1", "Audit the table.")

    def run_job_with(result: Result) -> None:
        cli.json("jobs", "run", "cleaning", "orders")
        worker.report(worker.must_lease(), result)

    run_job_with(Result(Outcome.FAILED, error=error))
    cli.json("problems", code=1)
    found = _one(cli, "jobs", "failed")
    assert found["detail"].startswith("orders: The last cleaning job failed ")
    assert found["hint"] == error.hint
    assert cli.run("problems", code=1).stdout.startswith("warning")
    run_job_with(Result(Outcome.SUCCEEDED))
    cli.json("problems")
    _one(cli, "jobs", "ok")


def test_a_lock_that_nobody_alive_has_held_for_long_is_a_fault(cli: CommandLine, lock: Path) -> None:
    lock.touch()
    assert _one(cli, "lock", "ok")["detail"] == "Of 1 table: 1 held."
    at = time.time() - 20 * 60
    os.utime(lock, (at, at))
    found = _one(cli, "lock", "failed")
    table_id = cli.json("tables", "show", "orders")["id"]
    assert (
        "orders: The lock has been held for 20 min by a writer that Hudi's lock file does not name" in found["detail"]
    )
    assert found["hint"] == f"groundskeeper lock show {table_id}"
    # A concurrent writer may hold the lock.
    heartbeat = cli.folder / "orders" / ".hoodie" / ".heartbeat" / "20260101130000000"
    heartbeat.parent.mkdir()
    heartbeat.touch()
    assert _one(cli, "lock", "ok")["detail"] == "Of 1 table: 1 held."
    os.utime(heartbeat, (at, at))
    _one(cli, "lock", "failed")


def test_each_lock_that_cannot_be_read_has_a_line_with_its_table(cli: CommandLine) -> None:
    """One lock is not a file, one links to a place that is not allowed, one table is missing, and the fourth lock is
    readable."""
    folder, link, gone = cli.table("folder"), cli.table("link"), cli.table("gone")
    shutil.rmtree(cli.folder / "gone")
    (cli.folder / "folder" / ".hoodie" / "lock").mkdir()
    (cli.folder / "link" / ".hoodie" / "lock").symlink_to("/etc/hostname")
    found = [check for check in _checks(cli, 1) if check["name"] == "lock"]
    assert [(each["state"], each["detail"].partition(":")[0]) for each in found] == [
        ("failed", "folder"),
        ("failed", "link"),
        ("failed", "gone"),
    ]
    assert found[0]["hint"] == f"groundskeeper lock show {folder}"
    assert "is no file" in found[0]["detail"]
    assert found[1]["hint"].startswith(f"groundskeeper lock show {link}.")
    for table in (folder, link, gone):
        cli.run("tables", "remove", table, "--yes")
    _one(cli, "lock", "ok")


def test_a_lock_on_a_server_is_a_fault_only_while_jobs_wait_for_it_in_vain(
    cli: CommandLine, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command checks the table of the job first, even if there are many tables."""
    table_id = cli.table("trips")
    with writing(cli.serving.engine) as connection:
        table = table_store.get(connection, table_id, for_update=True)
        table_store.change(connection, table.evolve(lock=ZOOKEEPER))
    found = _one(cli, "lock", "ok")
    assert found["detail"] == "Of 2 tables: 1 free, 1 on a server."
    assert "--dry-run" in found["hint"]
    monkeypatch.setattr(lock_check, "MOST_TABLES", 1)
    assert _one(cli, "lock", "ok")["detail"].startswith("Of 1 table: 1 free. These are not all tables")
    job = cli.json("jobs", "run", "cleaning", "trips")
    order = worker.must_lease()
    with writing(cli.serving.engine) as connection:
        connection.execute(
            schema.jobs.update().where(schema.jobs.c.id == job["id"]).values(leased_at=utc_now() - timedelta(minutes=6))
        )

    def is_told() -> bool:
        worker.beat(order, progress=Progress("planning: waits for the table's lock, which others hold"))
        return bool(cli.json("problems", "--table", "trips")["items"])

    assert eventually(is_told, 60)
    found = _one(cli, "lock", "failed")
    assert found["detail"] == "trips: Jobs wait for the lock, and its holder is unknown."
    assert found["hint"] == f"groundskeeper lock show {table_id}"
