"""Dataclasses for rows of the database. Each field has the name of its column."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Protocol, Self, TypeVar

import msgspec

from jobs.contract import converted

T = TypeVar("T")


class Row(Protocol):
    """A row of SQLAlchemy."""

    @property
    def _mapping(self) -> Any: ...


@dataclass(frozen=True)
class Record:
    """The base of these dataclasses. Annotations are read at run time."""

    def to_row(self, *without: str) -> dict[str, Any]:
        """Returns the values of the columns, except those in `without`. Objects, enums and lists become JSON."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if field.name not in without
        }

    def evolve(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    @classmethod
    def of_row(cls, row: Row) -> Self:
        """Makes an instance of a row. Raises ValueError for values of other types."""
        return read(cls, row)


def made(kind: type[T], /, **values: Any) -> T:
    """Makes an instance of a frozen dataclass without a call of its initializer, which would take long for millions of
    instances. `values` must have each field without a default, and each field whose default comes from a factory."""
    new = kind.__new__(kind)
    new.__dict__.update(values)
    return new


def read(kind: type[T], row: Row) -> T:
    """Returns a row as a dataclass. Columns without a field are ignored; a null becomes the default of its field.
    Raises ValueError for values of other types."""
    values = row._mapping
    known = {name: value for name, is_null in _columns(kind) if (value := values[name]) is not None or is_null}  # type: ignore[arg-type]
    return converted(known, kind, strict=False)


@cache
def _columns(kind: Any) -> Sequence[tuple[str, bool]]:
    """Returns the names of the fields, and whether null is their default."""
    return [(field.name, field.default is None) for field in dataclasses.fields(kind)]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, datetime) else msgspec.to_builtins(value, enc_hook=dict)
