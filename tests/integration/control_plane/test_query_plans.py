"""Tests how PostgreSQL executes the service's statements with 100 000 jobs and 1 000 000 commits.

The server logs the plan of each statement with the rows that it read (`auto_explain`), so the test covers all
statements of the service's loops and REST calls.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import sqlalchemy as sa

from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import migrate
from service.db.engine import open_engine, writing
from tests.integration.serving import Serving, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.postgresql import Server

TABLES, JOBS, COMMITS, EVENTS, DECISIONS, SAMPLES = 1000, 100_000, 1_000_000, 200_000, 100_000, 300_000
# The limit is more than the rows of a page, a batch or a registered table, and far less than the rows of a large
# database table.
MOST_ROWS = 5000
MOST_ROWS_OF = {
    # The problems need the current decision of each table and kind of job, whatever the length of the history.
    "decisions": 20 * TABLES,
    # A page of the overview draws the last day of 500 tables, from samples of one hour and of five minutes.
    "samples": 50 * 500,
}
LARGE = {"jobs", "job_attempts", "commits", "events", "deliveries", "delivery_attempts", "decisions", "samples"}
JSON = {"Content-Type": "application/json"}
# Each table has 300 samples of five minutes, which are not due for deletion.
# A table has a job every 15 minutes, a commit every 90 s and an event every 7 minutes, the newest of them just now.
FILL = f"""
INSERT INTO jobs (id, table_id, kind, params, dry_run, mutating, rewriting, state, attempt, max_attempts, not_before,
                  worker_id, instants, cancel_requested, created_at, leased_at, started_at, finished_at)
SELECT 'job_' || lpad(to_hex(n), 16, '0'), 'tbl_' || (n % {TABLES}),
       (ARRAY['compaction', 'cleaning', 'clustering', 'audit'])[1 + n / {TABLES} % 4], '{{}}', false, true, null,
       CASE n % 50 WHEN 0 THEN 'failed' WHEN 1 THEN 'cancelled' ELSE 'succeeded' END, 1, 3,
       now() - ({JOBS} - n) * interval '0.9 s', 'w1', '[]', false,
       now() - ({JOBS} - n) * interval '0.9 s', now() - ({JOBS} - n) * interval '0.9 s',
       now() - ({JOBS} - n) * interval '0.9 s', now() - ({JOBS} - n) * interval '0.9 s'
FROM generate_series(1, {JOBS}) n;
INSERT INTO job_attempts (job_id, attempt, worker_id, started_at, ended_at, outcome)
SELECT id, 1, 'w1', started_at, finished_at, state FROM jobs;
INSERT INTO commits (table_id, requested_time, action, completion_time, completed_at, seen_at, operation, rows_written,
                     rows_deleted, bytes_written, partitions, file_groups, schema_changed, is_news)
SELECT 'tbl_' || (n % {TABLES}), to_char(at, 'YYYYMMDDHH24MISSMS'), 'deltacommit', to_char(at, 'YYYYMMDDHH24MISSMS'),
       at, at, 'upsert', 100, 0, 10000, '[]', 4, false, true
FROM (SELECT n, now() - ({COMMITS} - n) * interval '0.09 s' AS at FROM generate_series(1, {COMMITS}) n) each;
INSERT INTO events (id, type, at, table_id, data)
SELECT 'evt_' || lpad(to_hex(n), 16, '0'), (ARRAY['commit.published', 'job.succeeded'])[1 + n % 2],
       now() - ({EVENTS} - n) * interval '0.4 s', 'tbl_' || (n % {TABLES}), '{{}}'
FROM generate_series(1, {EVENTS}) n;
INSERT INTO webhooks (id, url, types, tables, description, sealed_secret, sealed_headers, created_at, updated_at,
                      disabled_because, disabled_at)
VALUES ('whk_1', 'https://example.com', '[]', '[]', '', '', '', now(), now(), 'by hand', now());
INSERT INTO lanes (webhook_id, key) SELECT 'whk_1', 'tbl_' || n FROM generate_series(0, {TABLES} - 1) n;
INSERT INTO deliveries (id, webhook_id, lane_id, event_seq, state, tries, created_at, ended_at)
SELECT 'dlv_' || lpad(to_hex(seq), 16, '0'), 'whk_1', lanes.id, seq, 'delivered', 1, at, at
FROM events JOIN lanes ON lanes.key = events.table_id;
INSERT INTO delivery_attempts (delivery_id, at, milliseconds, status, excerpt)
SELECT id, ended_at, 10, 200, '' FROM deliveries;
INSERT INTO decisions (table_id, kind, verdict, code, because, params, first_at, last_at, count)
SELECT 'tbl_' || (n % {TABLES}),
       (ARRAY['compaction', 'cleaning', 'clustering', 'bucket_expansion'])[1 + n / {TABLES} % 4], 'skip',
       'below-threshold', 'too few commits', '{{}}', at, at, 1
FROM (SELECT n, now() - ({DECISIONS} - n) * interval '0.8 s' AS at FROM generate_series(1, {DECISIONS}) n) each;
INSERT INTO samples (table_id, step, slot, at, log_bytes, base_bytes, delta_commits, file_groups, base_files,
                     small_files, freed_bytes, timeline_commits)
SELECT 'tbl_' || (n % {TABLES}), 300, extract(epoch FROM at)::bigint / 300, at, n, n, 1, 1, 1, 1, 1, 1
FROM (SELECT n, now() - (n / {TABLES}) * interval '280 s' AS at FROM generate_series(1, {SAMPLES}) n) each
ON CONFLICT DO NOTHING;
"""


@dataclass(frozen=True)
class Statement:
    """An executed statement: its text, milliseconds, and the nodes of its plan."""

    text: str
    milliseconds: float
    nodes: list[dict[str, Any]]

    def problems(self) -> Iterator[str]:
        for node in self.nodes:
            relation = node.get("Relation Name")
            read = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            if relation in LARGE and read > MOST_ROWS_OF.get(relation, MOST_ROWS):
                yield f"{node['Node Type']} of {relation} reads {read} rows in {self.milliseconds:.0f} ms: {self.text}"


def executed(server: Server) -> list[Statement]:
    """Returns the statements that the server has logged."""
    found = []
    decoder = json.JSONDecoder()
    log = (server.folder / "log").read_text(errors="replace")
    for part in log.split("ms  plan:\n")[1:]:
        plan, _ = decoder.raw_decode(part.replace("\n\t", "\n").lstrip())
        nodes = [plan["Plan"]]
        for node in nodes:
            nodes += node.get("Plans", [])
        found.append(Statement(plan["Query Text"], nodes[0]["Actual Total Time"], nodes))
    return found


@pytest.fixture(scope="module")
def database(postgresql: Server) -> str:
    """A filled database; the server logs the plans of all statements except those that fill it."""
    url = postgresql.new_database()
    engine = open_engine(url)
    migrate.upgrade(engine)
    now = datetime.now(UTC)
    with writing(engine) as connection:
        for number in range(TABLES):
            table_id = f"tbl_{number}"
            table_store.register(connection, Registration(table_id, f"/nowhere/{table_id}", table_id, now, now))
    # Unlike the service's own engine, the test's has no time limit for statements.
    admin = sa.create_engine(engine.url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(FILL.replace("%", "%%"))
        connection.exec_driver_sql("VACUUM ANALYZE")
        name = connection.scalar(sa.text("SELECT current_database()"))
        for setting in (
            "session_preload_libraries = 'auto_explain'",
            "auto_explain.log_min_duration = 0",
            "auto_explain.log_analyze = on",
            "auto_explain.log_format = json",
        ):
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET {setting}")
    admin.dispose()
    engine.dispose()
    return url


@pytest.mark.exhaustive
def test_nothing_that_the_service_does_reads_a_large_table_as_a_whole(
    postgresql: Server, database: str, tmp_path: Path
) -> None:
    some, job = "tbl_7", f"job_{7:016x}"
    with Serving(tmp_path, database=database, AUTOMATIC="true", POLL_SECONDS="5", PROBLEM_SECONDS="2") as service:
        with httpx.Client(base_url=service.url, timeout=30, headers=JSON) as http:
            assert http.post("/v1/webhooks", json={"url": "http://127.0.0.1:9/"}).status_code == 201
            submitted = http.post(f"/v1/tables/{some}/jobs", json={"kind": "cleaning"})
            assert submitted.status_code == 202, submitted.text
            for path in (
                "/v1/jobs",
                f"/v1/jobs?table_id={some}",
                "/v1/jobs?state=queued&state=running",
                "/v1/jobs?state=failed",
                "/v1/jobs?state=unknown",
                "/v1/jobs?kind=audit",
                "/v1/jobs?kind=bucket_expansion",
                "/v1/jobs?kind=bucket_expansion&state=failed",
                f"/v1/jobs?table_id={some}&kind=audit&state=failed",
                "/v1/jobs?kind=bucket_expansion&kind=audit&state=failed&state=queued",
                "/v1/jobs?until=2020-01-01T00:00:00Z",
                f"/v1/jobs/{job}",
                "/v1/commits",
                f"/v1/commits?table_id={some}",
                f"/v1/commits?table_id={some}&action=deltacommit",
                "/v1/commits?action=replacecommit",
                "/v1/commits?since=2020-01-01T00:00:00Z",
                f"/v1/commits?since={datetime.now(UTC) - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}",
                f"/v1/commits?table_id={some}&action=replacecommit",
                "/v1/commits?action=replacecommit&action=clean&since=2020-01-01T00:00:00Z",
                "/v1/commits?until=2020-01-01T00:00:00Z",
                f"/v1/commits?until={datetime.now(UTC) - timedelta(hours=20):%Y-%m-%dT%H:%M:%SZ}",
                f"/v1/commits?table_id={some}&until={datetime.now(UTC) - timedelta(hours=20):%Y-%m-%dT%H:%M:%SZ}",
                "/v1/tables",
                f"/v1/tables/{some}",
                f"/v1/tables/{some}/decisions",
                f"/v1/tables/{some}/decisions?current=true",
                "/v1/incidents",
                "/v1/webhooks",
                "/v1/webhooks/whk_1/deliveries",
                "/v1/webhooks/whk_1/deliveries?state=dead",
                "/v1/webhooks/whk_1/deliveries?state=dead&state=pending",
                "/v1/webhooks/whk_1/deliveries?until=2020-01-01T00:00:00Z",
                f"/v1/webhooks/whk_1/deliveries?until={datetime.now(UTC) - timedelta(hours=20):%Y-%m-%dT%H:%M:%SZ}",
                "/v1/workers",
                "/v1/pause",
                "/v1/problems",
                f"/v1/problems?table_id={some}",
                "/v1/problems?severity=critical&severity=warning",
                "/v1/problems?kind=job-failing",
                f"/v1/tables/{some}/history",
                f"/v1/tables/{some}/history?limit=10&until={datetime.now(UTC) - timedelta(hours=5):%Y-%m-%dT%H:%M:%SZ}",
                "/metrics",
                "/readyz",
            ):
                answer = http.get(path)
                assert answer.status_code == 200, (path, answer.text)
                if path != "/metrics" and (cursor := answer.json().get("next_cursor")):
                    separator = "&" if "?" in path else "?"
                    assert http.get(f"{path}{separator}cursor={cursor}").status_code == 200
            lease = http.post("/v1/worker/leases", json={"worker_id": "w2", "wait_seconds": 0})
            assert lease.status_code == 200, lease.text
            plan = lease.json()["plan"]
            beat = {"attempt": plan["attempt"], "instants": []}
            assert http.post(f"/v1/worker/leases/{plan['job_id']}/heartbeat", json=beat).status_code == 200
        # The loops of the service: polls, decisions, deliveries, recovery, retention.
        assert eventually(lambda: sum("watches" in each.text for each in executed(postgresql)) > 200, 60)
        service.stop()
    statements = executed(postgresql)
    assert any("standing_problems" in each.text for each in statements)
    assert {word for word in LARGE if any(f" {word}" in each.text for each in statements)} >= {
        "jobs",
        "commits",
        "events",
    }
    found = sorted({problem for each in statements for problem in each.problems()})
    assert not found, "\n".join(found)
