"""Tests `groundskeeper jobs` with a real service. The tests make the calls of a worker themselves."""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from jobs.contract import LogLevel, LogLine, Outcome, Problem, Progress, Result
from service.model.clock import utc_now
from tests.support.tcp_gate import TcpGate

if TYPE_CHECKING:
    from click.testing import Result as Ended

    from tests.integration.control_plane.command_line import CommandLine
    from tests.integration.control_plane.protocol_worker import Worker


@pytest.fixture(scope="module")
def table_id(cli: CommandLine) -> str:
    return str(cli.json("tables", "show", "orders")["id"])


def test_a_job_is_submitted_listed_shown_and_cancelled(cli: CommandLine, table_id: str) -> None:
    submit = ("jobs", "run", "compaction", "orders", "-p", "limit_bytes=4096", "--dry-run", "--idempotency-key", "k")
    job = cli.json(*submit)
    assert (job["table_id"], job["params"]["limit_bytes"], job["dry_run"]) == (table_id, 4096, True)
    assert cli.json(*submit)["id"] == job["id"]
    assert cli.json("jobs", "list", "--table", "orders", "--state", "queued")["items"][0]["id"] == job["id"]
    assert f"{job['id']}  orders  compaction (dry run)  queued" in cli.run("jobs", "list").stdout
    shown = cli.run("jobs", "show", job["id"]).stdout
    assert re.search(rf"^table +orders \({table_id}\)$", shown, re.MULTILINE)
    assert "waits for" in shown
    assert cli.run("jobs", "cancel", job["id"]).stdout == f"{job['id']} is cancelled.\n"
    cli.refused("jobs", "cancel", "job_nothing", code=3)
    assert cli.json("jobs", "show", job["id"])["state"] == "cancelled"
    assert "params.limit_bytes" in cli.refused("jobs", "run", "compaction", "orders", "-p", "limit_bytes=a", code=1)
    assert "name=value" in cli.refused("jobs", "run", "compaction", "orders", "-p", "limit", code=2)
    assert "`groundskeeper jobs list`" in cli.refused("jobs", "show", "job_nothing", code=3)
    planned = cli.json("jobs", "run", "upgrade", "orders", "-p", "to_version=9", "--dry-run")
    assert (planned["params"]["to_version"], planned["dry_run"]) == (9, True)
    cli.run("jobs", "cancel", planned["id"])
    assert "to_version" in cli.refused("jobs", "run", "upgrade", "orders", "--dry-run", code=1)
    assert cli.run("jobs", "run", "nonsense", "orders", code=2).stdout == ""


def test_a_watched_job_is_followed_over_an_outage_to_its_end(cli: CommandLine, worker: Worker) -> None:
    job = cli.json("jobs", "run", "audit", "orders")
    gate = TcpGate(httpx.URL(cli.serving.url).port or 0)
    seen: list[Ended] = []

    def watch() -> None:
        seen.append(cli.run("jobs", "watch", job["id"], GROUNDSKEEPER_URL=f"http://127.0.0.1:{gate.port}"))

    watching = threading.Thread(target=watch)
    watching.start()
    order = worker.must_lease()
    worker.beat(order, progress=Progress("reading keys", bytes_done=1024, bytes_total=4096))
    time.sleep(0.7)
    figures = "reading keys 1.0 KiB of 4.0 KiB"
    assert figures in cli.run("jobs", "show", job["id"]).stdout
    with gate.shut():
        time.sleep(2)
        assert worker.report(order, Result(Outcome.SUCCEEDED, details={"misplaced": 0})).is_success
    watching.join(timeout=20)
    gate.end()
    [ended] = seen
    assert f"running: {figures}" in ended.stderr
    assert figures not in cli.run("jobs", "show", job["id"]).stdout
    assert "cannot be reached; waiting" in ended.stderr
    assert ended.stdout.startswith("audit succeeded")
    assert "misplaced  0" in ended.stdout


def test_watching_a_job_that_fails_fails_with_its_error(cli: CommandLine, worker: Worker) -> None:
    job = cli.json("jobs", "run", "cleaning", "orders", "--dry-run")
    order = worker.must_lease()
    problem = Problem("lock-held", "The lock is held", "by a writer", "Wait for it.")
    assert worker.report(order, Result(Outcome.FAILED, error=problem)).is_success
    ended = cli.run("jobs", "watch", job["id"], code=1)
    assert "cleaning (dry run) failed" in ended.stdout
    assert "The lock is held: by a writer" in ended.stdout
    assert cli.json("jobs", "watch", job["id"], code=1)["error"]["hint"] == "Wait for it."
    assert "There is no" in cli.refused("jobs", "watch", "job_nothing", code=3)


def test_the_log_of_a_job_is_followed_to_its_end_and_the_job_is_run_again(cli: CommandLine, worker: Worker) -> None:
    job = cli.json("jobs", "run", "cleaning", "orders", "--dry-run")
    order = worker.must_lease()
    seen: list[Ended] = []
    following = threading.Thread(target=lambda: seen.append(cli.run("jobs", "log", job["id"], "--follow")))
    at = utc_now()
    worker.log(order, LogLine(0, at, LogLevel.INFO, "jobs.cleaning", "planning"))
    following.start()
    time.sleep(0.5)
    trace = "it failed\n\tat Timeline.java\x1b[2J"
    worker.log(order, LogLine(1, at, LogLevel.ERROR, "jobs.cleaning", trace))
    assert worker.report(order, Result(Outcome.FAILED, error=Problem("x", "no"))).is_success
    following.join(timeout=20)
    [ended] = seen
    first, second, third = ended.stdout.splitlines()
    assert first.endswith("INFO     [1] jobs.cleaning: planning")
    assert second.endswith("ERROR    [1] jobs.cleaning: it failed")
    assert third == "        at Timeline.java [2J"
    errors = cli.json("jobs", "log", job["id"], "--level", "ERROR")
    assert [line["message"] for line in errors["items"]] == [trace]
    assert (errors["next_cursor"], errors["position"]) == (None, "1.1")
    lines = cli.run("jobs", "log", job["id"], "--follow", "--json").stdout.splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["planning", trace]
    file = cli.folder / "job.log"
    assert cli.run("jobs", "log", job["id"], "--output", str(file)).stdout == f"Wrote 3 lines to {file}.\n"
    assert file.read_text().endswith("ERROR    [1] jobs.cleaning: it failed\n\tat Timeline.java\x1b[2J\n")
    assert "File exists" in cli.refused("jobs", "log", job["id"], "--output", str(file), code=2)
    again = cli.json("jobs", "retry", job["id"])
    assert (again["retry_of"], again["dry_run"]) == (job["id"], True)
    # The retry has not ended.
    assert f"Submitted {again['id']}: cleaning" in cli.run("jobs", "retry", job["id"]).stdout
    assert worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED)).is_success
    assert "succeeded" in cli.run("jobs", "watch", again["id"]).stdout
    assert "Only a job that failed" in cli.refused("jobs", "retry", again["id"], code=1)
    cli.refused("jobs", "log", "job_nothing", code=3)


def test_a_plan_that_is_refused_fails_its_watch_and_is_listed_so(cli: CommandLine, worker: Worker) -> None:
    job = cli.json("jobs", "run", "clustering", "orders", "--dry-run")
    problem = Problem("column-unknown", "The table has no such column", "nope", "Its columns are id and city.")
    details = {"refusals": [problem.to_json()], "notes": ["In flight: 20260101120000000."], "files": 3}
    assert worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED, details=details)).is_success
    ended = cli.run("jobs", "watch", job["id"], code=1)
    assert ended.stdout.startswith("clustering (dry run) refused")
    assert "In flight: 20260101120000000.\nThe table has no such column: nope\n  Its columns are id" in ended.stdout
    assert f"{job['id']}  orders  clustering (dry run)  refused" in cli.run("jobs", "list").stdout
    assert re.search(r"^state +refused$", cli.run("jobs", "show", job["id"]).stdout, re.MULTILINE)
    assert cli.json("jobs", "watch", job["id"], code=1)["verdict"] == "refused"

    idle = cli.json("jobs", "run", "compaction", "orders", "--dry-run")
    details = {"refusals": [], "nothing_to_do": True}
    assert worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED, details=details)).is_success
    ended = cli.run("jobs", "watch", idle["id"])
    assert ended.stdout.startswith("compaction (dry run) nothing to do")
    assert "There is nothing to do." in ended.stdout
