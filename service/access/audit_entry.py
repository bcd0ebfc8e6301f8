"""An entry of the audit trail."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from jobs.redaction import MASK, is_secret, redacted
from jobs.spec import Spec
from service.model.record import Record

_LONGEST_TEXT = 1000
_MOST_BYTES = 64 * 1024


class Outcome(StrEnum):
    """The outcome of a call: `DONE` for a status below 400, `REFUSED` below 500, and `FAILED` from 500 on."""

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
    """A call that changed something, or was refused.

    `before` and `after` are the object as JSON (see `shown`); None means that it did not exist. Both are None if
    nothing changed.
    """

    at: Annotated[datetime, Spec("When the call was made", examples=("2026-01-01T12:00:00Z",))]
    who: Annotated[
        str,
        Spec(
            "Name of the token; `anybody` while no token exists, `nobody` if the call had no valid one,"
            " `<user> on the command line`",
            examples=("airflow",),
        ),
    ]
    method: Annotated[str, Spec("HTTP method; `CLI` for a command", examples=("PATCH",))]
    route: Annotated[
        str, Spec("Address of the call, with names for its variable parts", examples=("/v1/tables/{table_id}",))
    ]
    operation: Annotated[str, Spec("`operationId` of this documentation", examples=("changeTable",))]
    token_id: Annotated[str | None, Spec(examples=("4f0c9d2b71aa",))] = None
    role: str | None = None
    address: Annotated[str | None, Spec("Address of the caller; null for a command", examples=("10.2.0.17",))] = None
    object_type: Annotated[str | None, Spec("Type of the object; null if there is none", examples=("table",))] = None
    object_id: Annotated[
        str | None, Spec("Id of the object; null if there is none", examples=("tbl_0f3c2a9d5e7b1c44",))
    ] = None
    object_name: Annotated[str | None, Spec("Name of the object; null if it has none", examples=("trips",))] = None
    before: Any = None
    after: Any = None
    status: Annotated[int | None, Spec("HTTP status; null for a command", examples=(200,))] = None
    problem: Annotated[str | None, Spec("Type of the problem", examples=("forbidden",))] = None
    repeats: Annotated[
        int,
        Spec(
            "Number of further calls of the same caller that were refused within the minute after this one. These calls"
            " have no entries of their own. The number is rounded down to a power of two",
            examples=(0,),
        ),
    ] = 0
    request_id: Annotated[
        str | None, Spec("`X-Request-Id` of the call; null for a command", examples=("req_5f0c6be1d2a84397",))
    ] = None
    id: Annotated[int, Spec("Number of the entry; grows with time", examples=(4711,))] = 0

    @property
    def outcome(self) -> Outcome:
        return Outcome.of(self.status)


def shown(value: Any) -> Any:
    """Returns a JSON value for the trail, with secrets masked and long texts cut. A value above 64 KiB is replaced by
    its size."""
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
