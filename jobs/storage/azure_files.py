"""Arrow's file system for Azure's storage, in which a listing shows each folder once.

In an account without a hierarchical namespace a folder is at most an empty blob with a mark in its metadata
(`hdi_isfolder`). Arrow (26) ignores that mark: it lists the folder as a file, and again as a folder if it has files.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyarrow import fs

from jobs.storage.wrapped_files import WrappedFiles


class AzureFiles(WrappedFiles):
    """A folder without files still looks like an empty file, because to tell them apart a listing would need one more
    request for each empty file."""

    def get_file_info(self, paths: Sequence[str]) -> list[fs.FileInfo]:
        return [
            fs.FileInfo(info.path, fs.FileType.Directory) if self._is_folder(info) else info
            for info in self._inner.get_file_info(list(paths))
        ]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        listed = self._inner.get_file_info(selector)
        folders = {info.path for info in listed if info.type == fs.FileType.Directory}
        return [info for info in listed if info.type == fs.FileType.Directory or info.path not in folders]

    def _is_folder(self, info: fs.FileInfo) -> bool:
        if info.type != fs.FileType.File or info.size:
            return False
        return bool(self._inner.get_file_info(fs.FileSelector(info.path, allow_not_found=True)))
