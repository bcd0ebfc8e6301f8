"""Logs that a compaction plan misses, whose rows a compaction would lose before table version 8.

Before version 8 a log belongs to the file slice of the instant in its name, and writers that know a plan name their
logs by it. A writer that began before the plan's file existed does not know the plan, and appends to the slice that the
plan reads. Hudi finds a conflict with a plan only if the plan is the later instant
(`SimpleConcurrentFileWritesConflictResolutionStrategy`, 0.15); but the plan's instant is made before its file is
written, and Hudi 0.15 begins without the lock. So nobody executes a plan while such a writer is in flight, and the logs
that it commits are added to the plan. The plan keeps its instant, because the logs of all later writers are named by
this instant.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from jobs.errors import WritersActiveError
from jobs.format import plan_files
from jobs.format.file_names import parse_log_file_name
from jobs.format.table_version import WITH_COMPLETION_TIMES
from jobs.hudi.client import WriteClient
from jobs.hudi.plans import add_logs, plan_of
from jobs.hudi.records import Commit, Instant
from jobs.hudi.table import HudiTable
from jobs.job_context import JobContext
from jobs.protocol.writers import dead_writes

WAIT_SECONDS = 120.0
_POLL_SECONDS, _LONGEST_POLL_SECONDS = 0.2, 2.0
_GRAIN_MS = 1000  # Storages stamp their files to the second.


def may_miss_logs(table: HudiTable) -> bool:
    return table.version < WITH_COMPLETION_TIMES


class UnplannedLogs:
    def __init__(self, table: HudiTable, context: JobContext) -> None:
        self._table = table
        self._context = context

    def wait(self, client: WriteClient, instant: str) -> None:
        """Waits until no writer that may not know the plan is in flight. Raises WritersActiveError after a time limit.
        The commits are read and cached here, so that few have to be read while the lock is held."""
        deadline, pause = time.monotonic() + WAIT_SECONDS, _POLL_SECONDS
        while unaware := self._unaware(client, instant):
            names = ", ".join(item.requested for item in unaware)
            if time.monotonic() > deadline:
                raise WritersActiveError(f"After {WAIT_SECONDS:.0f} s: in flight since before plan {instant}: {names}.")
            self._context.step(f"waiting for writers that began before the plan {instant}")
            self._context.checkpoint()
            time.sleep(pause)
            pause = min(1.5 * pause, _LONGEST_POLL_SECONDS)
        self._table.commits()

    def add(self, instant: str) -> None:
        """Adds missing logs to the plan. The lock must be held, and nobody may be executing the plan."""
        if missed := self._missed(instant):
            add_logs(self._table, instant, missed)

    def require_none(self, instant: str) -> None:
        """Raises WritersActiveError if the executed plan misses a log. Call it before the commit."""
        if missed := self._missed(instant):
            logs = ", ".join(sorted(log for logs in missed.values() for log in logs)[:3])
            raise WritersActiveError(f"Writers have committed logs that the plan {instant} does not read: {logs}.")

    def _unaware(self, client: WriteClient, instant: str) -> list[Instant]:
        pending = self._table.pending_writes()
        if not pending:
            return []
        files = self._table.timeline_files()
        planned = files.get(f"{instant}.compaction.requested")
        dead = set(dead_writes(self._table, client))
        return [
            item
            for item in pending
            if planned
            and item.requested not in dead
            and (begun := files.get(f"{item.requested}.{item.action}.requested"))
            and begun.modified_ms <= planned.modified_ms + _GRAIN_MS
        ]

    def _missed(self, instant: str) -> dict[plan_files.Group, set[str]]:
        return missed_logs(plan_of(self._table, instant), self._table.commits())


def missed_logs(plan: plan_files.PlanContent, commits: Iterable[Commit]) -> dict[plan_files.Group, set[str]]:
    """Returns the names of missed logs by file group: completed commits have written them to slices that the plan
    reads, but the plan does not name them. Only tables before version 8 have such logs."""
    since = plan_files.slices_of(plan)
    read = plan_files.read_by(plan)
    found: dict[plan_files.Group, set[str]] = {}
    for commit in commits:
        for partition, groups in commit.files.items():
            for file_id, paths in groups.items():
                if (group := (partition, file_id)) not in since:
                    continue
                names = {path.rpartition("/")[2] for path in paths} - {name for _, name in read[group]}
                for name in names:
                    if (log := parse_log_file_name(name)) and log.instant == since[group]:
                        found.setdefault(group, set()).add(name)
    return found
