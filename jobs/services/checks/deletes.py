"""Finds deletes of writers that still had an old number of buckets. Such a writer looks for its rows in buckets that do
not have them. Other checks cannot find such a write: it names only file groups that exist, and afterwards no row is in
a wrong bucket."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from jobs.contract import JobKind
from jobs.format.bucket_rules import BucketChange
from jobs.format.file_names import parse_base_file_name
from jobs.format.meta_columns import COMMIT_TIME, PARTITION_PATH, RECORD_KEY
from jobs.format.stale_writes import RESCALE, StaleWrite, dated
from jobs.hudi import hashing_config, history, rows
from jobs.hudi.jvm import translated
from jobs.hudi.records import Touched
from jobs.hudi.stale_slices import Unread, deleted_in_logs, deleted_keys, unread_deletes
from jobs.kinds.results import Cure
from jobs.protocol.file_group_change import Switch, Verdict
from jobs.services.checks import row_counts
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from jobs.format.bucket_rules import BucketRules
    from jobs.format.stale_writes import CompletedWrite, Group
    from jobs.hudi.records import Commit
    from jobs.hudi.stale_slices import DeletedKey
    from jobs.hudi.table import HudiTable


_REPAIR = "Restart it, and repair its commits."
_DELETE_AGAIN = (
    "Restart it with the table's number of buckets, and let it delete these keys again. No job can do so: a `repair` is"
    " refused (`soft-deletes`), because a delete is a row of a log here (`_hoodie_operation`)."
)


def without_effect(examined: Examined) -> Iterator[Finding]:
    """Finds deletes in base files that have removed no row. Examines commits after a change of the number of buckets,
    if their file groups do not show that the writer knew of the change."""
    yield from _without_effect(without_rows(examined.table, examined.commits))


def archived(examined: Examined) -> Iterator[Finding]:
    """Finds deletes in wrong buckets in archived commits since the last change of the number of buckets. Deletes in
    logs are found by their keys. Deletes in base files are found only if the commit is proved to have used an old
    number: any other delete that has removed no row may be of a key that the table did not have."""
    table = examined.table
    if not hashing_config.is_in_force(table):
        return
    commits = history.since_last_change(table)
    suspects = _suspects(table, commits, proved=not table.is_merge_on_read)
    gone = [each for each in suspects if each.write.is_archived]
    if table.is_merge_on_read:
        yield from _in_logs(table, gone, commits)
    else:
        yield from _without_effect(_ineffective(gone, commits))


def _without_effect(found: Mapping[str, int]) -> Iterator[Finding]:
    if found:
        yield Finding(
            "deletes-without-effect",
            "Deletes after a change of the number of buckets have removed no row",
            {instant: f"{count or 'all'} deletes of {instant}" for instant, count in found.items()},
            "If the writer still had the old number of buckets, it has looked in the wrong buckets, and readers still "
            "see the rows. If the table did not have these keys, nothing is wrong.",
            "No file names the keys. Run these deletes again with the table's number of buckets; then run a `repair` "
            "job with these instants as `accepted`.",
        )


def in_wrong_buckets(examined: Examined) -> Iterator[Finding]:
    """Finds deletes in logs of buckets that do not have their keys, in commits after a change of the number of buckets.
    Reads the logs in which these commits have deleted rows."""
    yield from _in_logs(examined.table, list(_suspects(examined.table, examined.commits)), examined.commits)


def _in_logs(table: HudiTable, suspects: Sequence[Commit], commits: Sequence[Commit]) -> Iterator[Finding]:
    # Hudi's statistics do not count deletes that are written as rows.
    are_rows = bool(suspects) and table.records_operations
    writes = [commit.write for commit in suspects if are_rows or any(commit.deleted.values())]
    found = misplaced(table, writes, commits)
    counts = Counter(each.instant for each in (_in_vain(table, found) if are_rows else found))
    if counts:
        yield Finding(
            "deletes-in-wrong-bucket",
            "Keys were deleted in buckets to which they do not belong",
            {instant: f"{count} deletes of {instant}" for instant, count in counts.items()},
            "Readers still see the rows of these keys.",
            "A writer still had an old number of buckets. " + (_DELETE_AGAIN if are_rows else _REPAIR),
            None if are_rows else Cure(kind=JobKind.REPAIR, params={"instants": sorted(counts)}),
        )


def without_rows(table: HudiTable, commits: Sequence[Commit]) -> dict[str, int]:
    """Returns the commits with deletes that removed no row, each with their number; 0 if a `DELETE` wrote no file.

    Hudi counts a delete whether or not its file has the key. So for each such delete the new base file has one row more
    than follows from the previous base file's rows, the inserts and the deletes (`HoodieWriteStat`). A `DELETE` leaves
    out the keys of buckets without a file group (`HoodieDeleteHelper`, 1.2.0).
    """
    return _ineffective(_suspects(table, commits), commits)


def without_rows_after(
    commits: Sequence[Commit], instants: Collection[str], partitions: Collection[str]
) -> dict[str, int]:
    """Does what `without_rows` does, for deletes in these partitions by commits after the first of these instants. The
    key of such a delete may have had its only row in a wrong bucket."""
    first = min(instants, default=None)
    repaired = {instant for commit in commits for instant in commit.write.repaired}
    later = [
        replace(each, deleted={group: count for group, count in each.deleted.items() if group[0] in partitions})
        for each in commits
        if first is not None
        and each.write.instant > first
        and each.write.brings_rows
        and each.write.instant not in repaired
        and not each.write.repaired
    ]
    return _ineffective(later, commits)


def _in_vain(table: HudiTable, found: Sequence[DeletedKey]) -> list[DeletedKey]:
    """Returns the deletes of keys that the table still has, in rows that are older than the delete. The other deletes
    need no repair, even if no repair has marked them, because the writer has deleted their keys again."""
    if not found:
        return []
    with translated("looking for rows that deletes have missed"):
        frame = rows.of_partitions(table, {each.partition for each in found})
        deleted = [(each.partition, each.key, each.instant) for each in found]
        names = f"`{PARTITION_PATH}` string, `{RECORD_KEY}` string, deleted_by string"
        deletes = frame.sparkSession.createDataFrame(deleted, names)
        key = [PARTITION_PATH, RECORD_KEY]
        older = frame.select(*key, COMMIT_TIME).join(deletes, key).where(f"`{COMMIT_TIME}` < deleted_by")
        alive = {tuple(row) for row in older.select(*key, "deleted_by").collect()}
    return [each for each, row in zip(found, deleted, strict=True) if row in alive]


def _ineffective(suspects: Iterable[Commit], commits: Sequence[Commit]) -> dict[str, int]:
    rows = {path.rpartition("/")[2]: count for commit in commits for path, count in commit.rows.items()}
    names = _names(commits)
    found = {}
    for commit in suspects:
        count = 0
        for group, deleted in commit.deleted.items():
            now = names.get((group, commit.write.instant))
            before = names.get((group, commit.previous.get(group, "")))
            if deleted and now in rows and before in rows:
                count += max(0, rows[now] - rows[before] - commit.inserted.get(group, 0) + deleted)
        if count or (commit.write.operation == "DELETE" and not commit.files):
            found[commit.write.instant] = count
    return found


def misplaced(table: HudiTable, writes: Sequence[CompletedWrite], commits: Sequence[Commit]) -> list[DeletedKey]:
    """Returns the keys that these writes deleted in logs of wrong buckets, where the deletes have no effect.

    Writes before the last change of the number are left out: buckets that were right for them are not right now.
    """
    since = max((number for number, commit in enumerate(commits) if commit.write.operation == RESCALE), default=-1)
    present = {commit.write.instant for commit in commits[since + 1 :]}
    groups = [
        StaleWrite(each.instant, each.operation, dict.fromkeys(each.written, ""))
        for each in writes
        if each.instant in present
    ]
    return _by_place(table, deleted_in_logs(table, groups, commits), wrong=True)


class Later:
    """Deletes outside of wrong buckets by the commits after the repaired ones. If a field orders rows, deletes of
    earlier commits in logs that are not compacted count as well, because a delete with a greater ordering value also
    removes a later row. Most deletes are read when this object is created. `read` is called under the table's lock; so
    that writers do not wait long, it reads only the deletes of commits that came since."""

    def __init__(self, table: HudiTable, instants: Collection[str], commits: Sequence[Commit]) -> None:
        self._table = table
        self._by_value = table.is_merge_on_read and table.orders_by_field
        self._read: dict[tuple[str, bool], list[DeletedKey]] = {}
        self._unread: dict[str, list[Unread]] = {}
        self.read(instants, commits)

    @property
    def unread(self) -> list[Unread]:
        """The deletes whose keys cannot be read any more, of these commits and of the first repaired one."""
        return [each for of_commit in self._unread.values() for each in of_commit]

    def read(self, instants: Collection[str], commits: Sequence[Commit]) -> list[DeletedKey]:
        """Returns the keys that commits after the first of these instants deleted outside of wrong buckets, and earlier
        deletes with ordering values."""
        first = min(instants, default=None)
        if first is None:
            return []
        found = []
        logs = {name for item in self._table.file_slices() for name in item.log_files} if self._by_value else set()
        for each in commits:
            if each.write.instant == first:
                self._unread[first] = unread_deletes(self._table, each)
            is_later = each.write.instant > first
            if not each.write.brings_rows or not (is_later or each.file_names & logs):
                continue
            key = (each.write.instant, is_later)
            if key not in self._read:
                self._read[key] = deleted_keys(self._table, each if is_later else _only(each, logs))
                if is_later and dated(each.write.instant, each.extra) > first:
                    self._unread[each.write.instant] = unread_deletes(self._table, each)
            found += [item for item in self._read[key] if is_later or item.ordering is not None]
        return _by_place(self._table, found, wrong=False)


def _only(commit: Commit, names: Collection[str]) -> Commit:
    """Returns the commit with the deletes of the file groups in which it wrote one of these files."""
    written = {
        (partition, file_id)
        for partition, groups in commit.files.items()
        for file_id, paths in groups.items()
        if any(path.rpartition("/")[2] in names for path in paths)
    }
    return replace(commit, deleted={group: count for group, count in commit.deleted.items() if group in written})


def _by_place(table: HudiTable, found: Sequence[DeletedKey], *, wrong: bool) -> list[DeletedKey]:
    """Returns the deletes that were made in wrong buckets, or, unless `wrong`, in right ones. If the table has no
    number of buckets (consistent hashing or another index), no delete was made in a wrong bucket."""
    rules, index = table.bucket_rules(), table.declared.index
    if rules is None or index is None:
        return [] if wrong else [*found]
    keys, partitions, files = (
        pa.array([getattr(each, name) for each in found], pa.string()) for name in ("key", "partition", "file_id")
    )
    judged = row_counts.misplaced(keys, partitions, files, rules, index.hash_fields)
    return [each for each, is_wrong in zip(found, judged, strict=True) if is_wrong == wrong]


def _suspects(table: HudiTable, commits: Sequence[Commit], *, proved: bool = False) -> Iterator[Commit]:
    """Yields the commits after a change of the number of buckets that may have used an older number. Repaired commits
    and the repairs are left out. If `proved`, yields only commits whose deletes show that they did."""
    if not hashing_config.is_in_force(table):
        return
    index = table.declared.index
    hashes_keys = index is not None and {*table.record_key_fields} <= {*index.hash_fields}
    enough = {Verdict.STALE} if proved else {Verdict.STALE, Verdict.OPEN}
    repaired = {instant for commit in commits for instant in commit.write.repaired}
    switch = None
    for commit in commits:
        write = commit.write
        if write.operation == RESCALE:
            # The text with the dot sorts after the instant, so `rules_before` returns the config of this instant first.
            found = hashing_config.rules_before(table, f"{write.instant}.")
            changed = BucketChange(found[1], found[0]) if len(found) > 1 else None
            switch = Switch(frozenset(), changed, earlier=found[1:], hashes_keys=hashes_keys) if changed else None
        elif switch and write.brings_rows and not write.repaired and write.instant not in repaired:
            groups = {
                path: {file_id: commit.deleted.get((path, file_id), 0) if proved else 0 for file_id in files}
                for path, files in commit.files.items()
            }
            # A commit without file groups may be a delete whose old bucket no longer exists.
            if (groups or _had_more(switch)) and switch.verdict(Touched(groups, {})) in enough:
                yield commit


def _had_more(switch: Switch) -> bool:
    """Returns whether a partition may have had buckets that it no longer has."""
    now = switch.buckets.new if switch.buckets else None
    return now is not None and any(max(_numbers(rules)) > min(_numbers(now)) for rules in switch.earlier)


def _numbers(rules: BucketRules) -> list[int]:
    return [number for _, number in rules.rules] or [rules.default]


def _names(commits: Sequence[Commit]) -> dict[tuple[Group, str], str]:
    """Returns the names of base files by file group and instant."""
    return {
        ((partition, file_id), base.instant): name
        for commit in commits
        for partition, groups in commit.files.items()
        for file_id, paths in groups.items()
        for name in (path.rpartition("/")[2] for path in paths)
        if (base := parse_base_file_name(name))
    }
