"""The settings that advice may change. If a setting gets a larger value, a table's jobs become cheaper, and an overhead
becomes higher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.lake.table import TableType
from service.model.formatting import count, duration
from service.policies.objective import AdviceSettings
from service.policies.settings import CleaningSettings, CompactionSettings, Trigger
from service.simulation.outcome import Outcome
from service.simulation.table_past import TablePast

_HOUR, _DAY = 3600, 86_400
_SLIGHTLY_MORE = 1.1


@dataclass(frozen=True)
class Advisable:
    """A setting of a kind of job, with the values that are tried. `overhead` returns the overhead that a larger value
    makes higher. `most` returns how high this overhead may be, given the settings of advice and the present overhead.
    `obstacle` returns why a table gets no advice about this setting."""

    setting: str
    steps: Sequence[int]
    overhead: Callable[[Outcome], float | None]
    overhead_is: str
    most: Callable[[AdviceSettings, float], float]
    obstacle: Callable[[TablePast], str | None]
    every: Callable[[int], str] = lambda commits: count(commits, "commit")
    shortly: Callable[[int], str] = str

    @property
    def section(self) -> str:
        return self.setting.partition(".")[0]

    @property
    def member(self) -> str:
        return self.setting.partition(".")[2]


def by_commits_only(settings: CompactionSettings | CleaningSettings) -> bool:
    return settings.cron is None and settings.trigger is Trigger.COMMITS


def _no_compaction(past: TablePast) -> str | None:
    if past.table_type is not TableType.MERGE_ON_READ or not past.policy.compaction.enabled:
        return "the table has no compactions"
    if past.policy.objective.concerns_reads:
        return "the objective says when logs are compacted"
    return (
        None if by_commits_only(past.policy.compaction) else "compactions do not start by the number of commits alone"
    )


def _no_cleaning(past: TablePast) -> str | None:
    if not past.policy.cleaning.enabled:
        return "the table has no cleanings"
    if past.policy.objective.storage_overhead is not None:
        return "the objective says when old versions are deleted"
    return None if by_commits_only(past.policy.cleaning) else "cleanings do not start by the number of commits alone"


def _no_clustering(past: TablePast) -> str | None:
    settings = past.policy.clustering
    if not settings.enabled or past.num_buckets:
        return "the table has no clusterings that merge small files"
    if settings.sort_by:
        return "it is not known what reads save by the order of rows"
    if past.policy.objective.weighs_reads:
        return "the objective says when small files are merged"
    by_share = settings.cron is None and settings.small_file_share is not None
    return None if by_share else "clusterings do not start by the number of small files alone"


ADVISABLE = (
    Advisable(
        "compaction.commits",
        (2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200),
        lambda found: found.read_overhead,
        "read overhead",
        lambda settings, _: settings.read_overhead,
        _no_compaction,
    ),
    Advisable(
        "clustering.min_interval_seconds",
        (_HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 3 * _DAY),
        lambda found: found.small_file_overhead,
        "overhead of small files",
        lambda settings, _: settings.read_overhead,
        _no_clustering,
        duration,
        duration,
    ),
    Advisable(
        "cleaning.commits",
        (2, 3, 5, 10, 20, 30, 50, 80, 120, 200),
        lambda found: found.storage_overhead,
        "storage overhead",
        lambda settings, present: settings.storage_overhead or _SLIGHTLY_MORE * present,
        _no_cleaning,
    ),
)


def named(setting: str | None) -> Advisable | None:
    return next((each for each in ADVISABLE if each.setting == setting), None)
