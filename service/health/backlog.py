"""The problem of a compaction backlog that grows.

Every backlog rises until a compaction and then falls. So these checks compare a rise with earlier rises, and compare
the logs that successive compactions leave. `service.health.late_services.compaction_behind` checks the size of a
backlog.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from service.health.next_step import compact
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.lake.snapshot import TableSnapshot
from service.lake.table import TableType
from service.model.formatting import count, duration, size

GROWING = Definition(
    ProblemKind.COMPACTION_BACKLOG_GROWING,
    Severity.WARNING,
    "The compaction backlog grows",
    "Logs are written faster than they are compacted: queries become slower, and each compaction takes longer.",
    "Let the policy compact sooner, or more at once; or give the group more workers.",
)

COMPACTIONS = 4
"""The backlog grows if each of this many compactions in a row left more log bytes than the one before."""

RISES = 5
"""The backlog grows if each of this many polls in a row found more log bytes, and no compaction ran meanwhile."""

RISING_FOR = timedelta(hours=1)

GROWTH = 1.5
"""Least growth of a growing backlog, as a factor. If compactions run, the factor compares the log bytes that the last
of them left with those that the first one left. If none runs, it compares the log bytes of now with the most that an
earlier compaction found."""

LEAST_BYTES = 64 * 1024**2
"""A backlog with fewer log bytes does not matter."""

LEAST_RATIO = 0.05
"""If the ratio of logs to base files is smaller, the backlog costs next to nothing."""

WITHOUT_EARLIER = 2
"""A table that nothing has ever compacted must have this many times the commits of the policy's threshold."""


def growing(table: TableFacts, now: datetime) -> HealthProblem | None:
    """Returns the problem if each compaction leaves more logs than the one before. Also returns it if no compaction
    runs and there are more logs than before any earlier compaction."""
    snapshot = table.snapshot
    if snapshot is None or snapshot.table_type is not TableType.MERGE_ON_READ or not table.is_readable:
        return None
    if not snapshot.cycles or snapshot.totals.log_bytes < LEAST_RATIO * snapshot.totals.base_bytes:
        return None
    return _although_compacted(table, snapshot, now) or _without_compaction(table, snapshot, now)


def _although_compacted(table: TableFacts, snapshot: TableSnapshot, now: datetime) -> HealthProblem | None:
    cycles = [each for each in snapshot.cycles if each.is_whole and each.compacted_at][-COMPACTIONS:]
    left = [each.low_bytes for each in cycles]
    if len(left) < COMPACTIONS or any(later <= earlier for earlier, later in pairwise(left)):
        return None
    since = cycles[0].compacted_at
    if since is None or not _has_grown(left[0], left[-1]):
        return None
    return GROWING.of(
        table.about,
        since,
        f"Each of the last {COMPACTIONS} compactions, in {duration(now - since)}, left more than the one before:"
        f" {_sizes(left)} of logs.",
        {
            "left_bytes": [str(each) for each in left],
            "log_bytes": snapshot.totals.log_bytes,
            "base_bytes": snapshot.totals.base_bytes,
            "compactions": COMPACTIONS,
        },
        step=compact(table.id),
    )


def _without_compaction(table: TableFacts, snapshot: TableSnapshot, now: datetime) -> HealthProblem | None:
    *earlier, cycle = snapshot.cycles
    commits, threshold = snapshot.since_compaction.commits, table.policy.compaction.commits
    if cycle.rises < RISES or now - cycle.rising_since < RISING_FOR:
        return None
    if commits <= (threshold if earlier else WITHOUT_EARLIER * threshold):
        return None
    most = max((each.peak_bytes for each in earlier), default=cycle.low_bytes)
    if not _has_grown(most, cycle.last_bytes):
        return None
    before = (
        f"the most before the last {count(len(earlier), 'compaction')} was {size(most)}"
        if earlier
        else "nothing has ever compacted the table"
    )
    return GROWING.of(
        table.about,
        cycle.rising_since,
        f"{size(cycle.last_bytes)} of logs after {count(commits, 'commit')} without a compaction, and more with each of"
        f" the last {cycle.rises} changes, for {duration(now - cycle.rising_since)}; {before}.",
        {
            "log_bytes": cycle.last_bytes,
            "base_bytes": snapshot.totals.base_bytes,
            "most_before_bytes": most if earlier else None,
            "commits": commits,
            "rises": cycle.rises,
            "enabled": table.policy.compaction.enabled,
        },
        step=compact(table.id),
        remedy=None
        if table.policy.compaction.enabled
        else "Compact the table, and switch compaction on in its policy or in one of its writers.",
    )


def _has_grown(first: int, last: int) -> bool:
    return last - first >= LEAST_BYTES and last >= GROWTH * first


def _sizes(left: Sequence[int]) -> str:
    return ", ".join(size(each) for each in left[:-1]) + f" and {size(left[-1])}"
