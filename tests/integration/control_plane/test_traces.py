"""Tests the traces of requests and jobs with a real receiver of OTLP."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
import pytest

from jobs.contract import Outcome, Problem, Result
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.serving import Serving
from tests.support.otlp import Collector
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from pathlib import Path

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
JSON = {"Content-Type": "application/json"}


def test_a_call_its_job_and_the_report_of_its_attempt_are_one_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SmallTable(tmp_path / "orders").commit("20260101120000000", completed="20260101120001000")
    with Collector() as collector, ExitStack() as stack:
        for name, value in collector.environment.items():
            monkeypatch.setenv(name, value)
        service = stack.enter_context(Serving(tmp_path, AUTOMATIC="false"))
        client = stack.enter_context(httpx.Client(base_url=service.url, headers=JSON))
        table_id = client.post("/v1/tables", json={"base_path": f"{tmp_path}/orders"}).json()["id"]
        path = f"/v1/tables/{table_id}/jobs"
        caller = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
        job_id = client.post(path, json={"kind": "audit"}, headers=caller).json()["id"]
        request = collector.wait_for("POST /v1/tables/{table_id}/jobs")
        assert (request.service, request.trace_id, request.parent_id) == ("groundskeeper", TRACE, CALLER)
        assert request.attributes["http.response.status_code"] == 202

        worker = Worker(client)  # type: ignore[arg-type]  # it calls `post` only
        order = worker.must_lease()
        # The span of the job does not exist before its end, but its id does.
        assert order.traceparent == f"00-{TRACE}-{job_id.removeprefix('job_')}-01"
        attempt = "c" * 16
        client.headers["traceparent"] = f"00-{TRACE}-{attempt}-01"
        secret = Problem("x", "Cannot read", "password=pl4nted")
        assert worker.report(order, Result(Outcome.FAILED, error=secret)).is_success
        report = collector.wait_for("POST /v1/worker/leases/{job_id}/result")
        assert (report.trace_id, report.parent_id) == (TRACE, attempt)
        job = collector.wait_for("job audit")
        assert (job.trace_id, job.span_id, job.parent_id) == (TRACE, job_id.removeprefix("job_"), request.span_id)
        assert (job.is_error, job.attributes["job.state"]) == (True, "failed")
        assert request.start <= job.start < job.end
        # Without a valid trace of the caller each call begins a new one.
        for wrong in ("00-" + "0" * 32 + f"-{CALLER}-01", "x" * 1000, f"00-{TRACE}-{'0' * 16}-01"):
            assert client.get(f"/v1/jobs/{job_id}", headers={"traceparent": wrong}).status_code == 200
        assert client.get("/readyz").status_code == 200
        assert service.stop() == 0
        shown = collector.named("GET /v1/jobs/{job_id}")
        assert {span.parent_id for span in shown} == {""}
        assert len({span.trace_id for span in shown} - {TRACE}) == 3
        # Repeated calls of workers and probes have no spans.
        assert {span.name.split()[1] for span in collector.spans if span.name[:4] in ("GET ", "POST")} == {
            "/v1/tables",
            "/v1/tables/{table_id}/jobs",
            "/v1/worker/leases/{job_id}/result",
            "/v1/jobs/{job_id}",
        }
        assert "pl4nted" not in str(collector.spans)


@pytest.mark.exhaustive
def test_without_an_endpoint_the_sdk_is_not_even_imported() -> None:
    code = (
        "import sys, service.cli.serving, service.runtime.composition, jobs.worker.lease_loop, jobs.tracing as t\n"
        "t.start('x', None, None, {})\n"
        "with t.span('a') as span: span.set(b=1)\n"
        "assert not t.is_on() and t.current() is None and t.for_new_job() is None\n"
        # FastAPI imports the API of OpenTelemetry where that is installed.
        "assert not [each for each in sys.modules if each.startswith(('opentelemetry.sdk', 'opentelemetry.exp'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_the_extra_the_process_says_so_and_goes_on() -> None:
    code = (
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "import jobs.tracing as t\n"
        "t.start('x', None, None, {'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9'})\n"
        "assert not t.is_on()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    assert "Install the extra opentelemetry" in ended.stderr
