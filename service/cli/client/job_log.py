"""Prints the log of a job, and follows it to the end of the job."""

from __future__ import annotations

import json
import time
from pathlib import Path

from groundskeeper_client import Retries, calls
from groundskeeper_client.exchange import ENDED
from groundskeeper_client.generated.models import JobState, LogLevel
from service.cli.client.connection import Connection, Json, Patience
from service.cli.client.failure import CommandError
from service.cli.client.output import Output, clean
from service.model.formatting import count

_PAGE = 500
_POLL_SECONDS = 1.0
_STYLES = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


def show(service: Connection, out: Output, job_id: str, level: LogLevel | None) -> None:
    """Prints all lines that the service has stored."""
    items, position = _lines(service, job_id, level)
    out.document({"items": items, "next_cursor": None, "position": position})
    for line in items:
        _print(out, line)


def follow(service: Connection, out: Output, job_id: str, level: LogLevel | None) -> None:
    """Prints lines until the job has ended. If --json is given, each line is an object. Raises CommandError if the
    service stays unavailable."""
    retries = Patience(away=lambda: out.note("The service cannot be reached; waiting."))
    job, position = service.send(calls.get_job(job_id)), None
    while True:
        lines, position = _lines(service, job_id, level, position, retries)
        for line in lines:
            if out.as_json:
                out.line(json.dumps(line))
            _print(out, line)
        if job["state"] in {*ENDED, JobState.UNKNOWN}:
            return
        time.sleep(_POLL_SECONDS)
        # The state is read before the lines. If the job had ended by then, no more lines can come.
        job = service.send(calls.get_job(job_id), retries)


def _lines(
    service: Connection,
    job_id: str,
    level: LogLevel | None,
    position: str | None = None,
    retries: Retries | None = None,
) -> tuple[list[Json], str]:
    """Returns the lines after a position, and the position after these lines."""
    lines: list[Json] = []
    while True:
        call = calls.get_job_log(job_id, level=level, cursor=position, limit=_PAGE)
        page = service.send(call, retries)
        lines += page["items"]
        position = str(page["position"])
        if page["next_cursor"] is None:
            return lines, position


def _print(out: Output, line: Json) -> None:
    first, *rest = line["message"].splitlines() or [""]
    out.say(
        f"{line['at']}  {line['level']:<8} [{line['attempt']}] {line['logger']}: {first}",
        style=_STYLES.get(line["level"]),
    )
    for each in rest:
        out.say("    " + clean(each.replace("\t", "    ")))


def save(service: Connection, out: Output, job_id: str, level: LogLevel | None, file: Path) -> None:
    """Writes the whole log to a new file."""
    text = service.text(calls.download_job_log(job_id, level=level))
    try:
        with file.open("x", encoding="utf-8") as content:
            content.write(text)
    except OSError as error:
        raise CommandError.usage(f"--output: {file} cannot be written: {error.strerror}.") from error
    out.say(f"Wrote {count(len(text.splitlines()), 'line')} to {file}.")
