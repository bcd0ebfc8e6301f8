"""Conditions of a table for which sensors wait. Clients of both kinds can check them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from groundskeeper_client import Call, Client, ClientError, calls
from groundskeeper_client.generated.models import CommitOut, IncidentState, Severity

_WRITING = {"commit", "deltacommit", "replacecommit"}
# Hudi's operations that ingest no rows (1.2).
_SERVICES = {"COMPACT", "LOG_COMPACT", "CLUSTER", "BUCKET_RESCALE", "INDEX"}


class TableUnknownError(ClientError):
    """No table, or more than one, has this id, name or base path."""


class Question(Protocol):
    """A condition. The `calls` are sent in their order, and `answer` gets their answers. `answer` returns None as long
    as the condition is not met."""

    def calls(self) -> Sequence[Call[Any]]: ...

    def answer(self, brought: Sequence[Any]) -> dict[str, Any] | None: ...


@dataclass(frozen=True)
class TableHealthy:
    """The condition that the table has no open incident and no critical problem; if `strict`, also no warning."""

    table_id: str
    strict: bool = False

    def calls(self) -> Sequence[Call[Any]]:
        severities = [Severity.CRITICAL, *([Severity.WARNING] if self.strict else [])]
        return [
            # The table is requested too, because the list of problems is also empty for a table that does not exist.
            calls.get_table(self.table_id),
            calls.list_incidents(table_id=self.table_id, state=[IncidentState.OPEN], limit=1),
            calls.list_problems(table_id=self.table_id, severity=severities, limit=1),
        ]

    def answer(self, brought: Sequence[Any]) -> dict[str, Any] | None:
        table, incidents, problems = brought
        return None if incidents.items or problems.items else {"table_id": table.id, "table": table.name}


@dataclass(frozen=True)
class CommitSeen:
    """The condition that the table has a commit that completed at `since` or later, and that began at the instant
    `instant` or later. Only commits of writers count by default, not those of table services."""

    table_id: str
    since: datetime | None = None
    instant: str | None = None
    of_services: bool = False

    def calls(self) -> Sequence[Call[Any]]:
        return [
            calls.get_table(self.table_id),
            calls.list_commits(table_id=self.table_id, since=self.since, limit=100),
        ]

    def answer(self, brought: Sequence[Any]) -> dict[str, Any] | None:
        for commit in brought[1].items:
            if self._counts(commit):
                return {
                    "table_id": self.table_id,
                    "instant": commit.requested_time,
                    "action": commit.action,
                    "completed_at": commit.completed_at.isoformat(),
                }
        return None

    def _counts(self, commit: CommitOut) -> bool:
        is_late_enough = self.instant is None or commit.requested_time >= self.instant
        is_writers = writes_rows(commit.action, commit.operation, commit.file_groups)
        return is_late_enough and (self.of_services or is_writers)


def writes_rows(action: str, operation: str | None, file_groups: int) -> bool:
    """Returns whether this is a commit of a writer, not of a table service."""
    return action in _WRITING and operation not in _SERVICES and file_groups > 0


def id_of(client: Client, wanted: str) -> str:
    """Returns the id of the table with this id, name or base path. Raises TableUnknownError."""
    path, tables = wanted.rstrip("/"), client.items(calls.list_tables(limit=500))
    fitting = [table.id for table in tables if wanted in (table.id, table.name) or path == table.base_path]
    if len(fitting) != 1:
        how_many = "Several tables have" if fitting else "No table has"
        raise TableUnknownError(f"{how_many} the id, name or base path {wanted!r}.")
    return fitting[0]
