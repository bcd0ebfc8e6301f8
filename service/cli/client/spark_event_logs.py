"""The reads of Hudi tables in Spark's event logs (`org.apache.spark.scheduler.EventLoggingListener`, Spark 3).

The physical plan of each query names its scans. A scan that uses Hudi's file index has the base path of the table as
its location. In Hudi 1.x these are the scans of all tables; in 0.15 only those of copy-on-write tables and
read-optimized queries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

_QUERY = b"SparkListenerSQLExecutionStart"
_START = b"SparkListenerApplicationStart"
# The name of the event comes first in the event's line.
_HEAD = 200
_CHUNK = 1024 * 1024
_LONGEST = 16 * 1024 * 1024
_DEEPEST = 500
_OWN_APPLICATION = "groundskeeper"
_LOCATION = re.compile(r"Hoodie\w*FileIndex\(\d+ paths\)\[(.*)\]", re.DOTALL)
_CODEC = re.compile(r"\.(zstd|lz4|lzf|snappy)$")


@dataclass(frozen=True)
class QueryReads:
    """The tables that one query reads. `run` identifies the query among all applications."""

    run: str
    at: datetime
    paths: tuple[str, ...]


class EventLogs:
    """The event logs below a folder, which may be a URI of an object store. `unreadable` has the names of the files
    that cannot be read, with the reasons."""

    def __init__(self, folder: str) -> None:
        """Opens the folder. Raises OSError or ValueError if it does not exist."""
        place = folder if "://" in folder else str(Path(folder).absolute())
        self._files, self._root = fs.FileSystem.from_uri(place)
        self._positions: dict[str, int] = {}
        self._own: set[str] = set()
        self.unreadable: dict[str, str] = {}
        if self._files.get_file_info(self._root).type != fs.FileType.Directory:
            raise NotADirectoryError(f"{folder} is no folder.")

    def new(self, since: datetime) -> Iterator[QueryReads]:
        """Yields the queries that were logged after the last call and began at `since` or later."""
        found = self._files.get_file_info(fs.FileSelector(self._root, recursive=True))
        for each in sorted(found, key=lambda info: (info.path.rpartition("/")[0], info.mtime_ns or 0)):
            name = each.base_name
            if not each.is_file or name.startswith((".", "appstatus")) or each.size == self._positions.get(each.path):
                continue
            try:
                yield from self._of_file(each, since)
                self.unreadable.pop(each.path, None)
            except (OSError, ValueError) as error:
                # One bad file must not stop the others.
                self.unreadable[each.path] = str(error)
                self._positions[each.path] = each.size

    def _of_file(self, info: fs.FileInfo, since: datetime) -> Iterator[QueryReads]:
        # Spark names a log by its application. A part of a log has the name `events_<number>_<application>`.
        name = info.base_name.removesuffix(".inprogress").removesuffix(".compact")
        application = re.sub(r"^events_\d+_", "", _CODEC.sub("", name))
        codec = _CODEC.search(name)
        if codec is None:
            with self._files.open_input_file(info.path) as stream:
                position = self._positions.get(info.path, 0)
                stream.seek(position if position <= info.size else 0)
                for end, line in _lines(stream, stream.tell()):
                    self._positions[info.path] = end
                    yield from self._of_line(application, line, since)
            return
        if codec[1] != "zstd":
            raise ValueError(f"{codec[1]} is not supported; set spark.eventLog.compression.codec to zstd")
        with self._files.open_input_stream(info.path) as raw, pa.input_stream(raw, compression="zstd") as stream:
            for _, line in _lines(stream, 0):
                yield from self._of_line(application, line, since)
        # In a compressed file one cannot continue at a position, so the whole file is read again when it has grown.
        self._positions[info.path] = info.size

    def _of_line(self, application: str, line: bytes, since: datetime) -> Iterator[QueryReads]:
        head = line[:_HEAD]
        if _START in head and _event(line).get("App Name") == _OWN_APPLICATION:
            # The jobs of this service do not count as readers.
            self._own.add(application)
        if _QUERY not in head or application in self._own:
            return
        event = _event(line)
        time, number = event.get("time"), event.get("executionId")
        if not isinstance(time, int) or not isinstance(number, int) or not 0 < time < 10**14:
            return
        at = datetime.fromtimestamp(time / 1000, UTC)
        paths = tuple(dict.fromkeys(_locations(event.get("sparkPlanInfo"), 0)))
        if paths and at >= since:
            yield QueryReads(f"{application[:150]}/{number}", at, paths)


def _lines(stream: Any, position: int) -> Iterator[tuple[int, bytes]]:
    """Yields the complete lines, each with the position after it. Lines that are too long to be parsed are left out."""
    rest, too_long = b"", False
    while True:
        try:
            chunk = bytes(stream.read(_CHUNK))
        except OSError:
            # The last frame of a compressed file is incomplete while Spark still writes it.
            return
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            position += len(line) + 1
            if not too_long:
                yield position, line
            too_long = False
        if len(rest) > _LONGEST:
            position, rest, too_long = position + len(rest), b"", True


def _event(line: bytes) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}


def _locations(plan: object, depth: int) -> Iterator[str]:
    if not isinstance(plan, dict) or depth > _DEEPEST:
        return
    metadata, children = plan.get("metadata"), plan.get("children")
    location = metadata.get("Location") if isinstance(metadata, dict) else None
    found = _LOCATION.fullmatch(location) if isinstance(location, str) else None
    if found:
        # Spark shortens a long list of paths, but never a single path. The scan of a Hudi table has one path.
        yield found[1].partition(", ")[0]
    for child in children if isinstance(children, list) else ():
        yield from _locations(child, depth + 1)
