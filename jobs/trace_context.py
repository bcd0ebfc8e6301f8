"""The text in which traces travel: the header `traceparent` (W3C Trace Context, version 00). The module needs the
standard library only."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["internal", "server", "consumer"]
Value = str | int | float | bool

_NO_SPAN = "0" * 16
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_JOB = re.compile(r"job_(?!0{16})([0-9a-f]{16})")


def span_id_of(job_id: str) -> str | None:
    """Returns the id of the span of a job. It consists of the job's own digits, so that the attempts know it before the
    job has ended."""
    found = _JOB.fullmatch(job_id)
    return found[1] if found else None


def of_job(traceparent: str | None, job_id: str) -> str | None:
    """Returns the `traceparent` for the attempts of a job, made from the one that is stored with the job."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    span_id = span_id_of(job_id)
    return f"00-{found[1]}-{span_id}-{found[3]}" if found and span_id else None


def parsed(traceparent: str | None) -> tuple[int, int, int] | None:
    """Returns trace id, span id (0 for a trace without a span so far) and flags. None if it is not well-formed."""
    found = _TRACEPARENT.fullmatch(traceparent or "")
    return (int(found[1], 16), int(found[2], 16), int(found[3], 16)) if found else None


def without_span(trace_id: int, flags: int) -> str:
    """Returns the text of a trace that has no span so far."""
    return f"00-{trace_id:032x}-{_NO_SPAN}-{flags:02x}"
