"""Tests the trace, the log lines and the stored log of a job that a real worker runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.daemon import Daemon
from tests.integration import tables
from tests.support.otlp import Collector, Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as collector:
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        yield collector


def children_of(spans: list[Span], parent: Span) -> list[Span]:
    return [span for span in spans if span.parent_id == parent.span_id]


def log_of(daemon: Daemon, job_id: str, **params: Any) -> list[dict[str, Any]]:
    answer = daemon.call("GET", f"/v1/jobs/{job_id}/log", params={"limit": 500, **params})
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


@pytest.mark.exhaustive
def test_a_job_is_one_trace_from_the_request_to_the_commit_and_its_log_is_kept(
    collector: Collector, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "orders"
    options = tables.write_table(spark, base, count=300, partitioned=False)
    tables.upsert(tables.rows(spark, 0, 100, ts=9), base, options)
    with Daemon(tmp_path / "service", allowed_roots=str(tmp_path), log_format="json") as daemon:
        table_id = daemon.register(base)
        job_id = daemon.submit(table_id, "compaction")
        job = daemon.wait(job_id)
        assert job["state"] == "succeeded", job
        [instant] = job["instants"]
        lines = log_of(daemon, job_id)
        # A table whose files vanish under a job: the JVM's error is in its log.
        for file in base.rglob("*.parquet"):
            if ".hoodie" not in file.parts:
                file.write_bytes(b"broken")
        tables.upsert(tables.rows(spark, 500, 600, ts=10), base, options)
        failed_id = daemon.submit(table_id, "compaction")
        failed = daemon.wait(failed_id)
        errors = log_of(daemon, failed_id, level="WARNING")
        log = daemon.log.read_text()

    # The trace.
    request = collector.wait_for("POST /v1/tables/{table_id}/jobs", lambda span: span.parent_id == "")
    of_trace = [span for span in collector.spans if span.trace_id == request.trace_id]
    [of_job] = children_of(of_trace, request)
    [attempt] = [span for span in children_of(of_trace, of_job) if span.name == "attempt of compaction"]
    assert (of_job.name, attempt.service) == ("job compaction", "groundskeeper-worker")
    assert attempt.attributes["job.outcome"] == "succeeded"
    steps = children_of(of_trace, attempt)
    assert "POST /v1/worker/leases/{job_id}/result" in {span.name for span in steps}
    [commit] = [span for span in of_trace if span.name == "commit"]
    assert commit.attributes["hudi.instant"] == instant
    assert commit.parent_id in {span.span_id for span in steps}
    spark_jobs = [span for span in of_trace if span.name.startswith("Spark job")]
    assert spark_jobs
    assert {span.parent_id for span in spark_jobs} <= {span.span_id for span in [attempt, *steps]}
    assert all(of_job.start <= span.start <= span.end for span in of_trace if span != request)

    # The logs.
    objects = [json.loads(line) for line in log.splitlines()]
    of_worker = [each for each in objects if "worker" in each]
    about = [each for each in of_worker if each.get("job_id") == job_id]
    assert {(each["table_id"], each["attempt"]) for each in about} == {(table_id, 1)}
    assert {line["message"] for line in lines} <= {each["message"] for each in about}
    assert any("running compaction" in line["message"] for line in lines)
    if failed["state"] == "failed":
        text = "\n".join(line["message"] for line in errors)
        assert "\tat " in text
        assert any(line["logger"].startswith("org.apache.") for line in errors), [line["logger"] for line in errors]
    assert failed["state"] == "failed", errors
