"""Finds tables by the base paths that writers send. A writer may spell a path in another way than the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection

from jobs.storage.location import plain
from service.catalog import table_store
from service.lake.location import canonical
from service.model.errors import InvalidError

T = TypeVar("T")


def find_table(connection: Connection, base_path: str) -> str | None:
    """Returns the id of the registered table with this base path, or None."""
    return find(base_path, lambda path: table_store.find(connection, path))


def find(base_path: str, look: Callable[[str], T | None]) -> T | None:
    """Returns the result of `look` for the canonical form of this base path."""
    # Most callers send the stored spelling. Links are resolved only for the others, because the file system may hang.
    found = look(plain(base_path))
    if found is not None:
        return found
    try:
        return look(canonical(base_path))
    except InvalidError:
        return None
