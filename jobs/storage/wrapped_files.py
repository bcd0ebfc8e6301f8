"""Wraps a file system of Arrow, whose answers it passes on; a subclass changes some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyarrow import fs

if TYPE_CHECKING:
    import pyarrow as pa


class WrappedFiles(fs.FileSystemHandler):  # type: ignore[misc]
    """A handler for `fs.PyFileSystem`. `inner` is Arrow's own file system."""

    def __init__(self, inner: fs.FileSystem) -> None:
        self._inner = inner

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and bool(other._inner == self._inner)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def get_type_name(self) -> str:
        return str(self._inner.type_name)

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        return list(self._inner.get_file_info(list(paths)))

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return list(self._inner.get_file_info(selector))

    def create_dir(self, path: str, recursive: bool) -> None:
        self._inner.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._inner.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._inner.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise OSError("The buckets of an account are never emptied")

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
