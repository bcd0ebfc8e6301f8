"""Finds `UPDATE`s and `DELETE`s of Spark SQL without effect, on tables with consistent hashing (Hudi 1.2.0).

Usually a log is named by the instant of the commit that writes it. If the writer has the options of consistent hashing
and the locations of its rows have an instant, `HoodieAppendHandle.getInstantTimeForLogFile` takes this instant for that
of a pending resize, whose second copies of rows no reader may see, and names the log by it. But the locations of a
statement's rows, which it has read, have the commit times of these rows (`UPSERT_PREPPED`, `DELETE_PREPPED`). Readers
put a log into the file slice of the instant in its name. If the file group has a later base file, by a compaction or a
resize, nobody reads the log any more. Before table version 8 logs are named by their base files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.format.file_names import parse_log_file_name
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    ended = {commit.write.instant: commit.completed for commit in commits}
    marked = {instant for commit in commits for instant in commit.write.repaired}
    found: dict[str, int] = {}
    for commit in commits:
        instant = commit.write.instant
        hidden = {
            (partition, file_id)
            for partition, groups in commit.files.items()
            for file_id, paths in groups.items()
            for path in paths
            if (log := parse_log_file_name(path.rpartition("/")[2])) is not None
            and log.instant != instant
            and (base := commit.previous[(partition, file_id)]).isdigit()
            and base > (ended.get(log.instant) or log.instant)
        }
        if hidden and instant not in marked:
            found[instant] = len(hidden)
    return found
