"""Tests the typed client: its generated part matches the API, and it accepts the answers of later services."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from groundskeeper_client import ApiError, Call, NoAnswerError, Retries, calls, models, problems, typed
from groundskeeper_client.call import segment
from groundskeeper_client.event_stream import Messages
from groundskeeper_client.exchange import error_of, options
from groundskeeper_client.retries import may_repeat
from service.client.generator.writing import FOLDER, files

CLIENT = FOLDER.parents[1]


@pytest.mark.slow
def test_the_generated_client_is_that_of_the_apis_document() -> None:
    for name, text in files().items():
        assert (FOLDER / name).read_text() == text, f"{name}: run `python -m service.client.generator`"
    assert {path.name for path in FOLDER.glob("*.py")} == set(files())


def test_the_client_imports_nothing_of_the_service_and_no_framework() -> None:
    code = "import sys, groundskeeper_client; print(*{name.split('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code], cwd=CLIENT, capture_output=True, text=True, check=True)
    assert not {"service", "jobs", "fastapi", "pydantic", "sqlalchemy", "pyspark"} & set(ran.stdout.split())


def test_a_request_has_only_what_was_given() -> None:
    body = models.CompactionIn(params=models.CompactionParams(limit_bytes=5))
    sent = calls.submit_job("tbl/1", body).for_httpx()
    assert sent["url"] == "/v1/tables/tbl%2F1/jobs"
    assert msgspec.json.decode(sent["content"]) == {"kind": "compaction", "params": {"limit_bytes": 5}}
    listed = calls.list_jobs(kind=models.JobKind.AUDIT, limit=3).for_httpx()
    assert listed["params"] == [("kind", "audit"), ("limit", "3")]
    assert listed["content"] is None


@pytest.mark.parametrize(("given", "sent"), [("..", "%2E%2E"), (".", "%2E"), ("a?b#c", "a%3Fb%23c"), ("é", "%C3%A9")])
def test_an_id_never_leads_to_another_path(given: str, sent: str) -> None:
    assert segment(given) == sent


def test_the_client_accepts_enum_values_and_members_of_a_later_service() -> None:
    answer = b'{"id": "inc_1", "kind": "later", "more": 1}'

    class LaterIncident(msgspec.Struct):
        id: str
        kind: models.IncidentKind

    got = msgspec.json.decode(answer, type=LaterIncident)
    assert got.kind == "later"
    assert isinstance(got.kind, models.IncidentKind)
    assert got.kind is not models.IncidentKind.STALE_WRITE


def test_an_answer_that_violates_the_schema_has_its_own_error() -> None:
    call = calls.get_job("job_1")
    for content in (b"<html>", b"{}", b"\xff", b"[]"):
        with pytest.raises(NoAnswerError):
            call.parsed(content, "http://127.0.0.1")


def test_a_dictionary_of_an_answer_becomes_a_model() -> None:
    given = {"tasks_done": 1, "tasks_total": 2, "bytes_done": 3, "bytes_total": 4, "step": "sorting", "more": 5}
    assert typed(models.ProgressOut, given).step == "sorting"
    with pytest.raises(NoAnswerError, match="no ProgressOut"):
        typed(models.ProgressOut, None)


def test_a_call_is_repeated_only_where_that_does_no_harm() -> None:
    post = Call("POST", "/", str)
    assert not may_repeat(503, is_repeatable=post.is_repeatable)
    assert may_repeat(429, is_repeatable=post.is_repeatable)
    assert not may_repeat(500, is_repeatable=True)
    submitted = calls.submit_job("t", models.AuditIn())
    assert not submitted.is_repeatable
    assert submitted.with_key("k").is_repeatable
    assert submitted.with_key("k").with_key("other").headers["idempotency-key"] == "k"
    assert post.with_key("k") is post
    assert Call("PUT", "/", str).is_repeatable
    assert not Call("PUT", "/", str, headers={"If-Match": '"1"'}).is_repeatable


def test_retry_after_is_obeyed_within_limits() -> None:
    retries = Retries(times=2, first=1.0, most=8.0, longest=60.0)
    assert retries.pause(1, retry_after="30") == 30.0
    assert retries.pause(1, retry_after="61") is None
    assert retries.pause(3) is None
    first, second = retries.pause(1), retries.pause(2, retry_after="nonsense")
    assert first is not None
    assert second is not None
    assert 0.8 <= first <= 1.2
    assert 1.6 <= second <= 2.4
    past = retries.pause(1, retry_after="Thu, 01 Jan 2026 00:00:00 GMT")
    assert past is not None
    assert past <= 1.2


def test_a_problem_document_becomes_the_error_of_its_type() -> None:
    import httpx

    def problem(document: object, status: int = 404) -> Exception:
        return error_of(httpx.Response(status, json=document, request=httpx.Request("GET", "http://x/y?secret=1")))

    known = problem({"type": "/problems/job-not-found", "title": "No such job", "status": 404, "job_id": "j"})
    assert isinstance(known, problems.JobNotFoundError)
    assert known.members == {"job_id": "j"}
    unknown = problem({"type": "/problems/of-a-later-version", "title": "New"}, 418)
    assert type(unknown) is ApiError
    assert (unknown.type, unknown.status) == ("of-a-later-version", 418)
    foreign = problem(["no problem"], 502)
    assert isinstance(foreign, NoAnswerError)
    assert "secret" not in str(foreign)


def test_an_invalid_address_or_token_is_refused_at_once() -> None:
    for url in ("nonsense", "ftp://x", "http://"):
        with pytest.raises(Exception, match="no address"):
            options(url, None)
    with pytest.raises(Exception, match="characters"):
        options("http://127.0.0.1:1", "a\r\nb")


def test_a_stream_is_bounded_and_goes_on_where_it_broke() -> None:
    messages = Messages()
    event = '{"id":"e","type":"job.queued","source":"/","time":"2026-01-01T00:00:00Z","sequence":"07","data":{}}'
    lines = [": hello", "", "id: 7", f"data: {event}", "", "id: 9", ": still here", ""]
    got = [found for line in lines if (found := messages.event(line))]
    assert [each.type for each in got] == ["job.queued"]
    assert messages.position == 9
    messages.event("id: 10")
    messages.lost()
    messages.event("")
    assert messages.position == 9
    messages.event("data: {}")
    with pytest.raises(NoAnswerError):
        messages.event("")
