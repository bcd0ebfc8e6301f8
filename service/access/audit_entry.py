"""An entry of the audit trail."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from jobs.redaction import MASK, is_secret, redacted
from service.model.record import Record

_LONGEST_TEXT = 1000
_MOST_BYTES = 64 * 1024


class Outcome(StrEnum):
    """`DONE` below status 400, `FAILED` from 500 on."""

    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"

    @classmethod
    def of(cls, status: int | None) -> Outcome:
        if status is None or status < 400:
            return cls.DONE
        return cls.REFUSED if status < 500 else cls.FAILED


@dataclass(frozen=True)
class AuditEntry(Record):
    """One call that changed something, or was refused.

    `who` is the name of a token, or of a user of the command line. `route` is the path of the API with the names of its
    parameters, `operation` its `operationId`. `before` and `after` are JSON (`shown`), None if the object did not
    exist then; both are None if it did not change. `status` is that of HTTP, None for a command. `repeats`: at least so
    many refused calls of the same caller followed within a minute, without an entry of their own. `request_id` is that
    of the call in the log; None for a command.
    """

    at: datetime
    who: str
    method: str
    route: str
    operation: str
    token_id: str | None = None
    role: str | None = None
    address: str | None = None
    object_type: str | None = None
    object_id: str | None = None
    object_name: str | None = None
    before: Any = None
    after: Any = None
    status: int | None = None
    problem: str | None = None
    repeats: int = 0
    request_id: str | None = None
    id: int = 0

    @property
    def outcome(self) -> Outcome:
        return Outcome.of(self.status)


def shown(value: Any) -> Any:
    """Returns a JSON value for the trail: secrets masked, long texts cut, and nothing but its size above 64 KiB."""
    found = _shown(value)
    size = len(json.dumps(found))
    return found if size <= _MOST_BYTES else {"left_out": f"{size} bytes"}


def _shown(value: Any) -> Any:
    match value:
        case str():
            text = redacted(value)
            return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text)} characters)"
        case dict():
            return {
                name: MASK if isinstance(each, str) and is_secret(name, each) else _shown(each)
                for name, each in value.items()
            }
        case list() | tuple():
            return [_shown(each) for each in value]
        case _:
            return value
