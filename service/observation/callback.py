"""A writer tells that it has committed. It is only a hint: what has happened is read from the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.catalog import commit_store, table_store
from service.db.engine import reading
from service.lake.location import canonical, plain
from service.model.errors import CallbackUnknownTableError, InvalidError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from service.observation.poll_requests import PollRequests


@dataclass(frozen=True)
class CallbackResult:
    """`is_new` is false if the commit is known already, or the table is about to be looked at anyway."""

    table_id: str
    is_new: bool


def hear(engine: Engine, poll_requests: PollRequests, *, base_path: str, instant: str) -> CallbackResult:
    """Has the table looked at now. Writes nothing: the answer must not wait for others that write.

    Raises CallbackUnknownTableError if no registered table has this base path, in whatever spelling.
    """
    with reading(engine) as connection:
        table_id = _find(connection, base_path)
        if table_id is None:
            raise CallbackUnknownTableError(f"No table is registered with the base path {base_path!r}.")
        is_known = commit_store.is_known(connection, table_id, instant)
    return CallbackResult(table_id, is_new=not is_known and poll_requests.ask(table_id))


def _find(connection: Connection, base_path: str) -> str | None:
    # As most send it, without asking the file system about links, which may hang.
    found = table_store.find(connection, plain(base_path))
    if found is not None:
        return found
    try:
        return table_store.find(connection, canonical(base_path))
    except InvalidError:
        return None
