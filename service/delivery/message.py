"""Messages for people. A message is the content of a notification; each target has its own form for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from jobs.contract import converted
from jobs.spec import Documented

MOST_ENTRIES = 10
"""Most problems that a message lists; further ones are only counted."""

MOST_FACTS = 10


class MessageState(StrEnum):
    """The occasion of a message. `FAILED` reports failed jobs; it is never followed by `RESOLVED`. `ACKNOWLEDGED` says
    that somebody knows of a problem that still exists. `REPORT` sums up a week."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    FAILED = "failed"
    REPORT = "report"
    TEST = "test"


@dataclass(frozen=True)
class Entry(Documented):
    """One problem or job of a message."""

    name: str
    detail: str = ""
    command: str = ""
    link: str | None = None


@dataclass(frozen=True)
class Fact(Documented):
    """A figure of a report."""

    name: str
    value: str


@dataclass(frozen=True)
class Message(Documented):
    """One message. Messages with the same `key` are about the same alert. `count` is the number of all problems or
    jobs, including those without an entry."""

    key: str
    state: MessageState
    kind: str
    severity: str
    title: str
    since: datetime
    entries: tuple[Entry, ...] = ()
    count: int = 1
    consequence: str = ""
    remedy: str = ""
    ended_at: datetime | None = None
    link: str | None = None
    facts: tuple[Fact, ...] = ()

    @property
    def more(self) -> int:
        return max(self.count - len(self.entries), 0)

    @property
    def more_words(self) -> str:
        return f"and {self.more} more" if self.more else ""

    @property
    def headline(self) -> str:
        if self.state is MessageState.RESOLVED:
            return f"Resolved: {self.title}"
        is_plain = self.state in (MessageState.TEST, MessageState.REPORT)
        return self.title if is_plain else f"{self.severity.capitalize()}: {self.title}"

    def to_json(self) -> dict[str, Any]:
        written: dict[str, Any] = msgspec.to_builtins(self)
        return written

    @classmethod
    def from_json(cls, data: Any) -> Message:
        return converted(data, cls, strict=False)


def cut(text: str, most: int) -> str:
    """Returns the text, cut to at most `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
