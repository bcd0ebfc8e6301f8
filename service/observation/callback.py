"""Commit callbacks of writers. A callback is only a hint: the commits are read from the timeline."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Engine

from service.catalog import commit_store
from service.catalog.base_paths import find
from service.db.engine import reading
from service.model.table_errors import CallbackUnknownTableError
from service.observation.poll_requests import PollRequests


@dataclass(frozen=True)
class CallbackResult:
    """The outcome of a callback."""

    table_id: str
    is_new: bool  # False if the commit is already known, or a poll of the table is already requested.


def receive(engine: Engine, poll_requests: PollRequests, *, base_path: str, instant: str) -> CallbackResult:
    """Requests a poll of the table. Writes nothing, because the response must not wait for others that write to the
    database.

    Raises CallbackUnknownTableError if no registered table has this base path, in any spelling.
    """
    with reading(engine) as connection:
        found = find(base_path, lambda path: commit_store.find_known(connection, path, instant))
        if found is None:
            raise CallbackUnknownTableError(f"No table is registered with the base path {base_path!r}.")
    table_id, is_known = found
    return CallbackResult(table_id, is_new=not is_known and poll_requests.ask(table_id))
