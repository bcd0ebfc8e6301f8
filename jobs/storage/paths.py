"""Finds, reads and writes a table's files with Arrow at the same places as Hudi: Hadoop paths on all known storages.

A `Storage` is built on the driver, where Hadoop's configuration is, and is sent to the tasks. Files are read in batches
that fit into memory, whatever the size of their rows and row groups.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from jobs.contract import Problem
from jobs.errors import RefusedError
from jobs.problems.permissions import STORAGE_NOT_SUPPORTED
from jobs.storage.dictionaries import columns_with_small_ones
from jobs.storage.local_copy import local_copy
from jobs.storage.store import NotReproducibleError, Store
from jobs.storage.stores import REWRITABLE, path_of, store_of
from jobs.table_errors import DamagedFileError, PathOutsideTableError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)

BATCH_ROWS = 65_536
BATCH_BYTES = 16 * 1024 * 1024
# Total read buffers of a file, shared by its columns. Without buffers a reader holds whole column chunks.
_BUFFERS_BYTES = 32 * 1024 * 1024
_MIN_BUFFER, _MIN_REMOTE_BUFFER = 64 * 1024, 1024 * 1024
_PROBED_ROWS = 1024
_SMALL_BYTES = 1024 * 1024
# Texts in these encodings take no more space in Arrow than in the file. RLE only encodes levels.
_PLAIN = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
# Bytes of Arrow's values by Parquet's types; others have 8.
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "BYTE_ARRAY": 4}


@dataclass(frozen=True)
class Storage:
    """The folder of one table. `root` and all paths are in the form of Arrow's file system, never percent-encoded."""

    root: str
    store: Store | None = None

    @property
    def filesystem(self) -> fs.FileSystem:
        return self.store.filesystem() if self.store else fs.LocalFileSystem()

    @contextmanager
    def open_file(self, path: str, *, whole: bool = False) -> Iterator[pa.NativeFile]:
        """Opens the file at `path`, an absolute path as Hudi returns it. A remote file that will be read as a `whole`
        is copied first. A small file is copied, too, because each request takes longer than the transfer of its
        bytes."""
        with ExitStack() as stack:
            source = stack.enter_context(self.filesystem.open_input_file(path_of(path)))
            if self.store is not None and (whole or source.size() <= _SMALL_BYTES):
                source = stack.enter_context(local_copy(source))
            yield source

    @contextmanager
    def read_parquet(
        self,
        path: str,
        *,
        plain: Collection[str] | None = None,
        rows: bool = False,
        opened: pa.NativeFile | None = None,
    ) -> Iterator[pq.ParquetFile]:
        """Opens the Parquet file at `path`, an absolute path as Hudi returns it, to be read as a stream.

        `rows`: all rows will be read, not only the footer, so a remote file is copied first. If `plain` is given,
        string columns with few distinct values (`dictionaries`) come as Arrow dictionaries, except for the columns in
        `plain`. `opened` is the file, if it is open already. Raises DamagedFileError if it is not a Parquet file.
        """
        with ExitStack() as stack:
            source = opened or stack.enter_context(self.open_file(path, whole=rows))
            try:
                metadata = pq.read_metadata(source)
            except pa.ArrowInvalid as error:
                raise DamagedFileError(f"{path}: {error}") from error
            repeating = [] if plain is None else columns_with_small_ones(source, metadata)
            # `bytes_per_row` reads a few rows, and each read of a remote file costs a round trip.
            least = _MIN_BUFFER if rows or self.store is None else _MIN_REMOTE_BUFFER
            yield pq.ParquetFile(
                source,
                metadata=metadata,
                buffer_size=max(min(_BUFFERS_BYTES // max(metadata.num_columns, 1), 1024 * 1024), least),
                pre_buffer=False,  # Pre-buffering would hold whole row groups in memory.
                read_dictionary=[name for name in repeating if name not in (plain or ())],
                arrow_extensions_enabled=False,  # Texts and bytes, as in `to_arrow_schema` of the Parquet schema.
            )

    def size(self, paths: Iterable[str]) -> int:
        """Returns the total bytes of the files at these absolute paths; missing files count as zero."""
        infos = self.filesystem.get_file_info([path_of(path) for path in paths])
        return sum(info.size or 0 for info in infos)

    def exists(self, *segments: str) -> bool:
        """Returns whether there is a file or folder at this place below the root."""
        found = self.filesystem.get_file_info(self._path_below(segments))
        return bool(found.type != fs.FileType.NotFound)

    def names_in(self, *segments: str) -> list[str]:
        """Returns the names of the files in a folder below the root; none if there is no such folder."""
        listed = self.filesystem.get_file_info(fs.FileSelector(self._path_below(segments), allow_not_found=True))
        return [entry.base_name for entry in listed if entry.is_file]

    def create(self, *segments: str, before_close: Callable[[], None] | None = None) -> Output:
        """Opens a new file below the root for writing. `before_close` may raise, so that the file is not completed."""
        return Output(self.filesystem, self._path_below(segments), before_close)

    def create_empty(self, *segments: str) -> None:
        """Creates an empty file below the root, and on a local disk its parent folders."""
        path = self._path_below(segments)
        if self.store is None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        # On S3 `create_dir` would leave folder objects that are never removed.
        self.filesystem.open_output_stream(path, compression=None).close()

    def _path_below(self, segments: Iterable[str]) -> str:
        """Raises `PathOutsideTableError` for a segment that leads out of the table."""
        segments = list(segments)
        if outside := next((each for each in segments if ".." in each.split("/")), None):
            raise PathOutsideTableError(outside)
        return "/".join([self.root, *(segment for segment in segments if segment)])


class Output:
    """A file written through `stream`; it exists once it is closed.

    On S3 the upload has several parts, and nothing is visible before its last request. A killed process leaves
    invisible parts behind, which a rule of the bucket removes (`AbortIncompleteMultipartUpload`).
    """

    def __init__(self, filesystem: fs.FileSystem, path: str, before_close: Callable[[], None] | None = None) -> None:
        self._filesystem = filesystem
        self._path = path
        self._before_close = before_close
        self.stream: pa.NativeFile = filesystem.open_output_stream(path, compression=None)

    def close(self) -> int:
        """Closes the file and returns its size in bytes. Raises what `before_close` does; then `abandon` the file."""
        if self._before_close is not None:
            self._before_close()
        size = int(self.stream.tell())
        self.stream.close()
        return size

    def abandon(self) -> None:
        """Deletes the file, if the storage allows it. Hudi's rollback finds a file that remains by its marker.

        Arrow cannot abort an upload: even a stream that is merely dropped completes its upload.
        """
        with suppress(OSError, pa.ArrowException):
            self.stream.close()
        with suppress(OSError, pa.ArrowException):
            self._filesystem.delete_file(self._path)


def of_hadoop(base_path: str, options: Mapping[str, str]) -> Storage:
    """Returns a table's storage by Hadoop's rules; `options` are Hadoop's: `fs.defaultFS` and those of the store.

    `file:/x`, `file:///x` and `/x` are the same place, but `/x` is elsewhere when another file system is the default.
    Raises `RefusedError`.
    """
    match = _SCHEME.fullmatch(base_path)
    scheme = match.group(1).lower() if match else _scheme_by_default(options)
    if scheme == "file":
        return Storage(path_of(base_path))
    if scheme not in REWRITABLE or match is None:
        detail = f"base path {base_path}" + ("" if match else f", which is on {scheme}: by fs.defaultFS")
        hint = (
            "Only tables on local disks, S3, HDFS, Google's and Azure's storage can be rewritten, by their whole URI."
        )
        raise RefusedError([not_supported(detail, hint)])
    try:
        return Storage(path_of(base_path), store_of(base_path, options))
    except NotReproducibleError as error:
        hint = (
            "Start the worker without these options: provide keys, or use the credentials of its environment or "
            "machine, and leave encryption to the store's defaults."
        )
        raise RefusedError([not_supported(str(error), hint)]) from error


def _scheme_by_default(options: Mapping[str, str]) -> str:
    return options.get("fs.defaultFS", "file:///").partition(":")[0].lower()


def not_supported(detail: str, hint: str) -> Problem:
    return STORAGE_NOT_SUPPORTED.because(detail, hint=f"{hint} Compaction, cleaning and the audit do not need this.")


def batches_of(reader: pq.ParquetFile, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yields all rows, in batches of at most `BATCH_ROWS` rows and about `BATCH_BYTES` bytes.

    `columns` selects some columns; None means all.
    """
    for number in range(reader.num_row_groups):
        if reader.metadata.row_group(number).num_rows:
            rows = rows_that_fit(bytes_per_row(reader, number))
            yield from reader.iter_batches(batch_size=rows, row_groups=[number], columns=columns, use_threads=False)


def rows_that_fit(bytes_of_row: float) -> int:
    """Returns the number of rows of this size that fit into a batch."""
    return int(min(max(BATCH_BYTES // max(bytes_of_row, 1), 1), BATCH_ROWS))


def bytes_per_row(reader: pq.ParquetFile, number: int = 0) -> float:
    """Returns the row size of a non-empty row group, by its footer or by its first rows, whichever is larger.

    The footer covers all rows, but counts each value of a dictionary only once, so columns of texts with dictionaries
    are read.
    """
    group = reader.metadata.row_group(number)
    rows = group.num_rows
    decoded, unknown = 0, []
    for place in range(group.num_columns):
        chunk = group.column(place)
        width = _width_of(reader.schema.column(place), chunk)
        decoded += max(width * chunk.num_values, 0 if "DICT" in str(chunk.encodings) else chunk.total_uncompressed_size)
        if chunk.physical_type == "BYTE_ARRAY" and not _PLAIN.issuperset(chunk.encodings):
            unknown.append(chunk.path_in_schema)
    known = float(max(group.total_byte_size, decoded) / rows)
    if unknown:
        kinds = {field.name: field.type for field in reader.schema_arrow}
        unknown = [path for path in unknown if not pa.types.is_dictionary(kinds.get(path, pa.null()))]
    if not unknown:
        return known
    probed = min(_PROBED_ROWS, rows_that_fit(known))
    batches = reader.iter_batches(batch_size=probed, row_groups=[number], columns=unknown, use_threads=False)
    probe: pa.RecordBatch = next(batches)
    return float(max(group.total_byte_size / rows, decoded / rows + probe.nbytes / max(probe.num_rows, 1)))


def _width_of(column: Any, chunk: pq.ColumnChunkMetaData) -> int:
    """Returns the smallest number of bytes that a value takes in Arrow; for a text these are its offsets."""
    if column.logical_type.type == "DECIMAL":
        return 16
    return int(column.length) or _WIDTHS.get(chunk.physical_type, 8)
