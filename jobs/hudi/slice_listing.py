"""Lists a table's latest file slices. Before table version 8 it also notices when a slice got more committed rows
without new files."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from jobs.format.stale_writes import Group
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.boundaries import check_links, inside, relative
from jobs.hudi.jvm import translated
from jobs.hudi.opened_table import OpenedTable
from jobs.hudi.records import INGESTION, FileSlice, Instant, Touched, file_slice_of


class SliceListing:
    """The slices of one table, listed again only if an instant has completed since."""

    def __init__(self, table: OpenedTable) -> None:
        self._table = table
        self._slices: list[FileSlice] = []
        # The completed instants when `_slices` were listed, and whether the metadata table was used.
        self._listed_at: tuple[frozenset[str], bool] | None = None
        # An open reader, the value of `_state_at` when it was opened, and the partition paths by it.
        self._open: Any = None
        self._opened_at: tuple[frozenset[str], bool] | None = None
        self._paths: list[str] | None = None
        self._late = _LateWrites()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yields a reader of partitions and files as of now. Until the end of the context partitions and the latest
        slices are listed with it, and it is yielded again, unless an instant completes; so the metadata table is read
        only once."""
        instants = self._table.instants()
        if self._open is not None and self._state_at(instants) == self._opened_at:
            yield self._open
            return
        if not self._table.is_taken_as_unchanged:
            self._table.reload()
        at, before = self._state_at(instants), (self._open, self._opened_at, self._paths)
        with listing(self._table, from_metadata=at[1]) as reader:
            self._open, self._opened_at, self._paths = reader, at, None
            try:
                yield reader
            finally:
                self._open, self._opened_at, self._paths = before

    def partitions(self) -> list[str]:
        """Returns the partition paths. Raises PathOutsideTableError if one leads out of the table."""
        if self._open is not None and self._state_at(self._table.instants()) == self._opened_at:
            return self._partitions_by(self._open)
        with listing(self._table, from_metadata=self._table.is_listed_by_metadata) as reader:
            return self._partitions_by(reader)

    def _partitions_by(self, reader: Any) -> list[str]:
        """Returns the partition paths with a reader of `listing`. A reader of the metadata table always returns the
        paths of the moment when it was opened, so it is asked only once. Raises PathOutsideTableError if a path leads
        out of the table."""
        table = self._table
        paths = self._paths if reader is self._open else None
        if paths is None:
            with translated("listing the partitions"):
                found = table.jvm.read(reader.getAllPartitionPaths())
            paths = sorted(relative(path, "a partition path") for path in found)
            if reader is self._open and self._opened_at and self._opened_at[1]:
                self._paths = paths
        check_links(table.base_path, paths)
        return list(paths)

    def latest(self) -> list[FileSlice]:
        # The visible files change with the completed instants only, and reading the timeline is cheaper than listing.
        # The instants are read before the listing, because an instant that completes during the listing may be seen
        # only in part, and has to cause a new listing.
        instants = self._table.instants()
        at = self._state_at(instants)
        if at != self._listed_at:
            if at != self._opened_at and not self._table.is_taken_as_unchanged:
                self._table.reload()
            if self._table.version < WITH_COMPLETION_TIMES:
                self._late.update(self._table, instants)
            found = self.listed(from_metadata=at[1], by=self._open if at == self._opened_at else None)
            self._slices = [self._late.marked(item) for item in found]
            self._listed_at = at
        return self._slices

    def latest_in(self, partitions: Collection[str]) -> list[FileSlice]:
        with self.reading() as reader:
            return self.listed(from_metadata=self._table.is_listed_by_metadata, by=reader, only=partitions)

    def _state_at(self, instants: Sequence[Instant]) -> tuple[frozenset[str], bool]:
        completed = frozenset(item.requested for item in instants if item.state == "COMPLETED")
        return completed, self._table.is_listed_by_metadata

    def listed(self, *, from_metadata: bool, by: Any = None, only: Collection[str] | None = None) -> list[FileSlice]:
        """Lists with the open reader `by`, or else with a new one; `only` some partitions, or all."""
        table, jvm = self._table, self._table.jvm
        opened = nullcontext(by) if by is not None else listing(table, from_metadata=from_metadata)
        with translated("listing the file slices"), opened as reader:
            # One reader serves partitions and files, because it caches the metadata table.
            is_usual = from_metadata == table.is_listed_by_metadata
            paths = self._partitions_by(reader) if is_usual else self.partitions()
            paths = paths if only is None else [path for path in paths if path in only]
            read = jvm.reads.slices(table.meta, reader, jvm.list(paths))
            found = [file_slice_of(item) for item in json.loads(read)]
        for item in found:
            # The metadata table may name files outside of the table.
            inside(table.base_path, item.base_file or "", "a file slice")
        return found


@contextmanager
def listing(table: OpenedTable, *, from_metadata: bool) -> Iterator[Any]:
    """Yields Hudi's reader of partitions and files (`HoodieTableMetadata`): of the metadata table as it is now, or one
    that lists the storage."""
    jvm = table.jvm
    with translated("opening the metadata table"):
        found = jvm.reads.listing(table.meta, jvm.engine_context, table.base_path, from_metadata)
    try:
        yield found
    finally:
        found.close()


class _LateWrites:
    """The writes that completed between the listings of a table before version 8.

    In such a table a log file belongs to its slice as soon as it exists, but readers see its rows only when its write
    completes. So a slice that was read in between has the same files as afterwards, but fewer rows.
    """

    def __init__(self) -> None:
        self._completed: frozenset[str] | None = None
        self._pending: frozenset[str] = frozenset()
        self._of_group: defaultdict[Group, set[str]] = defaultdict(set)
        self._of_any_group: set[str] = set()

    def update(self, table: OpenedTable, instants: Sequence[Instant]) -> None:
        writes = [item for item in instants if item.action in INGESTION]
        completed = frozenset(item.requested for item in writes if item.state == "COMPLETED")
        pending = frozenset(item.requested for item in writes) - completed
        if self._completed is not None:
            for instant in completed - self._completed:
                self._take(instant, table.touched(instant))
            # The oldest instants are archived first, so an instant that is gone while older ones exist was rolled back.
            # The targets of an archived one are unknown.
            oldest = min(completed, default="")
            newest_known = max(self._completed | self._pending, default=oldest)
            archived = {instant for instant in self._pending - completed - pending if instant < oldest}
            self._of_any_group |= archived | ({oldest} if oldest > newest_known else set())
        self._completed, self._pending = completed, pending

    def _take(self, instant: str, touched: Touched | None) -> None:
        if touched is None:
            self._of_any_group.add(instant)
        else:
            for group in touched.keys:
                self._of_group[group].add(instant)

    def marked(self, item: FileSlice) -> FileSlice:
        late = self._of_any_group | self._of_group.get(item.key, set())
        return replace(item, late_writes=frozenset(late)) if late and item.log_files else item
