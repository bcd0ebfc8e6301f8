"""Finds the expired partitions of a table, by Hudi's own strategy and by their files. Hudi's strategy (1.2) has two
faults that would delete rows too early. It computes periods of more than 24 days in 32 bits (see
`jobs.hudi.partition_ttl`). Before table version 8, where log files are named by their base instant, it also takes a
partition with new logs for an unmodified one. So a partition counts as expired only if the files show it as well."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from jobs.errors import RefusedError
from jobs.format.bucket_rules import Selection
from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.instants import instant_of
from jobs.hudi.client import WriteClient
from jobs.hudi.hadoop import storage_of
from jobs.hudi.jvm import translated
from jobs.hudi.records import Commit, FileSlice
from jobs.hudi.rows import count_by_partition
from jobs.hudi.table import HudiTable
from jobs.job_params import TtlStrategy
from jobs.kinds.partition_ttl import PartitionTtlParams
from jobs.storage.paths import Storage


@dataclass(frozen=True)
class Ttl:
    """The parameters of a job."""

    strategy: TtlStrategy
    days: int
    limit: int  # Maximum number of partitions, the oldest first.
    selection: Selection | None  # None means all partitions.

    @classmethod
    def of(cls, params: PartitionTtlParams) -> Ttl:
        selection = None if params.partitions is None else Selection.of(params.partitions)
        return cls(params.strategy, params.days_retain, params.limit_partitions, selection)


@dataclass(frozen=True)
class Expired:
    """A partition that has expired, with its latest file slices."""

    partition: str
    since: str  # The instant from which its age is counted.
    modified: str  # The latest instant or completion time of its files.
    slices: tuple[FileSlice, ...]

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.slices)

    @property
    def files(self) -> int:
        return sum(item.number_of_files for item in self.slices)


def expired(table: HudiTable, client: WriteClient, ttl: Ttl, *, among: Collection[str] | None = None) -> list[Expired]:
    """Returns the selected partitions that have expired now, the oldest first. `client` was opened with the options of
    the strategy. Partitions without files are left out. `among` are the partitions that the strategy has found before;
    then it is not run again, because it examines all partitions, which takes too long while writers wait."""
    now = table.now()
    latest = instant_of(now - timedelta(days=ttl.days))
    found = set(client.partition_ttl.expired(instant_of(now)) if among is None else among)
    if ttl.selection is not None:
        found = {partition for partition in found if partition in ttl.selection}
    commits = table.commits() if found else []
    slices = sorted((item for item in table.file_slices() if item.partition in found), key=_partition)
    due = []
    for partition, of_partition in groupby(slices, key=_partition):
        of_one = tuple(of_partition)
        modified = _modified(table, partition, of_one, commits)
        is_by_time = ttl.strategy is TtlStrategy.KEEP_BY_TIME
        since = modified if is_by_time else client.partition_ttl.created(partition)
        if since and since < latest:
            due.append(Expired(partition, since, modified, of_one))
    return sorted(due, key=lambda each: (each.since, each.partition))


def _partition(item: FileSlice) -> str:
    return item.partition


def _modified(table: HudiTable, partition: str, slices: Sequence[FileSlice], commits: Sequence[Commit]) -> str:
    instants = [max(each.write.instant, each.completed) for each in commits if partition in each.files]
    for item in slices:
        base = parse_base_file_name(item.base_name)
        logs = [parsed.instant for name in item.log_files if (parsed := parse_log_file_name(name))]
        instants += [*([base.instant] if base else []), *logs]
        if item.log_files and table.has_logs_named_by_slice:
            instants += [instant_of(table.moment(each)) for each in _written_at(table, item)]
    return max(instants, default="")


def _written_at(table: HudiTable, item: FileSlice) -> list[int]:
    """Returns when its log files were last written to, in milliseconds since 1970."""
    storage, paths = table.storage, table.jvm.hudi.storage.StoragePath
    folder = f"{table.base_path}/{item.partition}".rstrip("/")
    with translated(f"reading the times of log files in partition '{item.partition}'"):
        return [int(storage.getPathInfo(paths(f"{folder}/{name}")).getModificationTime()) for name in item.log_files]


class Rows:
    """The numbers of rows of partitions, cached as long as the files are the same."""

    def __init__(self, table: HudiTable) -> None:
        self._table = table
        self._known: dict[tuple[FileSlice, ...], int] = {}

    def of(self, partitions: Sequence[Expired]) -> dict[str, int]:
        unknown = [each for each in partitions if each.slices not in self._known]
        if unknown:
            counted = _counted(self._table, unknown)
            self._known |= {each.slices: counted[each.partition] for each in unknown}
        return {each.partition: self._known[each.slices] for each in partitions}


def _counted(table: HudiTable, partitions: Sequence[Expired]) -> dict[str, int]:
    """Returns the number of rows by partition path, from the footers of base files.

    The rows of partitions with log files, or on a storage that Arrow cannot read, are read by Hudi and counted.
    """
    try:
        storage = storage_of(table)
    except RefusedError:
        storage = None
    counted: dict[str, int] = {}
    for each in partitions:
        if storage and all(_is_plain(item) for item in each.slices):
            counted[each.partition] = sum(_rows_of(storage, item.base_file) for item in each.slices if item.base_file)
    others = [each.partition for each in partitions if each.partition not in counted]
    return counted | (count_by_partition(table, others) if others else {})


def _is_plain(item: FileSlice) -> bool:
    return not item.log_files and (item.base_file or "").endswith(".parquet")


def _rows_of(storage: Storage, path: str) -> int:
    with storage.read_parquet(path) as reader:
        return int(reader.metadata.num_rows)
