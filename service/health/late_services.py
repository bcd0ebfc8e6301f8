"""Problems of a table's services: services that are behind, and policies that cannot act."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from jobs.contract import JobKind
from jobs.job_params import OnActiveWriters
from jobs.problems.indexes import EXPRESSION_INDEX
from service.access.errors import SecretUnreadableError
from service.health.next_step import Step, clean, compact, roll_back, set_policy, show_table
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.lake.snapshot import Since, TableSnapshot
from service.lake.table import TableType
from service.model.command_line import Choice, assigned, line
from service.model.formatting import count, duration, size
from service.model.job_errors import FenceLosesFlinkError
from service.policies.settings import GIB, Mode
from service.scheduling.decision import Decision, Verdict

COMPACTION_BEHIND = Definition(
    ProblemKind.COMPACTION_BEHIND,
    Severity.WARNING,
    "Compaction is far behind",
    "Every query of the current rows has to merge the log files, and becomes slower with each commit.",
    "Compact the table. If this comes back, let the policy compact sooner, or add workers.",
)

CLEANING_BEHIND = Definition(
    ProblemKind.CLEANING_BEHIND,
    Severity.WARNING,
    "Cleaning is far behind",
    "File versions that no retained commit needs take up space.",
    "Clean the table.",
)

BEHIND = 3
"""A service is far behind once there are this many times the commits of the policy's threshold."""

LOGS_OF_BASE = 1.0
"""Compaction is far behind if log bytes reach this multiple of base bytes, whatever the policy says."""

FREED_OF_LIVE = 3.0
"""Cleaning is far behind if bytes out of use reach this multiple of those in use, whatever the policy says."""

LEAST_BYTES = GIB
"""The ratios do not count if there are fewer log bytes, or fewer bytes out of use."""

CANNOT_ACT = Definition(
    ProblemKind.POLICY_CANNOT_ACT,
    Severity.WARNING,
    "The policy asks for a table service that can never run",
    "The table service seems to be on, but never runs.",
    "Change the policy or the table, as the reason says.",
)

_CANNOT_ACT = frozenset({"plan-unusable", SecretUnreadableError.type, FenceLosesFlinkError.type, EXPRESSION_INDEX.type})
"""Codes of decisions that stay the same until somebody changes the policy or the table."""

HELD_UP = Definition(
    ProblemKind.JOBS_HELD_UP,
    Severity.WARNING,
    "A job is due and does not start",
    "Until the job starts, this table service is not done.",
    "The reason says what the job waits for; GET /v1/tables/{id}/decisions has the history.",
)

HELD_UP_AFTER = timedelta(hours=6)

_EXPLAINED = frozenset({"incident-open", "failed-before", "gained-nothing", "outside-window", "too-soon"}) | _CANNOT_ACT
"""Codes of waits that are intended, or that are shown as another kind of problem."""

WARNED = Definition(
    ProblemKind.POLICY_WARNING,
    Severity.NOTICE,
    "A policy warns",
    "The policy continues to work, but the owner of the table should know of the warning.",
    "The warning says what is wrong; GET /v1/tables/{id}/decisions has the history.",
)

CURRENT = timedelta(hours=3)
"""Decisions that are older than this do not count, because the service decides about each table at least once an
hour."""


def compaction_behind(table: TableFacts, _now: datetime) -> HealthProblem | None:
    snapshot = table.snapshot
    if snapshot is None or snapshot.table_type is not TableType.MERGE_ON_READ or not table.is_readable:
        return None
    totals = snapshot.totals
    if not totals.log_bytes:
        return None
    settings, since = table.policy.compaction, snapshot.since_compaction
    is_heavy = totals.log_bytes >= max(LEAST_BYTES, LOGS_OF_BASE * totals.base_bytes)
    if not is_heavy and since.commits < BEHIND * settings.commits:
        return None
    return COMPACTION_BEHIND.of(
        table.about,
        _begin(snapshot, since),
        f"{count(since.commits, 'commit')} since the last compaction (threshold {settings.commits}), with"
        f" {size(totals.log_bytes)} of logs beside {size(totals.base_bytes)} of base files."
        f"{_why(table, JobKind.COMPACTION, is_on=settings.enabled)}",
        {
            "commits": since.commits,
            "threshold": settings.commits,
            "log_bytes": totals.log_bytes,
            "base_bytes": totals.base_bytes,
            "enabled": settings.enabled,
        },
        step=compact(table.id),
    )


def cleaning_behind(table: TableFacts, _now: datetime) -> HealthProblem | None:
    snapshot = table.snapshot
    if snapshot is None or not table.is_readable or not snapshot.totals.freed_files:
        return None
    if table.is_cleaning_refused:  # `cannot_act` reports this case.
        return None
    totals = snapshot.totals
    settings, since = table.policy.cleaning, snapshot.since_cleaning
    live = totals.base_bytes + totals.log_bytes
    is_heavy = totals.freed_bytes >= max(LEAST_BYTES, FREED_OF_LIVE * live)
    # Old file versions of retained commits are not in use either, but a cleaning keeps them.
    allowed = max(BEHIND * settings.commits, settings.commits + settings.retain)
    if since.commits < (settings.commits + settings.retain if is_heavy else allowed):
        return None
    return CLEANING_BEHIND.of(
        table.about,
        _begin(snapshot, since),
        f"{count(since.commits, 'commit')} since the last cleaning (threshold {settings.commits}), with"
        f" {count(totals.freed_files, 'file')} out of use, {size(totals.freed_bytes)} beside {size(live)} in use."
        f"{_why(table, JobKind.CLEANING, is_on=settings.enabled)}",
        {
            "commits": since.commits,
            "threshold": settings.commits,
            "freed_files": totals.freed_files,
            "freed_bytes": totals.freed_bytes,
            "live_bytes": live,
            "enabled": settings.enabled,
        },
        step=clean(table.id, settings),
    )


def cannot_act(table: TableFacts, _now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each table service. A clustering that is impossible because of the table's buckets is
    shown at once, without waiting for a decision."""
    snapshot, clustering = table.snapshot, table.policy.clustering
    is_idle = clustering.enabled and not clustering.sort_by and not clustering.expansion_factor
    if snapshot is not None and is_idle and snapshot.num_buckets:
        yield CANNOT_ACT.of(
            table.about,
            _since(table, JobKind.CLUSTERING) or snapshot.taken_at,
            "Clustering is on without `clustering.sort_by`. The files of buckets cannot be merged, so clustering could"
            " only sort them.",
            {"service": JobKind.CLUSTERING.value, "code": "no-sort-columns", "num_buckets": snapshot.num_buckets},
            step=set_policy(table.id, ('clustering.sort_by=["', Choice("COLUMN"), '"]')),
            part=JobKind.CLUSTERING.value,
            remedy="Set `clustering.sort_by` in the policy, or switch clustering off.",
        )
    for kind, decision in table.decisions.items():
        is_obstacle = (
            kind is JobKind.BUCKET_EXPANSION
            and decision.verdict is Verdict.SUGGEST
            and table.policy.bucket_expansion.mode is Mode.AUTO
        )
        if decision.code in _CANNOT_ACT or is_obstacle:
            yield CANNOT_ACT.of(
                table.about,
                decision.first_at,
                f"{_name(kind)}: {decision.because}.",
                {"service": kind.value, "code": decision.code, "decided_at": decision.last_at.isoformat()},
                step=_possible(table, kind, decision),
                part=kind.value,
            )


def held_up(table: TableFacts, now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each table service."""
    for kind, decision in table.decisions.items():
        since = decision.wanted_since
        if decision.verdict is not Verdict.WAIT or since is None or decision.code in _EXPLAINED:
            continue
        if now - since >= HELD_UP_AFTER:
            yield HELD_UP.of(
                table.about,
                since,
                f"{_name(kind)} has been due for {duration(now - since)}: {decision.because}.",
                {"service": kind.value, "code": decision.code, "waits_seconds": int((now - since).total_seconds())},
                step=show_table(table.id),
                part=kind.value,
            )


def warned(table: TableFacts, _now: datetime) -> Iterator[HealthProblem]:
    """Yields one problem for each table service. `service.health.timeline` finds the problems of old plans and
    incidents."""
    for kind, decision in table.decisions.items():
        if kind is not JobKind.REPAIR and decision.warning and "been pending for up to" not in decision.warning:
            yield WARNED.of(
                table.about,
                decision.first_at,
                f"{_name(kind)}: {decision.warning}",
                {"service": kind.value, "code": decision.code, "decided_at": decision.last_at.isoformat()},
                step=_heeded(table, kind, decision.code, decision.warning),
                part=kind.value,
            )


def _possible(table: TableFacts, kind: JobKind, decision: Decision) -> Step:
    """Returns the step that removes the obstacle, or changes the policy."""
    pending = table.snapshot.pending if table.snapshot else ()
    # The decision's reason names exactly the plans that no job can execute.
    unusable = [each.requested_time for each in pending if each.is_plan and each.requested_time in decision.because]
    if decision.code == "plan-unusable" and unusable:
        return roll_back(table.id, unusable[0])
    if decision.code == FenceLosesFlinkError.type:
        return set_policy(table.id, assigned(f"{kind.value}.on_active_writers", OnActiveWriters.WAIT.value))
    if decision.verdict is Verdict.SUGGEST:
        return set_policy(table.id, assigned(f"{kind.value}.mode", Mode.SUGGEST.value))
    return show_table(table.id)


def _heeded(table: TableFacts, kind: JobKind, code: str, warning: str) -> Step:
    # The result of the last job has the reason.
    if " withheld, since " in warning:
        return Step(line("jobs", "list", "--table", table.id, "--kind", kind.value))
    if kind is JobKind.CLEANING and code == "off":
        return set_policy(table.id, assigned("cleaning.enabled", True))
    return show_table(table.id)


def _begin(snapshot: TableSnapshot, since: Since) -> datetime:
    return since.at or snapshot.first_commit_at or snapshot.taken_at


def _since(table: TableFacts, kind: JobKind) -> datetime | None:
    decision = table.decisions.get(kind)
    return decision.first_at if decision else None


def _why(table: TableFacts, kind: JobKind, *, is_on: bool) -> str:
    if not is_on:
        return f" The policy has {kind.value} switched off."
    decision = table.decisions.get(kind)
    return f" The policy: {decision.because}." if decision else ""


def _name(kind: JobKind) -> str:
    return kind.value.replace("_", " ").capitalize()
