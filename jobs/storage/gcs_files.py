"""Arrow's file system for Google Cloud Storage, with listings that have the folders in them.

Arrow (26) lists objects only, so it shows a folder only if there is an object for it, which Google's connector for
Hadoop creates now and then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyarrow import fs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa


class GcsFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """To be wrapped in `fs.PyFileSystem`. `inner` is Arrow's own file system."""

    def __init__(self, inner: fs.FileSystem) -> None:
        self._inner = inner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GcsFiles) and other._inner == self._inner

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return "gcs"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        return list(self._inner.get_file_info(list(paths)))

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Costs a request for each thousand objects at any depth: the folders follow from these only."""
        base = selector.base_dir.rstrip("/")
        start = len(base) + 1
        everything = self._inner.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=True))
        found: dict[str, fs.FileInfo] = {}
        for info in everything:
            parts = info.path[start:].split("/")
            for depth in range(1, len(parts)):
                folder = f"{base}/{'/'.join(parts[:depth])}"
                found.setdefault(folder, fs.FileInfo(folder, fs.FileType.Directory))
            found[info.path] = info
        is_missing = not everything and self._inner.get_file_info(base).type != fs.FileType.Directory
        if is_missing and not selector.allow_not_found:
            raise FileNotFoundError(base)
        return [info for path, info in found.items() if selector.recursive or "/" not in path[start:]]

    def create_dir(self, path: str, recursive: bool) -> None:
        self._inner.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._inner.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._inner.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise OSError("All buckets are never emptied")

    def delete_file(self, path: str) -> None:
        self._inner.delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self._inner.move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        self._inner.copy_file(src, dest)

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self._inner.open_input_stream(path, compression=None)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return self._inner.open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return self._inner.open_output_stream(path, compression=None, metadata=metadata)

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return self._inner.open_append_stream(path, compression=None, metadata=metadata)
