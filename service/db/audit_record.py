"""The audit record of the current call, which is written in the transaction of the change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from sqlalchemy import Connection


class Recorder(Protocol):
    """Takes part in the transactions that `service.db.engine.writing` opens. An error that it raises rolls the
    transaction back."""

    def begun(self, connection: Connection) -> None:
        """Runs before all statements of a transaction."""

    def ends(self, connection: Connection) -> None:
        """Runs after all statements of a transaction, before its commit."""

    def about(self, kind: str, object_id: str) -> None:
        """Names the object that the current transaction has created."""

    def sibling(self) -> Recorder:
        """Returns another recorder, for a further transaction of the same call."""

    def exists(self, kind: str, object_id: str) -> None:
        """Names the object that the next transaction changes."""

    def state_object(self, before: Any, after: Any) -> None:
        """States the object before and after the call, instead of what the database shows."""


# The threads in which calls of the API run inherit this variable.
current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


@contextmanager
def separate() -> Iterator[None]:
    """Gives the transaction of the block a record of its own, for one of several changes of one call."""
    accompanying = current.get()
    token = current.set(None if accompanying is None else accompanying.sibling())
    try:
        yield
    finally:
        current.reset(token)


def exists(kind: str, object_id: str) -> None:
    """Names the object of the next transaction, if the body of the call names it."""
    if (recorder := current.get()) is not None:
        recorder.exists(kind, object_id)


def about(kind: str, object_id: str) -> None:
    """Names the object of the current transaction, if the address of the call does not, because the call creates the
    object."""
    if (recorder := current.get()) is not None:
        recorder.about(kind, object_id)


def state_object(before: Any, after: Any) -> None:
    """States the object before and after the call, if it is not in the database. The last statement counts."""
    if (recorder := current.get()) is not None:
        recorder.state_object(before, after)
