"""Files and folders as the storage lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jobs.hudi.jvm import Jvm

# The text of a list is "[StoragePathInfo{path=..., length=..., isDirectory=..., ...}, ...]"; it has no JSON form.
_LISTED = re.compile(r"path=(.*?), length=(\d+), isDirectory=(\w+), .*?modificationTime=(\d+)")


@dataclass(frozen=True)
class ListedFile:
    """A file or folder as the storage lists it: its size, and when it was last modified."""

    bytes: int
    modified_ms: int
    is_folder: bool


def listed(jvm: Jvm, storage: Any, folder: str, *, recursive: bool = False) -> dict[str, ListedFile]:
    """Returns the entries of a folder of a `HoodieStorage` by name, or the files anywhere below it; empty if there is
    no such folder."""
    return {path.rpartition("/")[2]: entry for path, entry in _entries(jvm, storage, folder, recursive=recursive)}


def listed_below(jvm: Jvm, storage: Any, folder: str) -> dict[str, ListedFile]:
    """Returns the files anywhere below a folder, by their paths relative to it; empty if there is no such folder."""
    place = f"/{folder.rpartition('://')[2].strip('/')}/"
    return {path.partition(place)[2]: entry for path, entry in _entries(jvm, storage, folder, recursive=True)}


def _entries(jvm: Jvm, storage: Any, folder: str, *, recursive: bool) -> Iterator[tuple[str, ListedFile]]:
    for path, size, is_folder, modified in _LISTED.findall(jvm.reads.listed(storage, folder, recursive)):
        yield path, ListedFile(int(size), int(modified), is_folder == "true")
