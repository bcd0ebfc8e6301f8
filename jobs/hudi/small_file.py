"""Small JSON files that Groundskeeper stores in a table's folder. Other programs may have changed these files, so any
content is tolerated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jobs.errors import FileMissingError
from jobs.hudi.jvm import Jvm, translated

MAX_BYTES = 64 * 1024


def read_object(jvm: Jvm, storage: Any, path: str, what: str, most: int = MAX_BYTES) -> dict[str, Any]:
    """Returns the object in a file; empty if there is no such file or no object in it. `what` describes the file in
    errors."""
    try:
        with translated(f"reading {what}", expected=FileMissingError):
            content = jvm.reads.text(storage, path, most)
        found = json.loads(content or "{}")
    except (FileMissingError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_object(jvm: Jvm, storage: Any, path: str, content: Mapping[str, Any], what: str) -> None:
    with translated(f"writing {what}"):
        jvm.reads.write(storage, path, json.dumps(content))
