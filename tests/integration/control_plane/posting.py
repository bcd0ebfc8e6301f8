"""Shared parts of the tests of webhooks: published events, and a dispatcher whose steps a test starts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from service.access.secret_cipher import SecretCipher
from service.catalog.registration import Registration
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.delivery import delivery_store, outbox, webhook_store
from service.delivery import webhooks as flows
from service.delivery.attempt_policy import DeliveryConfig
from service.delivery.dispatcher import Dispatcher, DispatcherConfig
from service.delivery.guard import Guard
from service.delivery.http import Sender, SendLimits
from service.delivery.kafka import KafkaSender
from service.delivery.smtp import SmtpSender
from service.delivery.transport import Transport
from service.events.database import Database
from service.events.notifier import Notifier
from service.lake.commit import Commit
from service.model.clock import utc_now
from service.observation.poll_events import commit_published

if TYPE_CHECKING:
    import asyncio
    import ssl

    import sqlalchemy as sa

    from service.delivery.webhook import Delivery, DeliveryAttempt, Webhook
    from service.events.event import Published

LOCAL = Guard.of(["127.0.0.1"])
# Only hanging receivers reach the time limit; the others must answer in time on a busy machine, too.
PATIENT = SendLimits(connect=10, read=10, total=10)


class Clock(Protocol):
    def __call__(self) -> datetime: ...
    def advance(self, seconds: float) -> None: ...


def a_table(number: int = 1, now: datetime | None = None) -> Registration:
    at = now or datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    return Registration(f"tbl_{number}", f"/lake/orders_{number}", f"orders_{number}", at, at)


def commits(table: Registration, numbers: range, seen_at: datetime) -> list[Commit]:
    return [
        Commit(table.id, f"2026010112{number:07d}", "deltacommit", None, seen_at, "UPSERT", rows_written=number)
        for number in numbers
    ]


def ids(published: list[Published]) -> list[str]:
    return [each.event.id for each in published]


def publish(engine: sa.Engine, first: int, count: int, tables: int = 5) -> list[str]:
    """Publishes new commits of this number of tables in turn, and returns the ids of the events."""
    now = utc_now()
    events = [
        commit_published(commit, a_table(number % tables))
        for number in range(first, first + count)
        for commit in commits(a_table(number % tables), range(number, number + 1), now)
    ]
    with writing(engine) as connection:
        outbox.publish(connection, events, now=now)
    return [each.id for each in events]


@dataclass
class Post:
    """A dispatcher on the event loop of `runner`."""

    engine: sa.Engine
    clock: Clock
    runner: asyncio.Runner
    cipher: SecretCipher = field(default_factory=SecretCipher.fresh)
    notifier: Notifier = field(default_factory=Notifier)
    config: DispatcherConfig = field(default_factory=lambda: DispatcherConfig(DeliveryConfig(jitter=0.0)))
    limits: SendLimits = PATIENT
    tls: ssl.SSLContext | None = None  # For mail.
    made: list[Dispatcher] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        return Database(self.engine, self.clock, self.notifier, self.cipher)

    def dispatcher(self, **changes: Any) -> Dispatcher:
        """Returns the dispatcher of another service on the same database."""

        async def make() -> Dispatcher:
            limits = changes.get("limits", self.limits)
            transport = Transport(
                Sender(LOCAL, limits), KafkaSender(LOCAL, limits), SmtpSender(LOCAL, limits, tls=self.tls)
            )
            config = changes.get("config", self.config)
            return Dispatcher(
                self.engine,
                self.clock,
                Random(1),
                self.notifier,
                self.cipher,
                transport=transport,
                config=config,
                wall=changes.get("wall", self.clock),
                on_attempt=changes.get("on_attempt", lambda _record: None),
            )

        made = self.runner.run(make())
        self.made.append(made)
        return made

    def webhook(self, url: str, **wanted: Any) -> flows.Created:
        given: dict[str, Any] = {"types": ("*",), "tables": (), "headers": {}, "description": "", **wanted}
        return flows.create(self.database, LOCAL, url=url, **given)

    def publish(self, count: int = 1, table: int = 1) -> list[Published]:
        """Publishes this number of new commits of a table."""
        registered = a_table(table)
        start = self.counts.get(registered.id, 0)
        self.counts[registered.id] = start + count
        now = self.clock()
        events = [
            commit_published(commit, registered) for commit in commits(registered, range(start, start + count), now)
        ]
        with writing(self.engine) as connection:
            before = outbox.newest(connection)
            outbox.publish(connection, events, now=now)
        with reading(self.engine) as connection:
            return outbox.after(connection, before, count)

    def deliver(self, by: Dispatcher | None = None) -> None:
        """Sends all due deliveries."""
        dispatcher = by or (self.made[0] if self.made else self.dispatcher())

        async def work() -> None:
            while await dispatcher.run_once():
                await dispatcher.settle()

        self.runner.run(work())

    def get(self, webhook_id: str) -> Webhook:
        with reading(self.engine) as connection:
            return webhook_store.get(connection, webhook_id)

    def deliveries(self, webhook_id: str) -> list[Delivery]:
        """Returns the deliveries in the order of their events."""
        with reading(self.engine) as connection:
            return list(delivery_store.page(connection, webhook_id, PageRequest(10_000)).items)[::-1]

    def attempts(self, delivery_id: str) -> list[DeliveryAttempt]:
        with reading(self.engine) as connection:
            return list(delivery_store.attempts(connection, [delivery_id]).get(delivery_id, []))

    def states(self, webhook_id: str) -> list[str]:
        return [delivery.state.value for delivery in self.deliveries(webhook_id)]

    def pauses(self, delivery_id: str) -> list[float]:
        """Returns the seconds between the attempts."""
        moments = [attempt.at for attempt in self.attempts(delivery_id)]
        return [(later - earlier) / timedelta(seconds=1) for earlier, later in itertools.pairwise(moments)]

    def close(self) -> None:
        async def stop() -> None:
            for dispatcher in self.made:
                await dispatcher.stop(0.0)

        self.runner.run(stop())
