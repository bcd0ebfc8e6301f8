"""Files and folders as the storage lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.hudi.jvm import Jvm

# The only form that a whole list has: "[StoragePathInfo{path=..., length=..., isDirectory=..., ...}, ...]".
_LISTED = re.compile(r"path=(.*?), length=(\d+), isDirectory=(\w+), .*?modificationTime=(\d+)")


@dataclass(frozen=True)
class ListedFile:
    """A file or folder as the storage lists it: its size, and when it was last modified."""

    bytes: int
    modified_ms: int
    is_folder: bool


def listed(jvm: Jvm, storage: Any, folder: str, *, recursive: bool = False) -> dict[str, ListedFile]:
    """Returns what is in a folder of a `HoodieStorage`, or files anywhere below it, by name; empty without that
    folder."""
    return {
        path.rpartition("/")[2]: ListedFile(int(size), int(modified), is_folder == "true")
        for path, size, is_folder, modified in _LISTED.findall(jvm.reads.listed(storage, folder, recursive))
    }
