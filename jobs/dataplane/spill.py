"""Stores sorted runs of rows that do not fit into memory in files on a local disk.

The files are in a folder of their own, which is removed when the sort ends or fails. A process that is killed leaves
its folder behind; the next one on the machine removes it, since nobody holds its lock any more.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.errors import RefusedError
from jobs.problems.tables import LOCAL_DISK_FULL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PREFIX = "groundskeeper-sort-"
_LOCK = "lock"
_ATTEMPTS = 10
# A fast codec is enough, because neighbours in a sorted run are alike.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class SpillFolder:
    """A folder beside Spark's own temporary files; it exists from the first `write` to `remove`."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self._lock: int | None = None
        self._runs = 0

    def write(self, tables: Iterable[pa.Table], rows: int) -> Run:
        """Writes a run in batches of this many rows. Raises `RefusedError` when the disk is full."""
        if self.path is None:
            # The files go into Spark's folder, because a cluster limits and cleans that.
            parent = Path(os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir())
            remove_abandoned(parent)
            self.path, self._lock = _new_folder(parent)
        self._runs += 1
        path = self.path / f"{self._runs}.arrow"
        written = 0
        with _named_when_full(self.path.parent):
            writer = None
            try:
                for table in tables:
                    if writer is None:
                        # Arrow's stream format is used, because in its file format a column has one dictionary from
                        # beginning to end.
                        writer = pa.ipc.new_stream(str(path), table.schema, options=_OPTIONS)
                    writer.write_table(table, max_chunksize=rows)
                    written += table.num_rows
            finally:
                if writer is not None:
                    writer.close()
        return Run(path, written)

    def remove(self) -> None:
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class Run:
    """A file of rows in order, which is read once."""

    def __init__(self, path: Path, rows: int) -> None:
        self.rows = rows
        self._path = path

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows and removes the file."""
        if self.rows:
            # The file is not mapped, because pages of a mapped file count as the process's memory.
            with pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as reader:
                yield from reader
        self._path.unlink(missing_ok=True)


def _new_folder(parent: Path) -> tuple[Path, int | None]:
    for _ in range(_ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        # Until the folder is locked, another process may take it for abandoned and remove it.
        with suppress(OSError):
            lock = _locked(folder / _LOCK)
            if lock is not None and (folder / _LOCK).exists():
                return folder, lock
    raise OSError(f"no folder for sorting could be created in {parent}")


def remove_abandoned(parent: Path) -> None:
    """Removes the folders of processes that have died."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            # Folders of other users in a shared folder are left alone.
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            if (lock := _locked(folder / _LOCK)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _locked(path: Path) -> int | None:
    """Locks the file until this process ends, and returns its descriptor; None if another process holds the lock."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def _named_when_full(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL and "No space left" not in str(error):
            raise
        raise RefusedError([LOCAL_DISK_FULL.because(str(folder))]) from error
