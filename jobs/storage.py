"""Where the tasks find a table's files: Hadoop's paths, as Hudi gives them, for pyarrow."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit


def is_supported(base_path: str) -> bool:
    """Whether the Arrow data plane can read and write there: local paths, for now."""
    scheme = urlsplit(base_path).scheme
    return scheme in {"", "file"}


def local_path(path: str) -> Path:
    """`file:/x`, `file:///x` and `/x` are one and the same file. Hadoop does not percent-encode, so `%` stays."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path:
        raise ValueError(f"not a local path: {path}")
    return Path(path)
