"""Proves, before Hudi's own compaction or clustering commits, that no row was lost or invented. The record keys of the
plan's input files and of the files that Hudi wrote are read again, and compared with each other and with Hudi's
statistics. A clustering must keep the keys of each clustering group. A compaction may lose at most as many keys as the
logs delete, and gain at most as many as they insert, by Hudi's statistics; the logs are not read again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from jobs.dataplane import key_job
from jobs.dataplane.joined_files import JoinedFile
from jobs.dataplane.key_changes import KeyChange
from jobs.dataplane.key_digest import KeyDigest
from jobs.errors import RefusedError, RowsDifferError
from jobs.format import plan_files
from jobs.hudi import rows
from jobs.hudi.hadoop import storage_of
from jobs.hudi.records import Commit, FileSlice, deletes_in_logs
from jobs.hudi.table import HudiTable
from jobs.hudi.write_stats import WriteStat
from jobs.job_context import JobContext
from jobs.kinds import results
from jobs.kinds.clustering import ClusteringResult
from jobs.kinds.compaction import CompactionResult
from jobs.storage.paths import Storage

_NAMED = 5

Proved = TypeVar("Proved", ClusteringResult, CompactionResult)


@dataclass
class KeyProof:
    """The proofs for the plans of one job; `left_out` are the reasons why some plans were not proved."""

    inserted: int = 0
    deleted: int = 0
    corrupt_blocks: int = 0
    seconds: float = 0.0
    before: KeyDigest = field(default_factory=KeyDigest)
    after: KeyDigest = field(default_factory=KeyDigest)
    left_out: set[str] = field(default_factory=set)

    def result(self, found: Proved) -> Proved:
        """Returns the job's result with `rows`, `key_digest` and the proof of the new files."""
        return found.having(rows=self.after.rows, key_digest=str(self.after), proof=self.proof)

    @property
    def proof(self) -> results.KeyProof:
        return results.KeyProof(
            rows_before=self.before.rows,
            key_digest_before=str(self.before),
            inserted=self.inserted,
            deleted=self.deleted,
            corrupt_log_blocks=self.corrupt_blocks,
            seconds=round(self.seconds, 3),
            left_out=tuple(sorted(self.left_out)),
        )

    def of_compaction(
        self, table: HudiTable, plan: Mapping[str, Any], stats: Sequence[WriteStat], context: JobContext
    ) -> None:
        """Raises RowsDifferError unless each written file has the keys of the base file that it replaces, apart from as
        many as the logs delete and insert."""
        # If a slice got no new base file, readers would still read its old files, but no later logs.
        unwritten = sorted(plan_files.read_by(plan).keys() - {(stat.partition, stat.file_id) for stat in stats})
        _require(
            f"partition '{partition}', file group {file_id}: nothing was written" for partition, file_id in unwritten
        )
        at = partial(_absolute, table)
        old = {group: at(path) for group, path in plan_files.base_files(plan).items()}
        pairs = [(old.get((stat.partition, stat.file_id)), at(stat.path)) for stat in stats]
        with self._reading(table, (path for pair in pairs for path in pair if path)) as storage:
            if storage is None:
                return
            # The replaced file is assumed to be as large as the new one.
            sizes = [stat.bytes * (2 if old else 1) for stat, (old, _) in zip(stats, pairs, strict=True)]
            found = key_job.compare(table, storage, pairs, sizes, context)
            merged = list(zip(stats, found, strict=True))
            _require(_of_file_group(stat, change) for stat, change in merged if not _is_explained(stat, change))
            self.before += KeyDigest.sum(change.before for change in found)
            self.after += KeyDigest.sum(change.after for change in found)
            self.inserted += sum(stat.inserts for stat in stats)
            self.deleted += sum(change.before.rows + stat.inserts - change.after.rows for stat, change in merged)
            self.corrupt_blocks += sum(stat.corrupt_blocks for stat in stats)

    def of_rewrite(
        self,
        table: HudiTable,
        groups: Sequence[tuple[Sequence[FileSlice], Sequence[WriteStat]]],
        context: JobContext,
    ) -> list[tuple[KeyDigest, list[KeyDigest]]]:
        """Returns for each clustering group the digests of its old base files and of its new files. Raises
        RowsDifferError unless both have the same keys, each equally often. If slices have logs, only numbers of rows
        are compared: the new files must have as many rows as the base files, minus the rows that the logs delete. If
        keys cannot be read, the digests are empty."""
        old = [[item.base_file for item in slices if item.base_file] for slices, _ in groups]
        new = [[_absolute(table, stat.path) for stat in stats] for _, stats in groups]
        paths = [path for side in (old, new) for files in side for path in files]
        with self._reading(table, paths) as storage:
            if storage is None:
                return [(KeyDigest(), [KeyDigest() for _ in stats]) for _, stats in groups]
            sizes = [item.base_bytes for slices, _ in groups for item in slices if item.base_file]
            sizes += [stat.bytes for _, stats in groups for stat in stats]
            found = iter(key_job.digests(table, storage, paths, sizes, context))
            before = [KeyDigest.sum([next(found) for _ in files]) for files in old]
            after = [[next(found) for _ in files] for files in new]
        if any(item.log_files for slices, _ in groups for item in slices):
            self.left_out.add("logs")
        commits = table.commits() if "logs" in self.left_out else []
        _require(
            _of_partition(slices[0].partition, was, KeyDigest.sum(now))
            for (slices, _), was, now in zip(groups, before, after, strict=True)
            if not _holds_all(table, slices, was, KeyDigest.sum(now), commits)
        )
        return list(zip(before, after, strict=True))

    def of_join(self, files: Sequence[JoinedFile]) -> KeyDigest:
        """Returns the number of rows of the old base files, with an empty digest, because reading keys would take
        longer than copying them. The tasks have compared the numbers of rows, and the bytes of copied keys."""
        self.left_out.add("joined")
        self.corrupt_blocks += sum(file.counts.corrupt_blocks for file in files)
        return KeyDigest(sum(file.rows_before for file in files))

    @contextmanager
    def _reading(self, table: HudiTable, paths: Iterable[str]) -> Iterator[Storage | None]:
        """Yields the storage of these files, None if their keys cannot be read, and measures the time."""
        begun = time.monotonic()
        storage = None
        if not table.has_meta_fields:
            # Only the number of rows is compared.
            self.left_out.add("no-meta-fields")
        if not all(path.endswith(".parquet") for path in paths):
            self.left_out.add("base-files-not-parquet")
        else:
            try:
                storage = storage_of(table)
            except RefusedError as error:
                self.left_out.add(error.problem().type)
        yield storage
        self.seconds += time.monotonic() - begun


def _absolute(table: HudiTable, path: str) -> str:
    return f"{table.base_path.rstrip('/')}/{path}"


def _is_explained(stat: WriteStat, change: KeyChange) -> bool:
    """Returns whether a merge can explain this change of a file group's keys. A merge may delete fewer keys than Hudi's
    statistics say, because these count deletes of missing keys as well."""
    lost = change.before.rows + stat.inserts - change.after.rows
    return (
        change.after.rows == stat.rows
        and change.new <= stat.inserts
        and change.gone <= stat.deletes
        and 0 <= lost <= stat.deletes
    )


def _of_file_group(stat: WriteStat, change: KeyChange) -> str:
    return (
        f"partition '{stat.partition}', file group {stat.file_id}: {change.before.rows} rows with key digest"
        f" {change.before} became {change.after.rows} with {change.after}; {change.gone} keys are gone and"
        f" {change.new} new, while the logs delete {stat.deletes} and insert {stat.inserts}, and Hudi wrote {stat.rows}"
    )


def _holds_all(
    table: HudiTable, slices: Sequence[FileSlice], before: KeyDigest, after: KeyDigest, commits: Sequence[Commit]
) -> bool:
    if not any(item.log_files for item in slices):
        return before == after
    as_rows = table.records_operations
    deletes = [deletes_in_logs(item, commits, may_be_rows=as_rows) if item.log_files else 0 for item in slices]
    if after.rows >= before.rows - sum(each or 0 for each in deletes):
        return True
    # The commit of a log may be archived; then nobody knows how many rows the log deletes.
    return None in deletes and (after.rows > 0 or rows.count_in_groups(table, [item.key for item in slices]) == 0)


def _of_partition(partition: str, before: KeyDigest, after: KeyDigest) -> str:
    return f"partition '{partition}': {before.rows} rows with key digest {before} became {after.rows} with {after}"


def _require(details: Iterable[str]) -> None:
    """Raises RowsDifferError if there are details of any difference."""
    found = list(details)
    if found:
        more = f"; and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise RowsDifferError("; ".join(found[:_NAMED]) + more)
