"""Finds tables by the base paths that writers send, in whatever spelling."""

from __future__ import annotations

from sqlalchemy import Connection

from jobs.storage.location import plain
from service.catalog import table_store
from service.lake.location import canonical
from service.model.errors import InvalidError


def find_table(connection: Connection, base_path: str) -> str | None:
    """Returns the id of the registered table with this base path, or None."""
    # Most callers send the stored spelling. The look-up of links is left for the others, because the file system may
    # hang.
    found = table_store.find(connection, plain(base_path))
    if found is not None:
        return found
    try:
        return table_store.find(connection, canonical(base_path))
    except InvalidError:
        return None
