"""The facts in the database from which problems are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from jobs.contract import JobKind, Problem
from jobs.problems.indexes import EXPRESSION_INDEX
from service.catalog.table_events import UNHEALTHY_AFTER
from service.catalog.watch import Watch
from service.delivery.webhook import Webhook
from service.health.problem import About, ObjectType
from service.incidents.incident import Incident
from service.lake.snapshot import TableSnapshot
from service.outcome.objective import ObjectiveState
from service.policies.policy import Pause, Policy
from service.queue.breaker import Breaker
from service.queue.job import Job
from service.queue.lock_sighting import LockSighting
from service.queue.worker import Worker
from service.registration.catalogs.store import CatalogState
from service.scheduling.decision import Decision


@dataclass(frozen=True)
class Failures:
    """The jobs of one kind on one table that failed since the last successful one."""

    kind: JobKind
    count: int
    since: datetime
    last_at: datetime
    last_job_id: str
    error: Problem | None


@dataclass(frozen=True)
class TableFacts:
    """The facts about one table."""

    id: str
    name: str
    base_path: str
    watch: Watch
    policy: Policy = field(default_factory=Policy)
    snapshot: TableSnapshot | None = None  # Without partitions; None before the first poll.
    overdue_since: datetime | None = None  # When its poll was due, if that is long ago (`polling.OVERDUE`).
    decisions: Mapping[JobKind, Decision] = field(default_factory=dict)  # The latest of each kind, if not too old.
    incidents: Sequence[Incident] = ()
    failures: Sequence[Failures] = ()
    unsettled: Sequence[Job] = ()
    held: Sequence[Job] = ()  # Jobs at workers, and jobs that are queued because of the table's lock.
    breakers: Sequence[Breaker] = ()
    objective: ObjectiveState | None = None  # None unless the last check found the objective missed.
    lock: LockSighting | None = None  # The last check of the lock, if the lock holds jobs back.

    @cached_property
    def about(self) -> About:
        return About(ObjectType.TABLE, self.id, self.name)

    @cached_property
    def is_unreadable(self) -> bool:
        """Whether the last polls failed. Errors that may be temporary count only from the third failure in a row on."""
        error, failures = self.watch.error, self.watch.failures
        return error is not None and failures >= (UNHEALTHY_AFTER if error.retriable else 1)

    def is_refused(self, error: Problem | None) -> bool:
        """Whether this error of a job says that workers may not write to the table. Another kind of problem reports
        such a refusal."""
        refused = self.snapshot.not_writable if self.snapshot else None
        return error is not None and refused is not None and error.type == refused.type

    @property
    def is_cleaning_refused(self) -> bool:
        """Whether a cleaning is due, but every cleaning would be refused."""
        decision = self.decisions.get(JobKind.CLEANING)
        return decision is not None and decision.code == EXPRESSION_INDEX.type

    @cached_property
    def is_readable(self) -> bool:
        """Whether there is a snapshot, and it is current."""
        return self.snapshot is not None and not self.is_unreadable


@dataclass(frozen=True)
class Backlog:
    """The jobs of one worker group that could start if a worker were free."""

    group: str
    jobs: int
    oldest: datetime


@dataclass(frozen=True)
class Lost:
    """The attempts that ended because their worker disappeared."""

    attempts: int
    last_at: datetime


@dataclass(frozen=True)
class BlockedDelivery:
    """The first delivery of a webhook that has failed and waits for its next attempt."""

    delivery_id: str
    event_type: str
    tries: int
    answer: str  # The last answer, in words.


@dataclass(frozen=True)
class WebhookFacts:
    """The facts about one webhook."""

    webhook: Webhook
    pending: int = 0
    given_up: int = 0
    given_up_since: datetime | None = None  # First end of a delivery that was given up and not replayed.
    replay_since: datetime | None = None  # Time of the first event whose delivery was given up and not replayed.
    blocked: BlockedDelivery | None = None


@dataclass(frozen=True)
class Facts:
    """Facts of the whole installation."""

    tables: Sequence[TableFacts] = ()
    backlogs: Sequence[Backlog] = ()
    workers: Sequence[Worker] = ()
    lost: Mapping[str, Lost] = field(default_factory=dict)  # The attempts that lost workers held, by worker id.
    webhooks: Sequence[WebhookFacts] = ()
    pause: Pause | None = None
    catalogs: Sequence[CatalogState] = ()
