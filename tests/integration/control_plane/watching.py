"""A service that watches tables, with a clock that tests turn."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from jobs.contract import BucketIndex
from service.flows.hurry import Hurry
from service.flows.observe import Observer, ObserveTerms
from service.model.registration import Registration
from service.policy.backoff import BackOff
from service.store import commits, incidents, outbox, snapshots, tables, watches
from service.store.engine import reading, writing
from tests.small_table import SmallTable, bucket_id

if TYPE_CHECKING:
    import sqlalchemy as sa

    from service.model.commit import Commit
    from service.model.event import Event
    from service.model.incident import Incident
    from service.model.snapshot import TableSnapshot
    from service.model.watch import Watch
    from tests.integration.control_plane.conftest import FakeClock

A, B, C = bucket_id(0), bucket_id(1), bucket_id(2)


class Watched:
    """A service that watches tables, with a clock that tests turn."""

    def __init__(self, engine: sa.Engine, clock: FakeClock, **terms: float) -> None:
        self.engine = engine
        self.clock = clock
        self.hurry = Hurry()
        self.observer = Observer(
            engine,
            clock,
            Random(1),
            self.hurry,
            ObserveTerms(
                threads=int(terms.get("threads", 4)),
                look_seconds=terms.get("look_seconds", 30.0),
                backoff=BackOff(first=10, most=3600),
            ),
            storage_options={},
        )

    def register(self, table: SmallTable, *, buckets: int = 4) -> str:
        now = self.clock()
        found = Registration(
            f"tbl_{table.base.name}", str(table.base), table.base.name, now, now, index=BucketIndex(buckets, ("id",))
        )
        with writing(self.engine) as connection:
            tables.register(connection, found)
        return found.id

    def poll(self, seconds: float = 70) -> None:
        """A round after a poll interval has gone by, and everything it has started."""
        self.clock.advance(seconds)
        self.observer.run_once()
        assert self.observer.crew.wait(60)

    def commits(self, table_id: str) -> list[Commit]:
        """In the order in which they were recorded."""
        with reading(self.engine) as connection:
            return list(reversed(commits.page(connection, limit=500, table_id=table_id).items))

    def instants(self, table_id: str) -> list[str]:
        return [commit.requested_time for commit in self.commits(table_id)]

    def snapshot(self, table_id: str) -> TableSnapshot:
        with reading(self.engine) as connection:
            found = snapshots.get(connection, table_id)
        assert found is not None
        return found

    def told(self) -> list[Event]:
        with reading(self.engine) as connection:
            return [published.event for published in outbox.after(connection, 0, 1000)]

    def incidents(self, table_id: str) -> list[Incident]:
        """In the order in which they were found."""
        with reading(self.engine) as connection:
            return list(reversed(incidents.page(connection, limit=500, table_id=table_id).items))

    def watch(self, table_id: str) -> Watch:
        with reading(self.engine) as connection:
            return watches.get(connection, table_id)
