"""A control plane as an operator sees it: polled tables, decisions of policies, and /v1/problems."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from fastapi.testclient import TestClient

from jobs.contract import JobKind
from service.api.app import create_app
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import schema
from service.db.engine import writing
from service.queue import job_store, recovery
from service.queue.job import Job, JobState
from tests.integration.control_plane.conftest import FakeClock, FakeExamine
from tests.integration.control_plane.databases import open_sqlite
from tests.integration.control_plane.planning import Service
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.control_plane.watching import Watched
from tests.support.contexts import context_of
from tests.support.small_table import SmallTable, instant_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import sqlalchemy as sa

MIB, GIB = 1024**2, 1024**3
HOUR, DAY = 3600.0, 86_400.0


@contextmanager
def operating(folder: Path) -> Iterator[Operated]:
    engine = open_sqlite(folder / "gk.db")
    clock = FakeClock()
    app = create_app(context_of(engine, examine=FakeExamine(), clock=clock, rng=Random(1)))
    headers = {"Content-Type": "application/json"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield Operated(client, engine, clock, folder)
    engine.dispose()


class Operated:
    """A service on one database. The test makes each poll and decision."""

    def __init__(self, client: TestClient, engine: sa.Engine, clock: FakeClock, folder: Path) -> None:
        self.client, self.engine, self.clock, self.folder = client, engine, clock, folder
        self.watched = Watched(engine, clock)
        self.service = Service(engine, clock)
        self.worker = Worker(client)

    def table(self, name: str = "t", *, buckets: int = 4, version: int = 9, **more: Any) -> Table:
        return Table(self, name, buckets, SmallTable(self.folder / name, version=version, **more))

    def poll(self, seconds: float = 70) -> None:
        """Makes polls until none is due: after a long time several polls of one table may be due."""
        self.watched.poll(seconds)

    def call(self, method: str, path: str, status: int, body: Any = None) -> Any:
        answer = self.client.request(method, path, json=body)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def clear(self) -> None:
        """Removes everything except the time before the next test."""
        with writing(self.engine) as connection:
            for rows in (schema.tables, schema.workers, schema.webhooks, schema.events):
                connection.execute(rows.delete())

    def recover(self) -> None:
        recovery.run_once(self.engine, self.service.notifier, self.clock)

    def problems(self, **query: Any) -> list[dict[str, Any]]:
        answer = self.client.get("/v1/problems", params=query)
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def kinds(self, **query: Any) -> list[str]:
        return [each["kind"] for each in self.problems(**query)]

    def one(self, kind: str) -> dict[str, Any]:
        """Returns the only problem of this kind."""
        [found] = self.problems(kind=kind)
        assert all(found[name].strip() for name in ("title", "detail", "consequence", "remedy", "command"))
        return found

    def press(self, problem: Mapping[str, Any], status: int) -> Any:
        """Makes the call of a problem's button."""
        action = problem["action"]
        return self.call(action["method"], action["path"], status, action["body"])


class Table:
    """A small registered table; its instants are times of the test's clock."""

    def __init__(self, operated: Operated, name: str, buckets: int, files: SmallTable) -> None:
        self.operated, self.files, self.id = operated, files, f"tbl_{name}"
        self._at = operated.clock() - timedelta(days=1)
        if buckets:
            operated.watched.register(files, buckets=buckets)
            return
        now = operated.clock()
        with writing(operated.engine) as connection:
            table_store.register(connection, Registration(self.id, str(files.base), name, now, now))

    def instant(self) -> str:
        """Returns a new instant, which is later than all others."""
        self._at = max(self._at + timedelta(seconds=2), self.operated.clock() - timedelta(seconds=30))
        return instant_at(self._at)

    def compacted(self, instant: str) -> None:
        """Adds a job that has reported the instant before its commit."""
        now = self.operated.clock()
        job = Job(f"job_{instant}", self.id, JobKind.COMPACTION, now, now, instants=(instant,))
        done = {"state": JobState.SUCCEEDED.value, "finished_at": now}
        with writing(self.operated.engine) as connection:
            job_store.submit(connection, job)
            connection.execute(schema.jobs.update().where(schema.jobs.c.id == job.id).values(**done))

    def commit(self, files: Mapping[str, int] | None = None, *, instant: str | None = None, **more: Any) -> str:
        at = instant or self.instant()
        completed = instant_at(self._at + timedelta(seconds=1))
        self.files.commit(at, {"p": dict(files or {})}, completed=completed, modified=self._at.timestamp(), **more)
        return at
