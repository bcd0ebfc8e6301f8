"""Finds `UPDATE`s and `DELETE`s of Spark SQL without effect, on tables with consistent hashing (Hudi 1.2.0).

Usually a log is named by the instant of the commit that writes it. If a writer has the options of consistent hashing,
however, `HoodieAppendHandle.getInstantTimeForLogFile` names the log by the instant in the locations of its rows, if
they have one. That method assumes that this is the instant of a pending resize: during a resize each row is written
twice, and no reader may see the second copy. But a statement (`UPSERT_PREPPED`, `DELETE_PREPPED`) has read its rows,
and the instants in their locations are the rows' commit times. Readers put a log into the file slice of the instant in
its name. If the file group has a later base file, by a compaction or a resize, nobody reads the log any more. Before
table version 8 logs are named by their base files.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from jobs.format.file_names import parse_base_file_name, parse_log_file_name
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobs.format.stale_writes import Group
    from jobs.hudi.records import Commit
    from jobs.hudi.table import HudiTable


def without_effect(examined: Examined) -> Iterator[Finding]:
    """Finds commits with logs that were older than the base files of their slices when they were written."""
    if found := unseen(examined.table, examined.commits):
        yield Finding(
            "statements-without-effect",
            "Logs of `UPDATE` or `DELETE` are in file slices that no reader reads any more",
            {instant: f"{number} file groups of {instant}" for instant, number in found.items()},
            "The statement has not changed its rows in these file groups, and no later compaction reads these logs.",
            "Set hoodie.spark.sql.optimized.writes.enable=false in such sessions, which `writer-options` prints, and"
            " run the statement again; then run a `repair` job with these instants as `accepted`.",
        )


def unseen(table: HudiTable, commits: Sequence[Commit]) -> dict[str, int]:
    """Returns the commits with such logs that no `repair` has marked, each with the number of their file groups."""
    if table.version < WITH_COMPLETION_TIMES or not table.has_consistent_hashing():
        return {}
    late = {commit.write.instant: logs for commit in commits if (logs := _logs_of_other_instants(commit))}
    if not late:
        return {}
    ended = {commit.write.instant: commit.completed or commit.write.instant for commit in commits}
    marked = {instant for commit in commits for instant in commit.write.repaired}
    bases = _base_files(table, commits)
    found: dict[str, int] = {}
    for instant, logs in late.items():
        hidden = {
            group
            for group, named_by in logs
            if any(ended.get(named_by, named_by) < base < ended[instant] for base in bases.get(group, ()))
        }
        if hidden and instant not in marked:
            found[instant] = len(hidden)
    return found


def _logs_of_other_instants(commit: Commit) -> list[tuple[Group, str]]:
    """Returns the logs of this commit that are named by another instant: the file group and that instant."""
    return [
        ((partition, file_id), log.instant)
        for partition, groups in commit.files.items()
        for file_id, paths in groups.items()
        for path in paths
        if (log := parse_log_file_name(path.rpartition("/")[2])) is not None and log.instant != commit.write.instant
    ]


def _base_files(table: HudiTable, commits: Sequence[Commit]) -> dict[Group, set[str]]:
    """Returns the instants of the base files of each file group, as far as slices and timeline name them. The write
    statistics of logs do not name base files: since table version 8 they give the instant of the commit itself as the
    instant of the previous file."""
    found: defaultdict[Group, set[str]] = defaultdict(set)
    for item in table.file_slices():
        if base := parse_base_file_name(item.base_name):
            found[item.key].add(base.instant)
    for commit in commits:
        for partition, groups in commit.files.items():
            for file_id, paths in groups.items():
                if any(parse_base_file_name(path.rpartition("/")[2]) for path in paths):
                    found[(partition, file_id)] |= {commit.write.instant, commit.previous[(partition, file_id)]}
    return found
