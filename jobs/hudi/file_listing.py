"""Files and folders as the storage lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    return {
        path.rpartition("/")[2]: ListedFile(int(size), int(modified), is_folder == "true")
        for path, size, is_folder, modified in _LISTED.findall(jvm.reads.listed(storage, folder, recursive))
    }
