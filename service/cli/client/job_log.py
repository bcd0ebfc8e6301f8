"""Prints the log of a job, and follows it to the end of the job."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from groundskeeper_client import calls
from service.cli.client.failure import CommandError
from service.cli.client.job_watch import ENDED, PATIENCE_SECONDS
from service.cli.client.output import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from groundskeeper_client.generated.models import LogLevel
    from service.cli.client.connection import Connection, Json
    from service.cli.client.output import Output

_PAGE = 500
_POLL_SECONDS = 1.0
_STYLES = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}


def show(service: Connection, out: Output, job_id: str, level: LogLevel | None) -> None:
    """Prints all lines that the service has."""
    if not out.as_json:
        for line in _lines(service, job_id, level, None)[0]:
            _print(out, line)
        return
    items, position = _lines(service, job_id, level, None)
    out.json({"items": items, "next_cursor": None, "position": position})


def follow(service: Connection, out: Output, job_id: str, level: LogLevel | None) -> None:
    """Prints lines until the job has ended; with --json each as an object on a line. Raises CommandError if the service
    stays away."""
    for line in _followed(service, out, job_id, level):
        if out.as_json:
            out.line(json.dumps(line))
        else:
            _print(out, line)


def _followed(service: Connection, out: Output, job_id: str, level: LogLevel | None) -> Iterator[Json]:
    position, is_away, until = None, False, 0.0
    while True:
        try:
            # First the state: lines do not come after the end.
            has_ended = service.send(calls.get_job(job_id))["state"] in {*ENDED, "unknown"}
            lines, position = _lines(service, job_id, level, position)
        except CommandError as error:
            if not error.is_passing or not until or time.monotonic() > until:
                raise
            if not is_away:
                out.note("The service cannot be reached; waiting.")
            is_away = True
        else:
            is_away, until = False, time.monotonic() + PATIENCE_SECONDS
            yield from lines
            if has_ended:
                return
        time.sleep(_POLL_SECONDS)


def _lines(service: Connection, job_id: str, level: LogLevel | None, position: str | None) -> tuple[list[Json], str]:
    """Returns the lines behind a position, and the position behind them."""
    lines: list[Json] = []
    while True:
        page = service.send(calls.get_job_log(job_id, level=level, cursor=position, limit=_PAGE))
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
