"""Tests the metrics for Prometheus: the state of the database, the measurements of the process, and the access to
them."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa
import yaml
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from typer.testing import CliRunner

from jobs.contract import BucketIndex, JobKind, Outcome, Problem, Result, WorkerInfo
from service.access.token import Role
from service.api.app import create_app
from service.catalog import snapshot_store, table_store
from service.catalog.registration import Registration
from service.cli.main import app
from service.db import schema
from service.db.engine import open_engine, reading, writing
from service.delivery import outbox
from service.events import tally
from service.events.database import Database
from service.events.notifier import Notifier
from service.events.tally import Count
from service.health import problem_store
from service.health.problem import About, HealthProblem, ObjectType, ProblemKind, Severity
from service.health.problem_store import OpenProblem
from service.lake.commit import BUCKET_RESCALE, COMPACTION, Commit
from service.lake.metadata_table import MetadataTableState
from service.lake.snapshot import PartitionDetail, PartitionState, Since, TableSnapshot
from service.lake.table import TableType
from service.metrics import database_metrics
from service.metrics.database_state import Reader, Reading
from service.metrics.installation import InProcess, Installation
from service.metrics.process_metrics import ProcessMetrics
from service.metrics.scrape import Scrapes
from service.metrics.table_series import Chosen
from service.model.backoff import BackOff
from service.model.clock import utc_now
from service.queue import job_store, job_tally, lease_store, leases, recovery, worker_store
from service.queue.forecaster import Forecaster
from service.queue.job import Job
from service.queue.leases import LeaseConfig
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.receiver import Reply
from tests.integration.serving import Serving, eventually
from tests.support.contexts import changed
from tests.support.guides import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from service.api.dependencies import AppContext
    from tests.integration.control_plane.conftest import FakeClock
    from tests.integration.control_plane.posting import Post
    from tests.integration.receiver import Receiver

GUIDE = ROOT / ".docs" / "monitoring.md"
TABLES = 1000
# An idle machine needs a tenth of this; a query for each table would take seconds.
MOST_SECONDS = 0.5
MOST_STATEMENTS = 17
CONFIG = LeaseConfig(timedelta(seconds=30), 3600.0, BackOff())

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

Values = dict[tuple[str, ...], float]


def parsed(text: str) -> dict[str, Values]:
    """Returns the values of all samples, by name and by the values of the labels in the order of their names."""
    found: dict[str, Values] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = tuple(value for _, value in sorted(sample.labels.items()))
            assert labels not in found.setdefault(sample.name, {}), sample
            found[sample.name][labels] = sample.value
    return found


def scrapes(engine: sa.Engine, clock: Any, chosen: Chosen | None = None) -> Scrapes:
    installation = Installation(Database(engine, clock), chosen=chosen or Chosen())
    return Scrapes(ProcessMetrics(), InProcess(installation))


def values_of(at: Reading) -> dict[str, Values]:
    class Found(Collector):
        def collect(self) -> Iterator[Any]:
            yield from database_metrics.families(at)

    registry = CollectorRegistry()
    registry.register(Found())
    return parsed(generate_latest(registry).decode())


@dataclasses.dataclass
class Service:
    """The queue with the functions that calls and background tasks use, on each kind of database."""

    engine: sa.Engine
    clock: FakeClock
    submitted: int = 0

    def submit(self, kind: JobKind = JobKind.COMPACTION, **changes: Any) -> str:
        self.submitted += 1
        job = Job(f"job_{self.submitted}", "tbl_1", kind, self.clock(), self.clock())
        with writing(self.engine) as connection:
            return job_store.submit(connection, job.evolve(**changes)).id

    def lease(self) -> Job:
        with writing(self.engine) as connection:
            deadline = self.clock() + CONFIG.lease
            job = lease_store.take(connection, worker_id="w1", group="default", now=self.clock(), deadline=deadline)
        assert job is not None
        return job

    def report(self, job: Job, outcome: Outcome = Outcome.SUCCEEDED, **more: Any) -> Job:
        return leases.report(
            Database(self.engine, self.clock),
            Random(1),
            CONFIG,
            job_id=job.id,
            attempt=job.attempt,
            result=Result(outcome, **more),
        )

    def metrics(self) -> dict[str, Values]:
        return values_of(Reader(self.engine, self.clock, Forecaster()).read())


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock, a_table: Registration) -> Service:
    return Service(engine, clock)


def test_jobs_are_counted_by_kind_and_outcome_with_their_time_locks_and_bytes(service: Service, clock: Any) -> None:
    assert service.metrics()["groundskeeper_jobs_finished_total"]["compaction", "succeeded"] == 0
    service.submit()
    job = service.lease()
    clock.advance(20)
    passing = Problem("lock-timeout", "The lock was taken", retriable=True)
    retried = service.report(job, Outcome.FAILED, error=passing, details={"lock_wait_seconds": 12.5})
    clock.advance(60)
    job = service.lease()
    assert job.id == retried.id
    clock.advance(90)
    service.report(job, details={"bytes": 1000, "lock_wait_seconds": 0.5, "bytes_read": True})
    service.submit(JobKind.CLUSTERING, dry_run=True)
    service.report(service.lease(), details={"bytes_read": 10**9})
    service.submit(JobKind.CLUSTERING)
    service.report(service.lease(), Outcome.CANCELLED, details={"bytes_read": 7, "lock_wait_seconds": -1})

    found = service.metrics()
    ended = {labels: number for labels, number in found["groundskeeper_jobs_finished_total"].items() if number}
    assert ended == {("compaction", "succeeded"): 1, ("clustering", "cancelled"): 1}
    seconds = found["groundskeeper_job_attempt_duration_seconds_sum"]
    assert seconds == {("compaction", "failed"): 20, ("compaction", "succeeded"): 90, ("clustering", "cancelled"): 0}
    buckets = found["groundskeeper_job_attempt_duration_seconds_bucket"]
    of_success = {bound: number for (kind, bound, end), number in buckets.items() if end == "succeeded"}
    assert [of_success[bound] for bound in ("60.0", "300.0", "3600.0", "+Inf")] == [0, 1, 1, 1]
    assert found["groundskeeper_lock_wait_seconds_total"]["compaction",] == 13
    assert found["groundskeeper_lock_wait_seconds_total"]["clustering",] == 0
    read_bytes = {labels: number for labels, number in found["groundskeeper_job_read_bytes_total"].items() if number}
    assert read_bytes == {("compaction",): 1000, ("clustering",): 7}
    assert found["groundskeeper_events_total"]["job.succeeded",] == 2


@on_sqlite
def test_a_lost_lease_is_counted_and_its_job_goes_back_to_the_queue(service: Service, clock: Any) -> None:
    service.submit()
    service.lease()
    assert service.metrics()["groundskeeper_jobs"]["compaction", "leased"] == 1
    clock.advance(31)
    recovery.run_once(service.engine, Notifier(), clock)
    found = service.metrics()
    assert found["groundskeeper_leases_lost_total"]["compaction",] == 1
    assert found["groundskeeper_jobs"]["compaction", "queued"] == 1
    assert found["groundskeeper_job_attempt_duration_seconds_count"] == {("compaction", "lost"): 1}


@on_sqlite
def test_the_age_of_a_queue_is_that_of_its_oldest_job_that_is_due(service: Service, clock: Any) -> None:
    with writing(service.engine) as connection:
        worker_store.announce(connection, "w1", WorkerInfo(group="small", slots=3), clock())
    service.submit(JobKind.AUDIT, worker_group="large", not_before=clock() + timedelta(seconds=50))
    clock.advance(40)
    assert service.metrics()["groundskeeper_queue_oldest_job_age_seconds"] == {("small",): 0}
    service.submit(JobKind.CLEANING, worker_group="large", waits_for_writers=True)
    clock.advance(15)
    found = service.metrics()
    assert found["groundskeeper_queue_oldest_job_age_seconds"] == {("small",): 0, ("large",): 5}
    assert found["groundskeeper_workers"] == {("small",): 1, ("large",): 0}
    assert found["groundskeeper_worker_slots"] == {("small",): 3, ("large",): 0}
    clock.advance(10)
    found = service.metrics()
    assert found["groundskeeper_workers"] == {("small",): 0, ("large",): 0}
    assert found["groundskeeper_worker_last_heartbeat_age_seconds"] == {("small",): 65}


@on_sqlite
def test_groups_beyond_the_fiftieth_share_one_series(service: Service, clock: Any) -> None:
    with writing(service.engine) as connection:
        for number in range(60):
            worker_store.announce(connection, f"w{number}", WorkerInfo(group=f"g{number:02}", slots=2), clock())
    slots = service.metrics()["groundskeeper_worker_slots"]
    assert len(slots) == 51
    assert slots["_other",] == 20


def test_the_metrics_have_the_backlog_of_all_tables_and_of_the_worst_one(engine: sa.Engine, clock: Any) -> None:
    register(engine, clock, 3)
    found = values_of(Reader(engine, clock, Forecaster()).read())
    assert found["groundskeeper_tables"] == {(): 3}
    assert found["groundskeeper_backlog_log_bytes"] == {(): 2 * (0 + 100 + 200)}
    assert found["groundskeeper_backlog_log_bytes_max"] == {(): 400}
    assert found["groundskeeper_table_base_bytes"] == {(): 6000}
    assert found["groundskeeper_delta_commits_since_compaction_max"] == {(): 1}  # The third table is copy-on-write.
    assert found["groundskeeper_timeline_commits_max"] == {(): 2}
    assert found["groundskeeper_poll_lag_seconds"] == {(): 0}
    clock.advance(75)
    assert values_of(Reader(engine, clock, Forecaster()).read())["groundskeeper_poll_lag_seconds"] == {(): 75}


@on_sqlite
def test_bytes_written_are_those_of_new_commits_of_services(engine: sa.Engine, clock: Any) -> None:
    def commit(operation: str, written: int | None, *, is_news: bool = True) -> Commit:
        return Commit("tbl_1", "1", "commit", None, clock(), clock(), operation, bytes_written=written, is_news=is_news)

    new = [commit(COMPACTION, 10), commit("UPSERT", 20), commit(BUCKET_RESCALE, None)]
    counts = job_tally.of_commits([*new, commit(COMPACTION, 5), commit(COMPACTION, 99, is_news=False)])
    with writing(engine) as connection:
        outbox.count(connection, counts)
    written = values_of(Reader(engine, clock, Forecaster()).read())["groundskeeper_service_written_bytes_total"]
    assert {labels: number for labels, number in written.items() if number} == {("compaction",): 15}


def test_counters_of_concurrent_transactions_are_exact(engine: sa.Engine) -> None:
    """Each transaction adds to the same counters in another order, and without the outbox's lock they would block each
    other."""
    failures: list[Exception] = []

    def add(names: list[str]) -> None:
        try:
            for _ in range(10):
                with writing(engine) as connection:
                    for name in names:
                        outbox.count(connection, [Count(name, ("a", "b"), 0.5)])
        except Exception as error:
            failures.append(error)

    orders = [["x", "y", "z"], ["z", "y", "x"], ["y", "z", "x"], ["z", "x", "y"]]
    threads = [threading.Thread(target=add, args=(names,)) for names in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with reading(engine) as connection:
        assert tally.every(connection) == {name: {("a", "b"): 20.0} for name in "xyz"}


@on_sqlite
def test_deliveries_are_counted_by_their_outcome(engine: sa.Engine, clock: Any, post: Post, receiver: Receiver) -> None:
    metrics = ProcessMetrics()
    post.dispatcher(on_attempt=metrics.sent)
    post.webhook(receiver.url)
    post.publish(1)
    post.deliver()
    receiver.answer = Reply(500)
    post.publish(1)
    post.deliver()
    attempts = parsed(generate_latest(metrics.registry).decode())
    count = attempts["groundskeeper_webhook_attempt_duration_seconds_count"]
    assert count == {("delivered",): 1, ("retry",): 1, ("dead",): 0}
    clock.advance(600)
    found = values_of(Reader(engine, clock, Forecaster()).read())
    assert found["groundskeeper_webhook_deliveries"] == {("pending",): 1, ("dead",): 0}
    assert found["groundskeeper_webhooks"] == {("working",): 0, ("failing",): 1, ("disabled",): 0}
    assert found["groundskeeper_webhook_lag_seconds"][()] > 500


def test_a_scrape_of_a_thousand_tables_takes_milliseconds_and_a_fixed_number_of_statements(
    engine: sa.Engine, clock: Any
) -> None:
    register(engine, clock, 3)
    copy_tables(engine, TABLES - 3)
    statements: list[str] = []
    sa.event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    taken = []
    for _ in range(3):
        statements.clear()
        begun = time.monotonic()
        text = scrapes(engine, clock).latest().result()
        taken.append(time.monotonic() - begun)
    print(f"{min(taken) * 1000:.0f} ms, {len(text)} bytes, {len(statements)} statements")
    assert parsed(text.decode())["groundskeeper_tables"] == {(): TABLES}
    assert len(statements) <= MOST_STATEMENTS
    assert min(taken) < MOST_SECONDS
    assert len(text) < 100_000


def test_chosen_tables_have_series_of_their_own_up_to_a_limit(engine: sa.Engine, clock: Any) -> None:
    register(engine, clock, 4)
    tags = {"team": "shop", "pii": ""}
    with writing(engine) as connection:
        connection.execute(schema.tables.update().where(schema.tables.c.id == "tbl_1").values(owner="ada", tags=tags))
        rows = [("tbl_0", Severity.CRITICAL), ("tbl_1", Severity.WARNING), ("tbl_1", Severity.WARNING)]
        problems = [
            HealthProblem(
                kind=kind,
                severity=severity,
                about=About(ObjectType.TABLE, table, table),
                since=clock(),
                **dict.fromkeys(("title", "detail", "consequence", "remedy", "command"), ""),
                evidence={},
            )
            for (table, severity), kind in zip(rows, ProblemKind, strict=False)
        ]
        problem_store.add(connection, [OpenProblem(each, clock()) for each in problems])

    def series(*patterns: str, most: int = 100) -> dict[str, Values]:
        chosen = Chosen(patterns, most)
        return parsed(scrapes(engine, clock, chosen).latest().result().decode())

    assert not [name for name in series() if name.startswith("groundskeeper_table_problems")]
    # Labels are in the order of their names: owner, severity, table, table_id, tags.
    found = series("tag:team=shop")
    labels = ("ada", "tbl_1", "tbl_1", ",pii,team=shop,")
    assert found["groundskeeper_table_log_bytes"] == {labels: 200}
    assert found["groundskeeper_table_delta_commits"] == {labels: 1}
    assert found["groundskeeper_table_metadata_commits"] == {labels: 7}
    counts = {key[1]: number for key, number in found["groundskeeper_table_problems"].items()}
    assert counts == {"critical": 0, "warning": 2, "notice": 0}
    assert series("owner:ada")["groundskeeper_table_log_bytes"] == {labels: 200}
    few = series("*", most=3)
    # The most serious problem first, then the largest logs.
    assert {key[2] for key in few["groundskeeper_table_log_bytes"]} == {"tbl_0", "tbl_1", "tbl_3"}
    assert few["groundskeeper_tables_without_series"] == {(): 1}


def test_the_text_is_computed_at_most_once_a_second_for_all_callers(sqlite: sa.Engine, clock: Any) -> None:
    scraped = scrapes(sqlite, clock)
    first = scraped.latest()
    assert all(scraped.latest() is first for _ in range(50))
    first.result()
    assert scraped.latest() is first
    assert eventually(lambda: scraped.latest() is not first, 10)


def test_without_the_database_a_scrape_still_shows_what_the_process_measures(
    app_context: AppContext, tmp_path: Path, clock: Any
) -> None:
    away = open_engine(f"sqlite:///{tmp_path}/missing/gk.db")
    with TestClient(create_app(changed(app_context, engine=away, open_metrics=True))) as client:
        answer = client.get("/metrics")
    assert answer.status_code == 200
    found = parsed(answer.text)
    assert found["groundskeeper_database_up"] == {(): 0}
    assert "groundskeeper_tables" not in found
    assert list(found["groundskeeper_build_info"].values()) == [1]


def test_requests_are_measured_by_the_template_of_their_route(client: TestClient) -> None:
    for path in ("/v1/jobs/job_1", "/v1/jobs/job_2", "/nowhere/1", "/nowhere/2", "/healthz"):
        client.get(path)
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    counted = parsed(answer.text)["groundskeeper_http_request_duration_seconds_count"]
    assert counted == {
        ("GET", "/v1/jobs/{job_id}", "4xx"): 2,
        ("GET", "none", "4xx"): 2,
        ("GET", "/healthz", "2xx"): 1,
    }


def test_scrapes_need_the_role_reader_unless_a_setting_opens_them(
    client: TestClient, app_context: AppContext, make_token: Callable[..., dict[str, str]]
) -> None:
    assert client.get("/metrics").status_code == 200  # No token exists yet.
    reader, worker = make_token(Role.READER), make_token(Role.WORKER, ("default",))
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=worker).status_code == 403
    assert client.get("/metrics", headers=reader).status_code == 200
    with TestClient(create_app(changed(app_context, open_metrics=True))) as anybody:
        assert anybody.get("/metrics").status_code == 200
        assert anybody.get("/v1/tables").status_code == 401


def test_a_job_over_rest_is_counted(client: TestClient, table_id: str, app_context: AppContext) -> None:
    assert client.post(f"/v1/tables/{table_id}/jobs", json={"kind": "audit"}).status_code == 202
    worker = Worker(client)
    worker.report(worker.must_lease(), Result(Outcome.SUCCEEDED, details={"bytes": 5}))
    found = parsed(client.get("/metrics").text)
    assert found["groundskeeper_jobs_finished_total"]["audit", "succeeded"] == 1
    assert found["groundskeeper_job_read_bytes_total"]["audit",] == 5


def test_dashboard_alerts_and_guide_name_the_metrics_of_a_running_service(tmp_path: Path) -> None:
    with Serving(tmp_path, METRICS_TABLES="*") as service:
        register(service.engine, utc_now, 1)
        text = httpx.get(f"{service.url}/metrics").text
    kinds = dict(re.findall(r"^# TYPE (groundskeeper_\w+) (\w+)$", text, re.MULTILINE))
    suffixes = {"histogram": ("_bucket", "_sum", "_count")}
    series = {f"{name}{suffix}" for name, kind in kinds.items() for suffix in suffixes.get(kind, ("",))}
    dashboard, rules = (CliRunner().invoke(app, ["manifests", what]).stdout for what in ("grafana", "alerts"))
    for printed in (dashboard, rules):
        named = set(re.findall(r"groundskeeper_\w+", printed))
        assert len(named) > 10
        assert named <= series
    assert set(re.findall(r"`groundskeeper_(\w+)", GUIDE.read_text())) == {
        name[len("groundskeeper_") :] for name in kinds
    }
    panels = json.loads(dashboard)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(target["expr"] for panel in panels if panel["type"] != "row" for target in panel["targets"])
    for rule in yaml.safe_load(rules)["groups"][0]["rules"]:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert rule["expr"].count("(") == rule["expr"].count(")")


def register(engine: sa.Engine, clock: Any, number: int) -> None:
    """Registers tables with 100, 200, 300 ... bytes of logs in two partitions; each third one is copy-on-write."""
    with writing(engine) as connection:
        for each in range(number):
            table_id, now = f"tbl_{each}", clock()
            table_store.register(
                connection, Registration(table_id, f"/lake/{each}", table_id, now, now, index=BucketIndex(4, ("id",)))
            )
            states = [PartitionState(f"p{n}", base_bytes=1000, log_bytes=100 * each) for n in range(2)]
            snapshot_store.save_partitions(connection, table_id, None, [PartitionDetail(state) for state in states])
            kind = TableType.COPY_ON_WRITE if each % 3 == 2 else TableType.MERGE_ON_READ
            own = MetadataTableState(now, commits=each + 6)
            snapshot = TableSnapshot(
                table_id, now, kind, since_compaction=Since(each), timeline_commits=each, metadata_table=own
            )
            snapshot_store.save(connection, snapshot_store.Stored(snapshot))


def copy_tables(engine: sa.Engine, number: int) -> None:
    """Copies the first table this number of times, with its snapshot, because registering each would take seconds."""
    with writing(engine) as connection:
        for part, key in ((schema.tables, "id"), (schema.watches, "table_id"), (schema.snapshots, "table_id")):
            columns = [each for each in part.c if each.computed is None]
            [row] = connection.execute(sa.select(*columns).where(part.c[key] == "tbl_0")).mappings()
            copies = [{**row, key: f"copy_{each}"} for each in range(number)]
            if part is schema.tables:
                copies = [{**each, "base_path": f"/lake/{each['id']}"} for each in copies]
            connection.execute(part.insert(), copies)
