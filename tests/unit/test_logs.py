"""Tests the log of a process as JSON, and the log lines of an attempt and of a JVM."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from jobs.attempt_log import AttemptLog, AttemptLogs
from jobs.contract import MOST_LINE_CHARACTERS, MOST_LOG_CHARACTERS, MOST_LOG_LINES, LogLevel
from jobs.hudi.jvm_log import JvmLog
from jobs.logs import JsonFormatter, TextFormatter, log_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

AT = datetime(2026, 1, 1, tzinfo=UTC)
STACK = "java.lang.IllegalStateException: no\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)\n\tat a.B.e(B.java:3)\n"


@pytest.fixture
def logger() -> Iterator[Callable[[logging.Handler], logging.Logger]]:
    own = logging.getLogger("tests.log")
    before = own.level, own.propagate, own.handlers

    def attach(handler: logging.Handler) -> logging.Logger:
        own.handlers, own.propagate = [handler], False
        own.setLevel(logging.INFO)
        return own

    yield attach
    own.level, own.propagate, own.handlers = before


def written(logger: Callable[..., logging.Logger], formatter: logging.Formatter) -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    return logger(handler), stream


def test_each_line_is_an_object_with_its_ids_and_without_secrets(logger: Callable[..., logging.Logger]) -> None:
    log, stream = written(logger, JsonFormatter({"worker": "w1"}))
    with log_context(job_id="job_1", request_id=None):
        try:
            raise ValueError("jdbc:x://u:hush@db \ud800\nsecond line")
        except ValueError:
            log.exception("failed with %s", {"password": "hush"})
    log.info("after")
    first, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert datetime.fromisoformat(first.pop("time")).tzinfo is not None
    stack = first.pop("exception")
    assert "Traceback" in stack
    assert "second line" in stack
    assert "hush" not in stream.getvalue()
    assert first == {
        "level": "ERROR",
        "logger": "tests.log",
        "message": "failed with {'password': ******}",
        "worker": "w1",
        "job_id": "job_1",
    }
    assert second.keys() == {"time", "level", "logger", "message", "worker"}


def test_a_line_of_text_ends_with_the_id_of_its_request(logger: Callable[..., logging.Logger]) -> None:
    log, stream = written(logger, TextFormatter())
    with log_context(request_id="req_1"):
        log.info("hello")
    log.info("hello")
    first, second = stream.getvalue().splitlines()
    assert first.endswith("tests.log: hello (request req_1)")
    assert second.endswith("tests.log: hello")


def test_lines_go_to_the_attempt_of_their_thread(logger: Callable[..., logging.Logger]) -> None:
    logs = AttemptLogs(lambda text: text.replace("hush", "***"))
    log = logger(logs)
    log.info("before")
    with logs.of("job_1", "tbl_1", 1) as first:
        log.info("hush")
        other = threading.Thread(target=log.info, args=("of another thread",))
        other.start()
        other.join()
        with logs.of("job_2", "tbl_1", 1) as second:
            log.warning("two")
            assert logs.sole() is None
        assert logs.sole() == ("job_1", 1)
    assert [(line.number, line.message) for line in first.chunk()] == [(0, "***")]
    assert [(line.level, line.message) for line in second.chunk()] == [(LogLevel.WARNING, "two")]


def test_lines_are_sent_in_bounded_chunks_and_kept_until_they_were_sent() -> None:
    log = AttemptLog()
    for number in range(MOST_LOG_LINES + 5):
        log.add(AT, LogLevel.INFO, "x", str(number))
    first = log.chunk()
    assert len(first) == MOST_LOG_LINES
    assert log.chunk() == first
    assert log.has_more_than(first)
    log.sent(first)
    assert [line.message for line in log.chunk()] == [str(MOST_LOG_LINES + number) for number in range(5)]
    log.sent(log.chunk())
    assert log.chunk() == ()
    for _ in range(20):
        log.add(AT, LogLevel.INFO, "x", "y" * 100_000)
    chunk = log.chunk()
    assert all(len(line.message) <= MOST_LINE_CHARACTERS for line in chunk)
    assert sum(len(line.message) for line in chunk) <= MOST_LOG_CHARACTERS


def test_while_the_service_is_away_the_oldest_lines_are_dropped_and_counted() -> None:
    log = AttemptLog()
    for number in range(300):
        log.add(AT, LogLevel.INFO, "x", f"{number} " + "y" * 10_000)
    sent = []
    while chunk := log.chunk():
        log.sent(chunk)
        sent += chunk
    assert sent[0].message.startswith("196 lines before this one were dropped")
    assert sent[1].message.startswith("196 y")
    assert [line.number for line in sent] == list(range(195, 300))


def test_a_stack_trace_is_in_the_log_once() -> None:
    log = AttemptLog()
    for _ in range(2):
        log.add(AT, LogLevel.ERROR, "x", f"it failed:\n{STACK}\tend")
    first, second = log.chunk()
    assert first.message == f"it failed:\n{STACK}\tend"
    assert second.message.splitlines()[2:] == ["\t(a stack trace that this log has already)", "\tend"]


def test_lines_of_a_jvm_get_the_format_of_the_log_and_the_attempt_that_they_name(
    caplog: pytest.LogCaptureFixture, logger: Callable[..., logging.Logger]
) -> None:
    logs = AttemptLogs(str)
    event: dict[str, Any] = {
        "time": "2026-01-01T00:00:00.000Z",
        "level": "WARN",
        "logger": "org.apache.hudi.X",
        "message": 'a "quoted"\nmessage',
        "attempt_of": "job_1/2",
        "exception": STACK,
    }
    lines = [
        json.dumps(event),
        json.dumps({**event, "attempt_of": "", "exception": "", "message": "of nobody"}),
        "OpenJDK warning: %s %d",
        ":: loading settings :: file = settings.xml",
        "\tfound org.apache.hudi#hudi in central",
        "downloading https://repo.example/hudi.jar ...",
        "\t0 artifacts copied, 3 already retrieved (0kB/19ms)",
        '{"level": "ERROR", "attempt_of": "no/number", "message": 7}',
        "{broken",
        "[1]",
        "x" * 2_000_000,
    ]
    caplog.set_level(logging.INFO)
    caplog.handler.setLevel(logging.INFO)
    root = logging.getLogger()
    root.addHandler(logs)
    try:
        with logs.of("job_1", None, 2) as mine, logs.of("job_2", None, 1) as other:
            jvm = JvmLog(logs.sole)
            subprocess.run(["cat"], input="\n".join(lines), stdout=jvm.stderr, text=True, check=True)
            jvm.drain(10)
    finally:
        root.removeHandler(logs)
    [line] = mine.chunk()
    assert line.message == f'a "quoted"\nmessage\n{STACK.strip()}'
    assert (line.level, line.logger) == (LogLevel.WARNING, "org.apache.hudi.X")
    assert other.chunk() == ()
    texts = [record.getMessage() for record in caplog.records]
    assert "of nobody" in texts
    assert "OpenJDK warning: %s %d" in texts
    assert "downloading https://repo.example/hudi.jar ..." in texts
    assert not any("settings" in text or "found" in text or "retrieved" in text for text in texts)
    assert "{broken" in texts
    assert "7" in texts
    assert sum(text.count("x") for text in texts if set(text) == {"x"}) == 2_000_000
