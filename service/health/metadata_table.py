"""Problems of the metadata table: the table is not compacted, or lacks commits."""

from __future__ import annotations

from datetime import datetime

from jobs.contract import JobKind
from service.health.next_step import diagnose, start
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.model.formatting import count, duration, first_of, size

BEHIND = Definition(
    ProblemKind.METADATA_TABLE_BEHIND,
    Severity.WARNING,
    "The metadata table is not compacted",
    "Readers and writers merge its log files each time, so plans and commits become slower.",
    "Compact the metadata table, or switch `metadata_table` on in the table's policy.",
)

INCOMPLETE = Definition(
    ProblemKind.METADATA_TABLE_INCOMPLETE,
    Severity.CRITICAL,
    "The metadata table lacks commits",
    "Readers that use the metadata table do not see the rows of these commits.",
    "Find the writer that has `hoodie.metadata.enable=false`, stop all writers, and let a `metadata_table` job rebuild"
    " it.",
)

COMMITS = 30
"""Number of deltacommits since the last compaction from which this is a problem. Hudi's writers compact after ten
deltacommits (`hoodie.metadata.compact.max.delta.commits`), unless an instant that has been pending for long prevents
this."""

_NAMED = 5


def behind(table: TableFacts, _now: datetime) -> HealthProblem | None:
    found = table.snapshot.metadata_table if table.snapshot else None
    if found is None or not table.is_readable:
        return None
    settings = table.policy.metadata_table
    allowed = min(COMMITS, 2 * settings.commits) if settings.enabled else COMMITS
    if found.commits <= allowed:
        return None
    decision = table.decisions.get(JobKind.METADATA_TABLE)
    why = f" The policy: {decision.because}." if decision and settings.enabled else ""
    pending = (
        f" {count(found.pending, 'instant')} pending there for up to {duration(found.read_at - found.pending_since)}."
        if found.pending_since
        else ""
    )
    return BEHIND.of(
        table.about,
        found.read_at,
        f"{count(found.commits, 'deltacommit')} since its last compaction, more than {allowed}, with"
        f" {size(found.log_bytes)} in {count(found.log_files, 'log file')}.{pending}{why}",
        {
            "commits": found.commits,
            "allowed": allowed,
            "log_files": found.log_files,
            "log_bytes": found.log_bytes,
            "pending": found.pending,
        },
        step=start(table.id, "Compact the metadata table", JobKind.METADATA_TABLE, {"action": "compact"}),
    )


def incomplete(table: TableFacts, _now: datetime) -> HealthProblem | None:
    found = table.snapshot.metadata_table if table.snapshot else None
    if found is None or not table.is_readable or not found.missing:
        return None
    return INCOMPLETE.of(
        table.about,
        found.read_at,
        f"These completed commits are not in the metadata table: {first_of(found.missing, _NAMED)}.",
        {"instants": list(found.missing[:_NAMED])},
        step=diagnose(table.id),
    )
