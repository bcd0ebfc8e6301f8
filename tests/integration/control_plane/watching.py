"""A service that watches tables, with a clock that tests turn."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from jobs.contract import BucketIndex
from service.catalog import commit_store, snapshot_store, table_store, watch_store
from service.catalog.registration import Registration
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.delivery import outbox
from service.events.notifier import Notifier
from service.incidents import store
from service.model.backoff import BackOff
from service.observation.files_digest import FilesDigest
from service.observation.observer import Observer, ObserverConfig
from service.observation.poll_requests import PollRequests
from service.observation.table_read import TableReader
from tests.support.small_table import SmallTable, bucket_id

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa

    from service.catalog.watch import Watch
    from service.events.event import Event
    from service.incidents.incident import Incident
    from service.lake.commit import Commit
    from service.lake.snapshot import TableSnapshot
    from service.observation.poll import FindQuiet, ReadFirst, ReadTable
    from tests.integration.control_plane.conftest import FakeClock

A, B, C = bucket_id(0), bucket_id(1), bucket_id(2)


class Watched:
    """A service that watches tables, with a clock that tests turn."""

    def __init__(
        self,
        engine: sa.Engine,
        clock: FakeClock,
        *,
        at_once: int = 4,
        read: ReadTable | None = None,
        first: ReadFirst | None = None,
        quiet: FindQuiet | None = None,
        files_digest: Callable[[str], str] | None = None,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self.poll_requests = PollRequests()
        self.new_schemas: list[str] = []  # The ids of the tables.
        reader = TableReader(engine, {}, 100 * 1024 * 1024)
        self.observer = Observer(
            engine,
            clock,
            Random(1),
            self.poll_requests,
            ObserverConfig(
                at_once=at_once,
                backoff=BackOff(first=10, most=3600),
            ),
            read=read or reader,
            first=first or reader.first,
            quiet=quiet or reader.quiet,
            files_digest=files_digest or FilesDigest({}),
            notifier=Notifier(),
            on_new_schema=self.new_schemas.append,
        )

    def register(self, table: SmallTable, *, buckets: int = 4) -> str:
        now = self.clock()
        found = Registration(
            f"tbl_{table.base.name}", str(table.base), table.base.name, now, now, index=BucketIndex(buckets, ("id",))
        )
        with writing(self.engine) as connection:
            table_store.register(connection, found)
        return found.id

    def poll(self, seconds: float = 70) -> None:
        """Advances the clock by a poll interval, and makes a round with everything that it starts."""
        self.clock.advance(seconds)
        self.observer.run_once()
        assert self.observer.pool.wait(60)

    def commits(self, table_id: str) -> list[Commit]:
        """Returns the commits in the order of their recording."""
        with reading(self.engine) as connection:
            return list(reversed(commit_store.page(connection, PageRequest(500), table_id=table_id).items))

    def instants(self, table_id: str) -> list[str]:
        return [commit.requested_time for commit in self.commits(table_id)]

    def snapshot(self, table_id: str) -> TableSnapshot:
        with reading(self.engine) as connection:
            found = snapshot_store.get(connection, table_id)
        assert found is not None
        return found

    def events(self) -> list[Event]:
        with reading(self.engine) as connection:
            return [published.event for published in outbox.after(connection, 0, 1000)]

    def incidents(self, table_id: str) -> list[Incident]:
        """Returns the incidents in the order of their discovery."""
        with reading(self.engine) as connection:
            return list(reversed(store.page(connection, PageRequest(500), table_id=table_id).items))

    def watch(self, table_id: str) -> Watch:
        with reading(self.engine) as connection:
            return watch_store.get(connection, table_id)
