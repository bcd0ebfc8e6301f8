"""The names of the files of a table in an object store or HDFS, relative to its base path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyarrow import fs

from jobs.storage.paths import of_hadoop

if TYPE_CHECKING:
    from collections.abc import Mapping


def names_of_files(base: str, options: Mapping[str, str]) -> set[str]:
    storage = of_hadoop(base, options)
    found = storage.filesystem.get_file_info(fs.FileSelector(storage.root, recursive=True))
    return {info.path.removeprefix(f"{storage.root}/") for info in found if info.is_file}


def left_behind(base: str, options: Mapping[str, str]) -> list[str]:
    """Returns the data files and markers that belong to no completed instant, pending and half-written instants, and a
    lock file."""
    found = names_of_files(base, options)
    timeline = {name.rsplit("/", 1)[-1] for name in found if name.startswith(".hoodie/timeline/")}
    completed = {name.split("_")[0] for name in timeline if "_" in name}
    data = {name for name in found if name.endswith(".parquet") and not name.startswith(".hoodie")}
    odd = {name for name in data if name.rsplit("_", 1)[-1].removesuffix(".parquet") not in completed}
    odd |= {name for name in found if name.startswith(".hoodie/.temp/") and ".marker." in name}
    odd |= {f"pending {name}" for name in timeline if name.split(".")[0] not in completed and "_" not in name}
    odd |= {name for name in timeline if name.count(".") > 1 and "_" in name}
    return sorted(odd | ({".hoodie/lock"} & found))
