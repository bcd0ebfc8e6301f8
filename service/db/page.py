"""Cursor pagination. The cursor is the sort key of a page's last row. So no row is repeated or skipped if other rows
are added or removed between two requests."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from service.model.errors import ParamsInvalidError

Row = TypeVar("Row")

_Key = tuple[Annotated[datetime, msgspec.Meta(tz=True)], Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$")]]
_keys = msgspec.json.Decoder(_Key)


@dataclass(frozen=True)
class Page(Generic[Row]):
    items: Sequence[Row]
    next_cursor: str | None


@dataclass(frozen=True)
class PageRequest:
    """The part of a list that a caller asks for: at most `limit` items after `cursor`, with times from `since` to
    `until` (exclusive)."""

    limit: int = 100
    cursor: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def within(self, column: sa.ColumnElement[Any]) -> list[sa.ColumnElement[bool]]:
        """Returns the conditions that the time in the column is in the period."""
        return within(column, self.since, self.until)

    @property
    def shape(self) -> Shape:
        return Shape(self.since is not None, self.until is not None, bool(self.cursor))

    def given(self, row_id: sa.Column[Any]) -> dict[str, Any]:
        """Returns the parameters of a statement that was built for this shape. Raises ParamsInvalidError."""
        found: dict[str, Any] = {"most": self.limit + 1}
        if self.since is not None:
            found["since"] = self.since
        if self.until is not None:
            found["until"] = self.until
        if self.cursor:
            found["after_at"], found["after_id"] = _last(self.cursor, row_id)
        return found


class Shape(NamedTuple):
    """Which parts of a `PageRequest` are set. All requests of one shape share a statement, because building a statement
    takes longer than executing it. The statement's parameters are `since`, `until`, `after_at`, `after_id` and
    `most`."""

    since: bool
    until: bool
    cursor: bool

    def conditions(
        self, at: sa.Column[datetime], row_id: sa.Column[Any], *, ascending: bool = False
    ) -> list[sa.ColumnElement[bool]]:
        """Returns the conditions that a row is in the period and comes after the cursor."""
        since: sa.BindParameter[Any] | None = sa.bindparam("since") if self.since else None
        until: sa.BindParameter[Any] | None = sa.bindparam("until") if self.until else None
        last = [_beyond(at, row_id, sa.bindparam("after_at"), sa.bindparam("after_id"), ascending=ascending)]
        return within(at, since, until) + (last if self.cursor else [])


@dataclass(frozen=True)
class Cursor:
    created_at: datetime
    id: str

    def __str__(self) -> str:
        raw = msgspec.json.encode([self.created_at, self.id])
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Cursor:
        try:
            created_at, row_id = _keys.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            return cls(created_at.astimezone(UTC), row_id)
        except (ValueError, OverflowError) as error:
            raise not_a_cursor() from error

    @property
    def number(self) -> int:
        """The id of a row with a numeric id. Raises ParamsInvalidError."""
        if not self.id.isdecimal() or len(self.id) > 18:
            raise not_a_cursor()
        return int(self.id)


def not_a_cursor() -> ParamsInvalidError:
    message = "This is not a cursor of this service; pass `next_cursor` of a page unchanged."
    return ParamsInvalidError(message, extensions={"errors": [{"field": "cursor", "message": message}]})


def seq_of(cursor: str) -> int:
    """Parses a cursor that is a number counted up by the database. Raises ParamsInvalidError."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise not_a_cursor()
    return int(cursor)


def matches(column: sa.ColumnElement[str], pattern: str) -> sa.ColumnElement[bool]:
    """Returns the condition that the column matches a glob of `*` and `?`. Upper and lower case do not differ."""
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return column.ilike(escaped.replace("*", "%").replace("?", "_"), escape="\\")


def is_at_or_below(column: sa.ColumnElement[str], path: str) -> sa.ColumnElement[bool]:
    """Returns the condition that the column is this path or a path below it."""
    folder = f"{path.rstrip('/')}/"
    # LIKE would ignore case on SQLite.
    return sa.or_(column == path, sa.func.substr(column, 1, len(folder)) == folder)


def within(
    column: sa.ColumnElement[Any],
    since: datetime | sa.BindParameter[Any] | None,
    until: datetime | sa.BindParameter[Any] | None,
) -> list[sa.ColumnElement[bool]]:
    """Returns the conditions that a time is `since` or later, and before `until`; None sets no limit."""
    return [*([] if since is None else [column >= since]), *([] if until is None else [column < until])]


def among(column: sa.ColumnElement[Any], words: Collection[Enum]) -> list[sa.ColumnElement[bool]]:
    """Returns a list with the condition that the column is one of the words. An empty collection selects everything, so
    its list is empty."""
    return [column.in_([word.value for word in words])] if words else []


def behind(
    cursor: str | None, at: sa.Column[datetime], row_id: sa.Column[Any], *, ascending: bool = False
) -> list[sa.ColumnElement[bool]]:
    """Returns the condition that a row comes after the cursor in the order of a time and the id: newest first, unless
    `ascending`. Raises ParamsInvalidError."""
    return [_beyond(at, row_id, *_last(cursor, row_id), ascending=ascending)] if cursor else []


def _last(cursor: str, row_id: sa.Column[Any]) -> tuple[datetime, Any]:
    last = Cursor.parse(cursor)
    return last.created_at, last.number if isinstance(row_id.type, sa.Integer) else last.id


def _beyond(
    at: sa.Column[datetime], row_id: sa.Column[Any], last_at: Any, last_id: Any, *, ascending: bool
) -> sa.ColumnElement[bool]:
    is_beyond, is_next = (at > last_at, row_id > last_id) if ascending else (at < last_at, row_id < last_id)
    # The second condition would be enough; the first one lets the database search an index.
    same_moment = sa.and_(at == last_at, is_next)
    return sa.and_(at >= last_at if ascending else at <= last_at, sa.or_(is_beyond, same_moment))


def paged(
    connection: Connection,
    query: sa.Select[Any],
    read: Callable[[sa.Row[Any]], Row],
    at: sa.Column[datetime],
    row_id: sa.Column[Any],
    *,
    asked: PageRequest,
    ascending: bool = False,
) -> Page[Row]:
    """Returns the requested page of the query, in the order of a time and the id: newest first, unless `ascending`.
    `read` makes an item of a row."""
    order = (at, row_id) if ascending else (at.desc(), row_id.desc())
    query = query.where(*behind(asked.cursor, at, row_id, ascending=ascending)).order_by(*order).limit(asked.limit + 1)
    rows = connection.execute(query).all()
    page = page_of(rows, asked.limit, lambda row: (row._mapping[at], str(row._mapping[row_id])))
    return Page([read(row) for row in page.items], page.next_cursor)


def page_of(rows: Sequence[Row], limit: int, key: Callable[[Row], tuple[datetime, str]]) -> Page[Row]:
    """Returns a page of the first `limit` of `rows`; the query must ask for one row more than that."""
    shown = rows[:limit]
    return Page(shown, str(Cursor(*key(shown[-1]))) if len(rows) > limit else None)
