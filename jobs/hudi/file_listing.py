"""Files and folders as the storage lists them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.hudi.jvm import Jvm

# The text of a list is "[StoragePathInfo{path=..., length=..., isDirectory=..., ...}, ...]"; it has no JSON form.
_LISTED = re.compile(r"path=(.*?), length=(\d+), isDirectory=(\w+), .*?modificationTime=(\d+)")
# A bound for the length of one answer.
_AT_ONCE = 500


@dataclass(frozen=True)
class ListedFile:
    """A file or folder as the storage lists it: its size, and when it was last modified."""

    bytes: int
    modified_ms: int
    is_folder: bool


def listed(jvm: Jvm, storage: Any, folder: str, *, recursive: bool = False) -> dict[str, ListedFile]:
    """Returns the entries of a folder of a `HoodieStorage` by name, or the files anywhere below it; empty if there is
    no such folder."""
    return {path.rpartition("/")[2]: entry for path, entry in _entries(jvm.folders.listed(storage, folder, recursive))}


def listed_each(jvm: Jvm, storage: Any, folders: Sequence[str]) -> list[dict[str, ListedFile]]:
    """Returns what `listed` does for each of these folders, which are listed side by side."""
    found: list[dict[str, ListedFile]] = []
    for first in range(0, len(folders), _AT_ONCE):
        texts = json.loads(jvm.folders.listed(storage, jvm.list(folders[first : first + _AT_ONCE])))
        found += [{path.rpartition("/")[2]: entry for path, entry in _entries(text)} for text in texts]
    return found


def listed_below(jvm: Jvm, storage: Any, folder: str) -> dict[str, ListedFile]:
    """Returns the files anywhere below a folder, by their paths relative to it; empty if there is no such folder."""
    place = f"/{folder.rpartition('://')[2].strip('/')}/"
    return {path.partition(place)[2]: entry for path, entry in _entries(jvm.folders.listed(storage, folder, True))}


def _entries(text: str) -> Iterator[tuple[str, ListedFile]]:
    for path, size, is_folder, modified in _LISTED.findall(text):
        yield path, ListedFile(int(size), int(modified), is_folder == "true")
