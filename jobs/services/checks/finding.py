"""Findings of a diagnosis, and the table that it examines."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import UNSET

from jobs.contract import converted
from jobs.errors import JobError
from jobs.format.file_names import is_fixed, parse_base_file_name, parse_log_file_name
from jobs.hudi.client import WriteClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.hudi.rows import hidden_by_statistics
from jobs.job_context import JobContext
from jobs.kinds.results import Cure, DamageFound
from jobs.protocol.archival_limits import completed_commits
from jobs.services.checks.folders import unlisted_folders
from jobs.services.checks.row_counts import count_rows, first_and_last_keys
from jobs.table_errors import DamagedFileError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from msgspec import UnsetType

    from jobs.format.bucket_rules import BucketRules
    from jobs.hudi.file_listing import ListedFile
    from jobs.hudi.records import Commit, FileSlice, Instant
    from jobs.hudi.table import HudiTable
    from jobs.services.checks.row_counts import PartitionRows

_NAMED = 5


@dataclass(frozen=True)
class Finding:
    """A damage. `items` are the damaged things, each with its text for users. `effect` is its effect on readers,
    writers or services; `hint` says what to do. `cure` is the job that repairs it; None if no job can do so safely, and
    then the hint says why."""

    type: str
    title: str
    items: Mapping[str, str]
    effect: str
    hint: str
    cure: Cure | None = None

    @property
    def detail(self) -> str:
        return counted_with_first(self.items.values())

    def result(self, check: str | UnsetType = UNSET) -> DamageFound:
        """Returns the finding as a job's result shows it. `check` names the check that found it, which only
        `examination` knows. The incident closes when that check has been made again."""
        return converted(self, DamageFound, from_attributes=True).having(check=check)


class Examined:
    """A table under examination, which caches what several checks read. Each part is read when a check first needs it,
    because any part may be damaged: then only that check ends, with a `JobError`. `opened` closes the Hudi client and
    the reader of the metadata table; `context` is the context of the job. `partitions` are the partitions of the table,
    if the caller knows them."""

    def __init__(
        self,
        table: HudiTable,
        opened: ExitStack,
        context: JobContext | None = None,
        partitions: Collection[str] | None = None,
    ) -> None:
        self.table = table
        self.partitions = partitions
        self.context = context or JobContext()
        self._opened = opened
        self._reader = opened.enter_context(ExitStack())

    def of(self, table: HudiTable, partitions: Collection[str]) -> Examined:
        """Returns an `Examined` of another table with these partitions, which has just been opened."""
        self._opened.enter_context(table.unchanged(reload=False))
        return Examined(table, self._opened, self.context, partitions)

    @cached_property
    def client(self) -> WriteClient:
        return self._opened.enter_context(WriteClient(self.table, UNDER_OUR_LOCK))

    @cached_property
    def instants(self) -> list[Instant]:
        return self.table.instants()

    @cached_property
    def timeline_files(self) -> dict[str, ListedFile]:
        return self.table.timeline_files()

    @cached_property
    def commits(self) -> list[Commit]:
        return self.table.commits()

    @cached_property
    def slices(self) -> list[FileSlice]:
        return self._listed.file_slices() if self.table.is_listed_by_metadata else self.listed_slices

    @cached_property
    def listed_slices(self) -> list[FileSlice]:
        return self._listed.file_slices_by_listing()

    @cached_property
    def _listed(self) -> HudiTable:
        """The table, with one reader of partitions and files."""
        self._reader.enter_context(self.table.reading())
        return self.table

    def stop_reading(self) -> None:
        """Closes the reader, so that the next check opens a new one."""
        self._reader.close()

    @cached_property
    def rules(self) -> BucketRules | None:
        return self.table.bucket_rules()

    @cached_property
    def counted(self) -> list[PartitionRows]:
        return count_rows(self.table, self.rules, with_forms=True)

    @cached_property
    def hidden_keys(self) -> set[tuple[str, str]]:
        """The partition paths and keys of some rows that a query with a filter misses."""
        return hidden_by_statistics(self.table, first_and_last_keys(self.counted))

    @cached_property
    def files(self) -> dict[str, set[str]]:
        """The names of all files by partition path, as the storage lists them; including partitions that only commits
        name."""
        return {partition: set(entries) for partition, entries in self.entries.items()}

    @cached_property
    def entries(self) -> dict[str, dict[str, ListedFile]]:
        known = set(self._listed.partitions() if self.partitions is None else self.partitions)
        with suppress(JobError):
            known |= {partition for commit in self.commits for partition in commit.files}
        found = self.table.entries_of(sorted(known))
        return found | unlisted_folders(self.table, found)

    @cached_property
    def files_of_unknown_instants(self) -> dict[str, list[str]]:
        """The paths of data files whose instants are not on the timeline although they are later than its first one, by
        instant."""
        found = self._unknown(self.instants)
        if found:
            # The timeline must be read after the files were listed, to have the instant of each.
            self.table.reload()
            found = self._unknown(self.table.instants())
        return found

    def _unknown(self, instants: Sequence[Instant]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        completed = completed_commits(instants)
        known = {item.requested for item in instants}
        for partition, names in self.files.items() if completed else ():
            for name in names:
                parsed = parse_base_file_name(name) or parse_log_file_name(name)
                if parsed and parsed.instant not in known and parsed.instant >= completed[0]:
                    found.setdefault(parsed.instant, []).append(_path(partition, name))
        return found

    def is_cut_off(self, path: str) -> bool:
        """Returns whether a base file lacks its footer, or a log ends in the midst of a block. The path is relative to
        the base path."""
        if ".log." in path:
            return self.client.late_files.is_cut_off(path)
        try:
            with storage_of(self.table).read_parquet(f"{self.table.base_path}/{path}"):
                return False
        except DamagedFileError:
            return True

    @cached_property
    def strays(self) -> set[str]:
        """The files of `unnamed`, except files of pending instants: the commit or the rollback of such an instant will
        name them."""
        if all(".log." not in path for path in self.unnamed):
            return self.unnamed
        pending = {item.requested for item in self.instants if item.state != "COMPLETED"}
        late_files = self.client.late_files
        return self.unnamed.difference(*map(late_files.marked_files, pending & late_files.marked()))

    @cached_property
    def unnamed(self) -> set[str]:
        """The paths of files with the instant of a commit of the active timeline that does not name them, and of copies
        of older files.

        Logs that may be named by their file slice are left out, and logs that another commit names: on a table with
        consistent hashing, a log by a statement of Spark SQL has the instant of the rows that it changes, and a log by
        a writer beside Hudi's own clustering has the instant of the clustering (Hudi 1.2.0).
        """
        instants = {commit.write.instant for commit in self.commits}
        every = {
            _path(partition, path.rpartition("/")[2])
            for commit in self.commits
            for partition, groups in commit.files.items()
            for paths in groups.values()
            for path in paths
        }
        by_slice = self.table.has_logs_named_by_slice
        found = self._copies(instants)
        for partition, listed in self.files.items():
            slices = _slices(listed) if by_slice else {}
            for name in listed:
                parsed = parse_base_file_name(name) or parse_log_file_name(name)
                if parsed is None or (".log." in name and parsed.instant in slices.get(parsed.file_id, ())):
                    continue
                if (path := _path(partition, name)) not in every and parsed.instant in instants:
                    found.add(path)
        return found

    def _copies(self, instants: Collection[str]) -> set[str]:
        """Returns base files of archived commits that the metadata table does not list, although it lists another file
        of the same file group and instant. Non-blocking writers give file groups of all partitions the same ids."""
        if "files" not in self.table.metadata_partitions:
            return set()
        known = {_path(item.partition, item.base_name) for item in self.slices if item.base_file}
        groups = set(map(_group, known))
        every = {_path(partition, name): name for partition, names in self.files.items() for name in names}
        return {
            path
            for path in every.keys() - known
            if (parsed := parse_base_file_name(every[path]))
            and _group(path) in groups
            and parsed.instant not in instants
            and not is_fixed(parsed.file_id)
        }


def _path(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name


def _group(path: str) -> tuple[str, str] | None:
    """Returns file id and instant of a base file."""
    parsed = parse_base_file_name(path.rpartition("/")[2])
    return (parsed.file_id, parsed.instant) if parsed else None


def _slices(names: Iterable[str]) -> dict[str, set[str]]:
    """Returns for each file group the instants of its possible slices: the instants of its base files, and the earliest
    instant of all its files."""
    bases: dict[str, set[str]] = {}
    first: dict[str, str] = {}
    for name in names:
        if parsed := parse_base_file_name(name) or parse_log_file_name(name):
            first[parsed.file_id] = min(first.get(parsed.file_id, parsed.instant), parsed.instant)
            if ".log." not in name:
                bases.setdefault(parsed.file_id, set()).add(parsed.instant)
    return {file_id: bases.get(file_id, set()) | {instant} for file_id, instant in first.items()}


def named(items: Iterable[str]) -> dict[str, str]:
    """Returns each item as its own text."""
    return {item: item for item in items}


def confirmed(first: Iterable[Finding], again: Iterable[Finding]) -> list[Finding]:
    """Returns the findings of the second run that the first run had too. While a check runs, writers begin, commit and
    delete, so it may find states that are only temporary. Real damages are found by both runs."""
    seen = {(finding.type, item) for finding in first for item in finding.items}
    found = []
    for finding in again:
        if items := {item: text for item, text in finding.items.items() if (finding.type, item) in seen}:
            found.append(replace(finding, items=items))
    return found


def counted_with_first(items: Collection[str]) -> str:
    """Returns the number of the items and the first of them."""
    first = ", ".join(sorted(items)[:_NAMED])
    return f"{len(items)}, such as {first}" if len(items) > _NAMED else first
