"""Problems of the service's view of a table: the table cannot be read, is not polled, or commits were missed."""

from __future__ import annotations

from datetime import datetime, timedelta

from jobs.kinds.registry import READING
from service.health.next_step import Step, diagnose, show_table
from service.health.problem import Definition, HealthProblem, ProblemKind, Severity
from service.health.problem_facts import TableFacts
from service.model.command_line import line
from service.model.formatting import count, duration, first_of
from service.model.storage_errors import FileDamagedError

UNREADABLE = Definition(
    ProblemKind.TABLE_UNREADABLE,
    Severity.CRITICAL,
    "The table cannot be read",
    "Its commits are not announced, its figures are old, and no job starts because of its present state.",
    "Restore the table, or give the service access to it.",
)

NOT_POLLED = Definition(
    ProblemKind.TABLE_NOT_POLLED,
    Severity.CRITICAL,
    "The table is not polled",
    "Its commits are announced late, and its figures are old.",
    "Look at the log of the service: polls may take too long, or hang. GROUNDSKEEPER_LOOK_THREADS allows more at once.",
)

OVERDUE = timedelta(minutes=15)
"""The problem exists if a poll has been due for this time. About once a minute the service polls each table, or checks
it briefly after failures."""

NOT_WRITABLE = Definition(
    ProblemKind.TABLE_NOT_WRITABLE,
    Severity.CRITICAL,
    "The workers may not write to the table",
    "Nothing is compacted, cleaned or archived: every job that writes fails at its beginning.",
    "Let the workers write there; the next job of the table shows whether they can.",
)

MISSED = Definition(
    ProblemKind.COMMITS_MISSED,
    Severity.WARNING,
    "Commits were archived before the service saw them",
    "These commits were not announced. Programs that follow the table by webhooks or events lack their rows.",
    "Have the receivers of the webhooks read the whole table again. Let writers keep more commits on the timeline, or"
    " poll more often.",
)

VANISHED = Definition(
    ProblemKind.COMMITS_VANISHED,
    Severity.CRITICAL,
    "Commits have vanished from the timeline",
    "Readers do not see their rows. Hudi considers their files to be those of failed writes, and may delete them.",
    "Pause the table's jobs, so that none cleans meanwhile. Restore the files of these instants from a backup of "
    ".hoodie, or write the rows again. Find out what deletes files there.",
)

VANISHED_AFTER = timedelta(minutes=10)
"""Instants must be missing for this time. Hudi deletes archived instants in any order, so a poll may still find an
older instant when a newer one is gone."""

_NAMED = 5

SHOWN_FOR = timedelta(days=1)
"""The problem ends after this time, because missed commits cannot be recovered."""


def unreadable(table: TableFacts, now: datetime) -> HealthProblem | None:
    watch, error = table.watch, table.watch.error
    if error is None or not table.is_unreadable:
        return None
    since = watch.failing_since or watch.next_poll_at
    times = f"{count(watch.failures, 'poll')} in a row failed"
    return UNREADABLE.of(
        table.about,
        since,
        f"{error.title}: {error.detail or table.base_path} ({times}, for {duration(now - since)}).",
        {
            "error": error.type,
            "detail": error.detail,
            "failures": watch.failures,
            "base_path": table.base_path,
            "last_read_at": watch.looked_at.isoformat() if watch.looked_at else None,
        },
        step=diagnose(table.id) if error.type == FileDamagedError.type else show_table(table.id),
        remedy=f"{error.hint} Unregister a table that is gone for good.".strip(),
    )


def not_polled(table: TableFacts, now: datetime) -> HealthProblem | None:
    due_at = table.overdue_since
    if due_at is None:
        return None
    late = now - due_at
    return NOT_POLLED.of(
        table.about,
        due_at,
        f"A poll was due {duration(late)} ago.",
        {"overdue_seconds": int(late.total_seconds()), "due_at": due_at.isoformat()},
        step=Step(line("doctor")),
    )


def not_writable(table: TableFacts, now: datetime) -> HealthProblem | None:
    """Returns the problem. Returns None for a table on which no policy starts jobs that write."""
    found = table.snapshot.not_writable if table.snapshot else None
    policy = table.policy
    wants = any(
        (policy.compaction.enabled, policy.cleaning.enabled, policy.archival.enabled, policy.clustering.enabled)
    ) or any(failures.kind not in READING for failures in table.failures)
    if found is None or not wants or policy.paused:
        return None
    return NOT_WRITABLE.of(
        table.about,
        found.since,
        f"{found.title}: {found.detail or table.base_path} (for {duration(now - found.since)}).",
        {"error": found.type, "detail": found.detail, "job_id": found.job_id, "base_path": table.base_path},
        step=diagnose(table.id),
        remedy=f"{found.hint} The table's next job, even one that only reads, shows whether workers can write again.",
    )


def vanished(table: TableFacts, now: datetime) -> HealthProblem | None:
    snapshot = table.snapshot
    since = snapshot.vanished_since if snapshot else None
    if snapshot is None or since is None or not table.is_readable or now - since < VANISHED_AFTER:
        return None
    instants = snapshot.vanished
    return VANISHED.of(
        table.about,
        since,
        f"{count(len(instants), 'commit')} vanished between others on the timeline, neither rolled back nor archived:"
        f" {first_of(instants, _NAMED)}.",
        {"commits": len(instants), "instants": list(instants[:_NAMED])},
        step=Step(line("pause", "--table", table.id)),
    )


def missed(table: TableFacts, now: datetime) -> HealthProblem | None:
    gap_at = table.watch.gap_at
    if gap_at is None or now - gap_at > SHOWN_FOR:
        return None
    return MISSED.of(
        table.about,
        gap_at,
        f"{duration(now - gap_at)} ago a poll found that instants had left the timeline since the last poll before it.",
        {"gap_at": gap_at.isoformat()},
        step=Step(line("webhooks", "list")),
    )
