"""Adds file groups with many versions to a table: empty files, whose names have instants before the timeline."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def fill(base: Path, *, partitions: int, groups: int, versions: int) -> int:
    """Returns the number of files that are in no latest slice. Planning needs only the names of files, and counts
    instants before the timeline as completed."""
    metadata = next(base.glob("*/.hoodie_partition_metadata"))
    for partition in range(partitions):
        folder = base / f"1999-{partition:05}"
        folder.mkdir()
        shutil.copy(metadata, folder)
        for group in range(groups):
            for version in range(versions):
                name = f"{group:08}-0000-4000-8000-{partition:012}-0_0-0-0_200001{version + 1:02}000000000.parquet"
                os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY))
    return partitions * groups * (versions - 1)


def data_files(base: Path) -> set[str]:
    paths = (path.relative_to(base) for path in base.rglob("*") if path.is_file())
    return {str(path) for path in paths if path.parts[0] != ".hoodie" and not path.name.endswith(".crc")}
