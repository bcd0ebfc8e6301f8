"""Arrow's file system for Google Cloud Storage, whose listings show folders as well.

Arrow (26) lists objects only, so it shows a folder only if there is an object for it, which Google's connector for
Hadoop creates now and then.
"""

from __future__ import annotations

from pyarrow import fs

from jobs.storage.wrapped_files import WrappedFiles


class GcsFiles(WrappedFiles):
    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Costs a request for each thousand objects at any depth, because the folders are found only by the names of
        the objects."""
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
