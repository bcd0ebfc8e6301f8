"""The audit record of the current call. It is written in the same transaction as the change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
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
        """Returns another recorder, for another transaction of the same call."""

    def exists(self, kind: str, object_id: str) -> None:
        """Names the object that the next transaction changes."""

    def state_object(self, before: Any, after: Any) -> None:
        """States how the object was before and after the call, if the database does not show this."""


# The threads in which calls of the API run inherit this variable.
current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


@contextmanager
def kept_by(recorder: Recorder | None) -> Iterator[None]:
    """Has the recorder take part in the transactions of the block; None stands for no recorder."""
    token = current.set(recorder)
    try:
        yield
    finally:
        current.reset(token)


def separate() -> AbstractContextManager[None]:
    """Gives the transaction of the block a separate record, because the call makes several changes."""
    accompanying = current.get()
    return kept_by(None if accompanying is None else accompanying.sibling())


def exists(kind: str, object_id: str) -> None:
    """Names the object of the next transaction. The API calls this if the body of a call, not its address, names the
    object."""
    if (recorder := current.get()) is not None:
        recorder.exists(kind, object_id)


def about(kind: str, object_id: str) -> None:
    """Names the object of the current transaction. This is for calls that create an object, whose address does not name
    the object."""
    if (recorder := current.get()) is not None:
        recorder.about(kind, object_id)


def state_object(before: Any, after: Any) -> None:
    """States how the object was before and after the call, if the object is not in the database. The last call
    counts."""
    if (recorder := current.get()) is not None:
        recorder.state_object(before, after)
