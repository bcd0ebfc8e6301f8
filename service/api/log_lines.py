"""Schemas of the lines of a job's log: as workers send them, and as they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, StringConstraints

from jobs.contract import MOST_LINE_CHARACTERS, MOST_LOG_CHARACTERS, MOST_LOG_LINES, LogLevel
from jobs.redaction import redacted
from service.api.shown import Shown
from service.queue.job_log import LogPage

_LONGEST_LOGGER = 128


def _shortened(logger: str) -> str:
    return logger[-_LONGEST_LOGGER:]


def _bounded(lines: list[LogLineIn]) -> list[LogLineIn]:
    if sum(len(line.message) for line in lines) > MOST_LOG_CHARACTERS:
        raise ValueError(f"has more than {MOST_LOG_CHARACTERS} characters of messages")
    return lines


class LogLineIn(BaseModel):
    number: int = Field(ge=0, lt=10**9, description="Counts up within the attempt; a line is stored once")
    at: AwareDatetime = Field(ge="1970-01-01T00:00:00Z", lt="3000-01-01T00:00:00Z")
    level: LogLevel = Field(description="How serious it is")
    logger: Annotated[str, StringConstraints(max_length=1024), AfterValidator(_shortened)] = Field(
        description="The module of the worker, or the Java class; of a long name the end is stored"
    )
    message: Annotated[str, StringConstraints(max_length=MOST_LINE_CHARACTERS), AfterValidator(redacted)] = Field(
        description="The line, which may have several lines itself; secrets are masked"
    )


LogLines = Annotated[list[LogLineIn], Field(max_length=MOST_LOG_LINES), AfterValidator(_bounded)]


class LogLineOut(Shown):
    at: datetime = Field(description="By the clock of the worker", examples=["2026-11-23T23:57:04.120Z"])
    level: LogLevel = Field(description="How serious it is", examples=[LogLevel.WARNING])
    logger: str = Field(description="The module of the worker, or the Java class", examples=["jobs.hudi.lock"])
    message: str = Field(
        description="With the stack trace, if there is one; without secrets",
        examples=["job_4be1c0d2f6a89b37/1: planning"],
    )
    attempt: int = Field(description="The attempt that wrote it", examples=[1])


class JobLog(Shown):
    """Lines of the log of a job, the oldest first."""

    items: list[LogLineOut]
    next_cursor: str | None = Field(
        description="Cursor of the next page, null if these are the last lines so far", examples=["1.499"]
    )
    position: str = Field(
        description="Cursor behind the last of these lines: pass it later to get only the lines that came since",
        examples=["1.499"],
    )


def as_text(page: LogPage) -> str:
    """Returns the lines as a log file has them."""
    return "".join(
        f"{line.at:%Y-%m-%dT%H:%M:%S}.{line.at.microsecond // 1000:03}Z {line.level:<8} [{line.attempt}]"
        f" {line.logger}: {line.message}\n"
        for line in page.items
    )
