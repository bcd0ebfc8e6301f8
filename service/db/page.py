"""Cursor pagination: a page, and where the next one starts.

The cursor is the sort key of a page's last row, so rows that come or go meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from service.model.errors import ParamsInvalidError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = TypeVar("Row")


@dataclass(frozen=True)
class Page(Generic[Row]):
    items: Sequence[Row]
    next_cursor: str | None


@dataclass(frozen=True)
class Cursor:
    created_at: datetime
    id: str

    def __str__(self) -> str:
        raw = json.dumps([self.created_at.isoformat(), self.id], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Cursor:
        try:
            raw = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            created_at, row_id = raw
            at = datetime.fromisoformat(created_at)
            if at.tzinfo is None or not isinstance(row_id, str) or "\0" in row_id:
                raise ValueError("not made by this service")
        except (ValueError, TypeError, OverflowError, binascii.Error) as error:
            raise _not_a_cursor() from error
        return cls(at, row_id)

    @property
    def number(self) -> int:
        """The id where ids are numbers. Raises ParamsInvalidError."""
        if not self.id.isdecimal() or len(self.id) > 18:
            raise _not_a_cursor()
        return int(self.id)


def _not_a_cursor() -> ParamsInvalidError:
    message = "This is not a cursor of this service; take `next_cursor` of a page as it is."
    return ParamsInvalidError(message, extensions={"errors": [{"field": "cursor", "message": message}]})


def seq_of(cursor: str) -> int:
    """The cursor of what is counted by the database itself."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise _not_ours()
    return int(cursor)


def _not_ours() -> ParamsInvalidError:
    message = "This is not a cursor of this service; take `next_cursor` of a page as it is."
    return ParamsInvalidError(message, extensions={"errors": [{"field": "cursor", "message": message}]})


def page_of(rows: Sequence[Row], limit: int, key: Callable[[Row], tuple[datetime, str]]) -> Page[Row]:
    """A page of the first `limit` of `rows`, of which one more than that was asked for."""
    shown = rows[:limit]
    return Page(shown, str(Cursor(*key(shown[-1]))) if len(rows) > limit else None)
