"""A table with stale writes and the incidents that the service opens for them, and the jobs that it then starts."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from jobs.contract import JobKind, Outcome, Result
from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher
from service.db.engine import reading
from service.events.database import Database
from service.events.event import EventType
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.model.backoff import BackOff
from service.queue import job_store, leases, submission
from service.queue.leases import LeaseConfig
from service.queue.submission import JobRequest
from service.scheduling import decision_store, scheduler
from tests.integration.control_plane.watching import A, B, Watched
from tests.support.small_table import SmallTable, base_file, bucket_id, instant_at, log_file

if TYPE_CHECKING:
    from pathlib import Path

    from service.queue.job import Job
    from service.scheduling.decision import Verdict

STALE, OLD, LATE = IncidentKind.STALE_WRITE, IncidentKind.OLD_NUMBER, IncidentKind.LATE_FILES
OPEN, SUSPECTED = IncidentState.OPEN, IncidentState.SUSPECTED
REPAIRED, CLEARED = IncidentState.REPAIRED, IncidentState.CLEARED
NEW_A, NEW_B = bucket_id(0, tail=2), bucket_id(1, tail=2)


class Story:
    """A table of version 6 or 9 with two buckets, whose instants are a second apart."""

    def __init__(self, watched: Watched, base: Path, version: int = 9) -> None:
        self.watched = watched
        self.table = SmallTable(base / "t", version=version)
        self.at = watched.clock()
        self.commit({A: 10, B: 10}, in_base=True)
        self.id = ""

    def instant(self, *, hours: float = 0) -> str:
        self.at += timedelta(seconds=1, hours=hours)
        return instant_at(self.at)

    def commit(self, buckets: dict[str, int], *, hours: float = 0, in_base: bool = False, **more: Any) -> str:
        """Commits logs or base files with this total number of rows."""
        instant = self.instant(hours=hours)
        write = base_file if in_base else log_file
        files = {more.pop("partition", "p"): {write(file_id, instant): 10 for file_id in buckets}}
        self._complete(instant, files, rows=max(buckets.values(), default=0), **more)
        return instant

    def _complete(self, instant: str, files: dict[str, dict[str, int]], **more: Any) -> None:
        # The time is long before the clock of the tests, because times order the timeline before version 8.
        modified = self.at.timestamp()
        self.at += timedelta(seconds=1)
        self.table.commit(instant, files, completed=instant_at(self.at), modified=modified, **more)

    def replace(self, old: tuple[str, ...], new: tuple[str, ...], operation: str = "CLUSTER", **more: Any) -> str:
        return self.commit(
            dict.fromkeys(new, 10),
            in_base=True,
            action="replacecommit",
            operation=operation,
            replaced={"p": list(old)},
            **more,
        )

    def expand(self, *, hours: float = 0) -> str:
        """Expands from two to four buckets."""
        new = tuple(bucket_id(number, tail=2) for number in range(4))
        instant = self.replace((A, B), new, "BUCKET_RESCALE", hours=hours)
        self.table.hashing_config("00000000000000", 2)
        self.table.hashing_config(instant, 4)
        return instant

    def contract(self) -> str:
        """Contracts from two buckets to one."""
        instant = self.replace((A, B), (NEW_A,), "BUCKET_RESCALE")
        self.table.hashing_config("00000000000000", 2)
        self.table.hashing_config(instant, 1)
        return instant

    def register(self) -> None:
        self.id = self.watched.register(self.table, buckets=2)
        self.poll()

    def poll(self) -> None:
        self.watched.poll()

    @property
    def incidents(self) -> list[Incident]:
        return self.watched.incidents(self.id)

    @property
    def found(self) -> list[tuple[IncidentKind, IncidentState, str]]:
        return [(each.kind, each.state, each.instant) for each in self.incidents]

    @property
    def published(self) -> list[str]:
        """Returns the types of the events about the table's health."""
        kinds = (EventType.TABLE_UNHEALTHY, EventType.TABLE_RECOVERED)
        kinds += (EventType.TABLE_INCIDENT_OPENED, EventType.TABLE_INCIDENT_CLOSED)
        return [event.type.removeprefix("table.") for event in self.watched.events() if event.type in kinds]


class Upkeep:
    """The jobs of a table; the test says what their worker reports."""

    def __init__(self, story: Story) -> None:
        self.story, self.engine, self.clock = story, story.watched.engine, story.watched.clock
        self.config = LeaseConfig(timedelta(seconds=30), 60.0, BackOff())
        self.cipher = SecretCipher.fresh()

    def plan(self) -> list[Job]:
        planned = scheduler.run_once(Database(self.engine, self.clock, cipher=self.cipher), scheduler.SchedulerConfig())
        return [self.job(job_id) for job_id in planned.jobs]

    def ask(self, kind: JobKind, *, dry_run: bool = False) -> Job:
        return submission.submit(
            Database(self.engine, self.clock, cipher=self.cipher),
            Permissions(),
            JobRequest(
                table_id=self.story.id,
                kind=kind,
                params={"sort_by": ["id"]} if kind is JobKind.CLUSTERING else {},
                dry_run=dry_run,
                max_attempts=1,
            ),
        ).job

    def run(self, job: Job, **details: Any) -> None:
        leased = leases.lease(
            Database(self.engine, self.clock, cipher=self.cipher),
            self.config,
            worker_id="w",
            group="default",
            permissions=Permissions(),
        )
        assert leased is not None
        assert leased.job_id == job.id
        result = Result(Outcome.SUCCEEDED, details=details)
        leases.report(
            Database(self.engine, self.clock), Random(1), self.config, job_id=job.id, attempt=1, result=result
        )

    def job(self, job_id: str) -> Job:
        with reading(self.engine) as connection:
            return job_store.get(connection, job_id)

    def verdict(self, kind: JobKind) -> tuple[Verdict, str]:
        with reading(self.engine) as connection:
            found = decision_store.latest(connection, self.story.id)[kind]
        return found.verdict, found.code
