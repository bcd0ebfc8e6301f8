"""Finds the Hudi tables below a folder. The search goes on if a folder cannot be read, whatever the reason is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from jobs.contract import Problem
from service.lake.location import canonical
from service.lake.storage import Storage, open_storage
from service.lake.table_config import META_FOLDER, read_table_config
from service.model.errors import GroundskeeperError
from service.model.storage_errors import PathNotFoundError


@dataclass(frozen=True)
class WalkLimits:
    """The limits of a search. `depth` counts folders below the root. A folder with more than `entries` files and
    folders is left out."""

    depth: int = 6
    folders: int = 3000
    entries: int = 20_000
    tables: int = 1000
    skipped: int = 50
    seconds: float = 20.0


@dataclass(frozen=True)
class Skipped:
    """A folder that could not be listed."""

    path: str
    problem: Problem


@dataclass(frozen=True)
class Walk:
    """The canonical base paths of the tables that were found, in alphabetical order. `is_complete` is False if a limit
    ended the search."""

    tables: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    is_complete: bool


@dataclass(frozen=True)
class TableSummary:
    """The name, type and version from the properties of a table."""

    name: str
    table_type: str
    table_version: int


def walk(
    root: str,
    *,
    pattern: str,
    storage_options: Mapping[str, str],
    allowed_roots: tuple[str, ...] | None,
    limits: WalkLimits | None = None,
) -> Walk:
    """Searches for tables by listing folders, breadth first. Folders inside of tables, and those whose names begin with
    `.` or `_`, are left out.

    `root` is canonical. `pattern` is a glob for paths relative to the root; the root itself is `.`. Links that lead out
    of the root are not followed. Raises PathForbiddenError, PathNotFoundError, StorageUnsupportedError, StorageError.
    """
    limits = limits or WalkLimits()
    storage = open_storage(root, storage_options, allowed_roots)
    if not storage.exists():
        raise PathNotFoundError(f"{root} does not exist")
    end = time.monotonic() + limits.seconds
    tables: set[str] = set()
    skipped: list[Skipped] = []
    waiting = deque([("", 0)])
    looked_into, is_complete = 0, True
    while waiting:
        if looked_into == limits.folders or len(tables) == limits.tables or time.monotonic() > end:
            is_complete = False
            break
        path, depth = waiting.popleft()
        looked_into += 1
        try:
            folders = [entry.path for entry in storage.list(path, most=limits.entries) if entry.is_folder]
            if _is_table(storage, path, folders):
                if fnmatchcase(path or ".", pattern):
                    tables.add(canonical(f"{root.rstrip('/')}/{path}".rstrip("/")))
                continue
        except GroundskeeperError as error:
            if not path:
                raise
            if len(skipped) < limits.skipped:
                skipped.append(Skipped(path, error.problem()))
            continue
        below = [each for each in folders if not each.rpartition("/")[2].startswith((".", "_"))]
        if below and depth == limits.depth:
            is_complete = False
        else:
            waiting += [(each, depth + 1) for each in sorted(below)]
    return Walk(tuple(sorted(tables)), tuple(skipped), is_complete)


def summary_of(
    base_path: str, *, storage_options: Mapping[str, str], allowed_roots: tuple[str, ...] | None
) -> TableSummary:
    """Reads the properties of a table. Raises TableUnsupportedError, NotAHudiTableError, and the errors of `walk`."""
    config = read_table_config(open_storage(base_path, storage_options, allowed_roots))
    return TableSummary(config.name or base_path.rpartition("/")[2], config.table_type.value, config.version)


def _is_table(storage: Storage, path: str, folders: list[str]) -> bool:
    meta = f"{path}/{META_FOLDER}" if path else META_FOLDER
    return meta in folders and any(storage.exists(f"{meta}/hoodie.properties{end}") for end in ("", ".backup"))
