"""Finds and removes files that a live writer still writes, or has written, after its instant was rolled back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from jobs.errors import JobError
from jobs.format.instants import wall_clock
from jobs.format.markers import KEPT, MARKER, OF_SERVER
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.boundaries import relative
from jobs.hudi.file_listing import listed, listed_below
from jobs.hudi.jvm import translated
from jobs.hudi.small_file import read_object, write_object
from jobs.hudi.table import HudiTable

_CHECKSUM = ".crc"
_WHAT = "the note of markers that are lacking"


class LateFiles:
    def __init__(self, table: HudiTable) -> None:
        self._table = table
        self._jvm = table.jvm

    def rolled_back_but_writing(self) -> dict[str, str]:
        """Returns the instants that were rolled back but still have markers, each with its rollback's instant. A live
        writer of such an instant has continued for a while."""
        marked = self.marked()
        return {instant: by for instant, by in self.rolled_back().items() if instant in marked} if marked else {}

    def marked(self) -> set[str]:
        """Returns the instants that have markers."""
        with translated("listing the markers"):
            found = listed(self._jvm, self._table.storage, f"{self._table.base_path}/.hoodie/.temp")
        return {name for name, each in found.items() if each.is_folder}

    def rolled_back(self) -> dict[str, str]:
        """Returns instants that were rolled back -> the instants that rolled them back, by the active timeline.

        Leaves out instants that are on the timeline or were archived: a rolled-back plan of a table service stays on
        the timeline, and may be executed again at any moment.
        """
        undone = self._table.rollbacks()
        gone = sorted(undone.keys() - {item.requested for item in self._table.instants()})
        return {instant: undone[instant] for instant in gone if not self._table.was_archived(instant)}

    def marked_files(self, instant: str) -> set[str]:
        """Returns the data files, relative to the base path, that a writer has announced by markers of any type, or
        that `keep_announced` has kept.

        Both types may be there. If a timeline server goes on after a rollback has deleted all markers, it writes its
        files of markers again, but not the file that names their type. An active writer may rewrite markers while they
        are read here. So a truncated marker is skipped, and after an error of Hudi the caller should try again. Raises
        PathOutsideTableError for a marker of a file outside of the table, because a rollback would delete that file.
        """
        folder, where = self._marker_folder(instant), f"a marker of {instant}"
        with translated(f"reading the markers of {instant}"):
            found = listed_below(self._jvm, self._table.storage, folder)
            markers = {path for path in found if MARKER in path and not path.endswith(_CHECKSUM)}
            if any(path.startswith(OF_SERVER) for path in found):
                read = self._jvm.hudi.common.util.MarkerUtils.readTimelineServerBasedMarkersFromFileSystem
                by_file = self._jvm.read(read(folder, self._table.storage, self._jvm.engine_context, 1))
                markers.update(*by_file.values())
        names = {marker.rpartition(MARKER)[0] for marker in markers} - {""}
        return {relative(name, where) for name in names}

    def keep_announced(self, instant: str, files: Iterable[str]) -> None:
        """Announces the files again after a rollback has deleted their markers: a writer that is alive may complete
        them at any later time. The markers are in one file of the form that a timeline server writes."""
        lines = [f"{file}{MARKER}CREATE" for file in sorted(files)]
        if lines:
            with translated(f"keeping the markers of {instant}"):
                path = f"{self._marker_folder(instant)}/{KEPT}"
                self._jvm.reads.write(self._table.storage, path, "\n".join(lines))

    def announce(self, instant: str, files: Iterable[str]) -> None:
        """Makes markers again that somebody has removed, one for each of these files. The paths are relative to the
        base path. Until the last marker is made, a note says that markers are lacking."""
        write_object(self._jvm, self._table.storage, self._note, {"instant": instant}, _WHAT)
        with translated(f"making the markers of {instant} again"):
            for file in files:
                self._jvm.reads.write(self._table.storage, f"{self._marker_folder(instant)}/{file}{MARKER}CREATE", "")
            self._table.storage.deleteFile(self._jvm.hudi.storage.StoragePath(self._note))

    def lacks_markers(self, instant: str) -> bool:
        """Returns whether an attempt has died while it made the markers of this instant again."""
        return read_object(self._jvm, self._table.storage, self._note, _WHAT).get("instant") == instant

    @property
    def _note(self) -> str:
        return f"{self._table.base_path}/.hoodie/.aux/groundskeeper.markers"

    def _marker_folder(self, instant: str) -> str:
        return str(self._table.meta.getMarkerFolderPath(instant))

    def files_of(self, undone: Mapping[str, str]) -> dict[str, set[str]]:
        """Returns the existing data files of these rolled-back instants, relative to the base path. Files are found by
        their names, even without markers. Before table version 8 the names of logs do not contain the instant, so logs
        are found by their modification after the rollback. Lists every partition."""
        found: dict[str, set[str]] = {}
        suspicious = min((wall_clock(by) for by in undone.values()), default=None)
        if suspicious is None:
            return found
        with translated("listing the partitions"):
            storage, paths = self._table.storage, self._jvm.hudi.storage.StoragePath
            for partition in self._table.partitions():
                folder = paths(f"{self._table.base_path}/{partition}" if partition else self._table.base_path)
                for entry in self._jvm.items(storage.listDirectEntries(folder).stream()):
                    name = str(entry.getPath().getName())
                    relative = f"{partition}/{name}" if partition else name
                    if ".log." in name and self._table.version < WITH_COMPLETION_TIMES:
                        if self._table.moment(int(entry.getModificationTime())) >= suspicious:
                            for instant in undone:
                                found.setdefault(instant, set()).add(relative)
                    else:
                        for instant in [each for each in undone if f"_{each}." in name]:
                            found.setdefault(instant, set()).add(relative)
        return found

    def exist(self, instant: str, files: Iterable[str]) -> bool:
        """Returns whether this instant wrote one of these files and it still exists. The paths are relative to the base
        path."""
        with translated(f"looking for late files of {instant}"):
            base_path = self._table.meta.getBasePath()
            return any(
                self._is_written_by(instant, self._jvm.hudi.storage.StoragePath(base_path, file)) for file in files
            )

    def written_only_by(self, instants: set[str], file: str) -> bool:
        """Returns whether all blocks of a log, except corrupt ones, are of these instants. The path is relative to the
        base path."""
        path = self._jvm.hudi.storage.StoragePath(self._table.meta.getBasePath(), file)
        with suppress(JobError), translated(f"reading {file}", expected=JobError):
            return self._instants_in(path) <= {*instants, None}
        return False

    def is_cut_off(self, file: str) -> bool:
        """Returns whether a block of a log is corrupt. The path is relative to the base path."""
        with translated(f"reading {file}"):
            path = self._jvm.hudi.storage.StoragePath(self._table.meta.getBasePath(), file)
            return None in self._instants_in(path)

    def remove(self, instant: str, files: Iterable[str]) -> int:
        """Removes the given files that a live writer has written after its instant was rolled back, or that a lost task
        has written while its instant completed without them.

        Returns the number of files removed. The files are relative to the base path.
        """
        with translated(f"removing late files of {instant}"):
            storage, base_path = self._table.storage, self._table.meta.getBasePath()
            paths = [self._jvm.hudi.storage.StoragePath(base_path, file) for file in files]
            late = [path for path in paths if storage.exists(path) and self._is_written_by(instant, path)]
            return sum(bool(storage.deleteFile(path)) for path in late)

    def _is_written_by(self, instant: str, path: Any) -> bool:
        """Returns whether this instant wrote the file, by its name or by its blocks.

        Before table version 8, a log's name does not contain the instant, and may be reused: a restarted writer creates
        the same write token and takes the free log version. An unreadable log counts as not written by the instant;
        readers ignore it as well.
        """
        name = str(path.getName())
        if instant in name:
            return True
        with suppress(JobError), translated(f"reading {name}", expected=JobError):
            return self._instants_in(path) == {instant}
        return False

    def _instants_in(self, path: Any) -> set[str | None]:
        """Returns the instants that the blocks of a log file name as their writer; None for a corrupt block."""
        log = self._jvm.hudi.common.table.log
        reader = log.HoodieLogFormat.newReader(
            self._table.storage, self._jvm.hudi.common.model.HoodieLogFile(path), None
        )
        try:
            key = log.block.HoodieLogBlock.HeaderMetadataType.valueOf("INSTANT_TIME")
            found: set[str | None] = set()
            while reader.hasNext():
                found.add(reader.next().getLogBlockHeader().get(key))
            return found
        finally:
            reader.close()
