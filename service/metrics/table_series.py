"""Metrics that have a series for each table. The settings select the tables, and their number is limited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from sqlalchemy import Connection

from service.catalog import table_statistics
from service.catalog.ownership import tag_words
from service.health import problem_store
from service.health.problem import Severity
from service.outcome import objective_store
from service.outcome.objective import ObjectiveState
from service.policies import policy_registry

_LABELS = ["table_id", "table", "owner", "tags"]


@dataclass(frozen=True)
class Chosen:
    """The selection of tables that have series. At most `most` of the tables that match a pattern have series; tables
    with the most serious problems come first."""

    patterns: tuple[str, ...] = ()
    most: int = 100


@dataclass(frozen=True)
class TableFigures:
    table_id: str
    name: str
    owner: str
    tags: str
    log_bytes: int
    commits: int
    problems: Mapping[Severity, int]
    objective: ObjectiveState | None = None
    metadata_commits: int | None = None

    @property
    def labels(self) -> list[str]:
        return [self.table_id, self.name, self.owner, self.tags]


@dataclass(frozen=True)
class Series:
    """The tables that have series. `left_out` is the number of tables beyond the limit, `registered` that of all
    tables."""

    tables: Sequence[TableFigures] = field(default_factory=tuple)
    left_out: int = 0
    registered: int = 0


def read(connection: Connection, chosen: Chosen, now: datetime) -> Series:
    """Returns the tables, ordered by the severity of their problems, then by the size of their logs."""
    if not chosen.patterns:
        return Series()
    subjects = policy_registry.subjects(connection)
    backlogs = table_statistics.backlogs(connection)
    objectives = objective_store.states(connection, now)
    problems: dict[str, dict[Severity, int]] = defaultdict(dict)
    for (table_id, severity), number in problem_store.of_tables(connection).items():
        problems[table_id][severity] = number
    found = []
    for table_id, subject in subjects.items():
        if any(map(subject.matches, chosen.patterns)):
            backlog = backlogs.get(table_id)
            # Each tag has a comma before and after it, so that a regular expression can match a single tag.
            tags = "".join(f",{each}" for each in tag_words(subject.tags))
            found.append(
                TableFigures(
                    table_id,
                    subject.name,
                    subject.owner or "",
                    f"{tags}," if tags else "",
                    backlog.log_bytes if backlog else 0,
                    backlog.commits if backlog else 0,
                    problems[table_id],
                    objectives.get(table_id),
                    backlog.metadata_commits if backlog else None,
                )
            )
    found.sort(key=lambda each: (*(-each.problems.get(level, 0) for level in Severity), -each.log_bytes, each.table_id))
    return Series(found[: chosen.most], len(found[chosen.most :]), len(subjects))


def families(series: Series) -> Iterator[Metric]:
    problems = GaugeMetricFamily(
        "groundskeeper_table_problems", "Open problems of a chosen table", labels=[*_LABELS, "severity"]
    )
    logs = GaugeMetricFamily(
        "groundskeeper_table_log_bytes", "Log files of a chosen table that wait for a compaction", labels=_LABELS
    )
    commits = GaugeMetricFamily(
        "groundskeeper_table_delta_commits", "Commits since the last compaction of a chosen table", labels=_LABELS
    )
    metadata_commits = GaugeMetricFamily(
        "groundskeeper_table_metadata_commits",
        "Commits of the metadata table of a chosen table since its last compaction",
        labels=_LABELS,
    )
    overheads = GaugeMetricFamily(
        "groundskeeper_table_read_overhead",
        "Cost of a read of a chosen table with an objective, divided by the cost after all its table services have run",
        labels=_LABELS,
    )
    kept = GaugeMetricFamily(
        "groundskeeper_table_objective_kept_ratio",
        "Share of the last week for which a chosen table's objective was kept",
        labels=_LABELS,
    )
    for each in series.tables:
        if each.objective is not None:
            overheads.add_metric(each.labels, each.objective.overhead)
            kept.add_metric(each.labels, each.objective.week.share)
        for severity in Severity:
            problems.add_metric([*each.labels, severity.value], each.problems.get(severity, 0))
        logs.add_metric(each.labels, each.log_bytes)
        commits.add_metric(each.labels, each.commits)
        if each.metadata_commits is not None:
            metadata_commits.add_metric(each.labels, each.metadata_commits)
    yield from (problems, logs, commits, metadata_commits, overheads, kept)
    yield GaugeMetricFamily(
        "groundskeeper_tables_without_series", "Chosen tables beyond the limit of series", value=series.left_out
    )
