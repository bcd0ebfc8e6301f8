"""The log of a process, as text or as one JSON object a line, with the ids of request, job and table. Secrets are
removed.

The module needs the standard library only.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum

from jobs.redaction import RedactingFormatter, redacted


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


FORMAT_VARIABLE = "GROUNDSKEEPER_LOG_FORMAT"
TEXT_LINE = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"

_IDS: ContextVar[Mapping[str, str | int]] = ContextVar("ids", default={})  # noqa: B039 - it is never changed


def add_log_context(**ids: str | int | None) -> None:
    """Adds these ids to all later log lines of this thread or task: `request_id`, `job_id`, `table_id`, `attempt`. An
    id that is None is not added."""
    _IDS.set({**_IDS.get(), **{name: value for name, value in ids.items() if value is not None}})


@contextmanager
def log_context(**ids: str | int | None) -> Iterator[None]:
    """Adds these ids to the log lines inside the block."""
    token = _IDS.set(_IDS.get())
    add_log_context(**ids)
    try:
        yield
    finally:
        _IDS.reset(token)


def current_ids() -> Mapping[str, str | int]:
    """Returns the ids that this thread or task adds to its log lines."""
    return _IDS.get()


def request_id() -> str | None:
    """Returns the id of the request that this thread or task answers."""
    found = _IDS.get().get("request_id")
    return None if found is None else str(found)


class TextFormatter(RedactingFormatter):
    """Formats lines by `TEXT_LINE`. The id of the request is at the end of each line."""

    def __init__(self) -> None:
        super().__init__(TEXT_LINE)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in `logging`
        line = super().formatMessage(record)
        of_request = request_id()
        return f"{line} (request {of_request})" if of_request else line


class JsonFormatter(RedactingFormatter):
    """Formats objects with `time` (UTC, RFC 3339, in ms), `level`, `logger` and `message`, with the ids of the thread
    or task and the stack trace as `exception` if there are any. `everywhere` is added to each object."""

    def __init__(self, everywhere: Mapping[str, str | int] | None = None) -> None:
        super().__init__("%(message)s")
        self._everywhere = dict(everywhere or {})

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": at(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": self.without_secrets(record.getMessage()),
            **self._everywhere,
            **_IDS.get(),
        }
        if stack := stack_of(record):
            line["exception"] = self.without_secrets(stack)
        # The line is ASCII, because a text of a table may not be encodable otherwise.
        return json.dumps(line)


def at(record: logging.LogRecord) -> datetime:
    """Returns the time of a record in UTC, because the machine may be in any time zone."""
    return datetime.fromtimestamp(min(max(record.created, 0.0), 32_000_000_000.0), UTC)


def stack_of(record: logging.LogRecord) -> str:
    """Returns the stack traces of a record as text, which is empty if it has none."""
    if record.exc_info and record.exc_info[0] is not None and not record.exc_text:
        record.exc_text = logging.Formatter().formatException(record.exc_info)
    return "\n".join(each for each in (record.exc_text, record.stack_info) if each)


def configure(
    log_format: LogFormat, level: str | int, *, everywhere: Mapping[str, str | int] | None = None
) -> RedactingFormatter:
    """Makes the log of this process go to standard error, and returns its formatter.

    A JSON log also takes Python's warnings and the errors that end a thread or the process, which Python otherwise
    prints itself.
    """
    handler = logging.StreamHandler(sys.stderr)
    formatter: RedactingFormatter = JsonFormatter(everywhere) if log_format is LogFormat.JSON else TextFormatter()
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    if log_format is LogFormat.JSON:
        logging.captureWarnings(True)
        threading.excepthook = _log_thread
        sys.excepthook = lambda kind, error, trace: logging.getLogger("python").critical(
            "The process ends: %s", kind.__name__, exc_info=(kind, error, trace)
        )
    return formatter


def print_last_words(text: str) -> None:
    """Prints why the process ends, in the format of its log."""
    if is_json():
        logging.getLogger("groundskeeper").critical(text)
    else:
        print(f"groundskeeper: {redacted(text)}", file=sys.stderr)


def is_json() -> bool:
    """Returns whether this process logs JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def current_format() -> LogFormat:
    """Returns the format of this process, which the processes that it starts use as well."""
    return LogFormat.JSON if is_json() else LogFormat.TEXT


def _log_thread(died: threading.ExceptHookArgs) -> None:
    if died.exc_value is not None:
        name = died.thread.name if died.thread else "a thread"
        logging.getLogger("python").error("%s died", name, exc_info=died.exc_value)
