"""Dataclasses that are rows of the database: each field is the column of its name."""

from __future__ import annotations

import dataclasses
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, Self, TypeVar

import msgspec

T = TypeVar("T")


class Row(Protocol):
    """A row of SQLAlchemy."""

    @property
    def _mapping(self) -> Any: ...


@dataclass(frozen=True)
class Record:
    """The base of such a dataclass. Its annotations are read at run time."""

    def to_row(self, *without: str) -> dict[str, Any]:
        """Returns the values of the columns, but for those named. Objects, words and lists become those of JSON."""
        return {
            field.name: _plain(getattr(self, field.name))
            for field in dataclasses.fields(self)
            if field.name not in without
        }

    @classmethod
    def of_row(cls, row: Row) -> Self:
        """Raises ValueError for values of other types."""
        return read(cls, row)


def read(kind: type[T], row: Row) -> T:
    """Returns a row as a dataclass. It ignores the columns without a field, and leaves a null to the default of its
    field. Raises ValueError for values of other types."""
    values = row._mapping
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]  # it is a dataclass
    known = {
        field.name: value for field in fields if (value := values[field.name]) is not None or field.default is None
    }
    if kind not in _prepared:
        _prepare(kind)
    return msgspec.convert(known, kind, strict=False)


# msgspec describes a dataclass to itself when it first meets it. A second thread that meets it meanwhile reads a
# half-made description, which ends the interpreter.
_prepared: set[type] = set()
_preparing = threading.Lock()


def _prepare(kind: type) -> None:
    with _preparing, suppress(msgspec.MsgspecError):
        try:
            msgspec.convert({}, kind)
        finally:
            _prepared.add(kind)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, datetime) else msgspec.to_builtins(value, enc_hook=dict)
