"""Checks that all paths in a table's metadata lie in the table's folder. Everybody who may write a table may write its
metadata, and a worker may have more rights than that writer. Hudi (1.2) follows every path that it finds in the
metadata."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.storage.location import is_inside, link_out
from jobs.table_errors import PathOutsideTableError


def inside(base_path: str, path: str, where: str) -> str:
    """Returns the path. Raises PathOutsideTableError if it leads out of the table; `where` says what contains it."""
    if not is_inside(base_path, path):
        raise PathOutsideTableError(f"{where}: {path[:300]}")
    return path


def relative(path: str, where: str) -> str:
    """Returns a path that must be relative to the table. Raises PathOutsideTableError."""
    if path.startswith("/"):
        raise PathOutsideTableError(f"{where}: {path[:300]}")
    return inside("/", path, where)


def check_folders(base_path: str, folders: Iterable[str]) -> None:
    """Raises PathOutsideTableError if a property or a link places a part of `.hoodie` outside of the table. `folders`
    are the folders of these parts, by Hudi's `HoodieTableMetaClient`."""
    for path in folders:
        inside(base_path, path, "hoodie.properties")
    check_links(base_path, [".hoodie"])


def check_links(base_path: str, folders: Iterable[str]) -> None:
    """Raises PathOutsideTableError if one of these folders of a local table, or anything in it, is a link that leads
    out of the table."""
    for folder in folders:
        if link := link_out(base_path, folder):
            raise PathOutsideTableError(f"a link: {link[:300]}")
