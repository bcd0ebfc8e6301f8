"""Sends pending deliveries: claims delivery queues, sends their deliveries in order, and records the attempts.

No transaction is open while something is sent. If the service is killed between sending and recording, the delivery is
sent again with the same id, so each delivery is sent at least once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from uuid import uuid4

from sqlalchemy import Connection, Engine

from service.access.errors import SecretUnreadableError
from service.access.secret_cipher import SecretCipher
from service.db.engine import may_find, reading, writing
from service.delivery import cloud_event, open_lineage, queue_store, signing, webhook_store
from service.delivery.attempt_policy import DeliveryConfig, Done, GiveUp, TryAgain, after_answer, reason_to_disable
from service.delivery.message import Message
from service.delivery.open_lineage import Facts
from service.delivery.queue_store import AttemptRecord
from service.delivery.targets import registry
from service.delivery.transport import Transport
from service.delivery.webhook import Delivery, DeliveryAttempt, DeliveryQueue, DeliveryState, SendResult, Webhook
from service.delivery.webhooks import disable
from service.events.database import Database
from service.events.event import TESTS, Event, Published
from service.events.notifier import Notifier
from service.model.clock import Clock, utc_now
from service.model.errors import DatabaseUnavailableError, WebhookNotFoundError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DispatcherConfig:
    """The settings of the dispatcher."""

    delivery: DeliveryConfig = field(default_factory=DeliveryConfig)
    source: str = "/groundskeeper"  # The source of the CloudEvents.
    namespace: str = "groundskeeper"  # The namespace of the jobs in OpenLineage events.
    per_webhook: int = 16  # At most this many delivery queues of a webhook are claimed; of a failing webhook only one.
    at_once: int = 512  # At most this many delivery queues are claimed in all.
    run: int = 50  # At most this many deliveries are read from a queue at once.


@dataclass(frozen=True)
class _Run:
    """A claimed delivery queue and the deliveries to send from it. Sending must end before `deadline`, a time of the
    monotonic clock. `facts` are the facts about the events by their `seq`; only an OpenLineage endpoint needs them."""

    webhook: Webhook
    queue: DeliveryQueue
    waiting: Sequence[tuple[Delivery, Published]]
    deadline: float
    facts: Mapping[int, Facts] = field(default_factory=dict)


@dataclass
class _Unrecorded:
    """Results since the last recording: attempts; and for each finished run the time of the next try, by the id of the
    queue."""

    tried: list[AttemptRecord] = field(default_factory=list)
    ended: dict[int, datetime | None] = field(default_factory=dict)
    webhooks: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.tried or self.ended)


class Dispatcher:
    """The dispatcher, which belongs to one event loop. `wake` is called when `run_once` has something to record, and
    `on_attempt` after each attempt."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        rng: Random,
        notifier: Notifier,
        cipher: SecretCipher,
        *,
        transport: Transport,
        config: DispatcherConfig,
        wake: Callable[[], None] = lambda: None,
        on_attempt: Callable[[AttemptRecord], None] = lambda _record: None,
        facts: Callable[[Connection, Event], Facts] = lambda _connection, _event: Facts(),
        wall: Clock = utc_now,
    ) -> None:
        self._engine = engine
        self._clock = clock
        # Times for receivers come from the machine's clock: a receiver compares the time of a signature with its own
        # clock, and may answer with a time until which to wait.
        self._wall = wall
        self._rng = rng
        self._notifier = notifier
        self._cipher = cipher
        self._database = Database(engine, clock, notifier, cipher)
        self._transport = transport
        self._config = config
        self._wake = wake
        self._on_attempt = on_attempt
        self._facts = facts
        self._name = uuid4().hex
        # Sending may start only in the first half of the time of a claim, so that it ends before the claim does.
        self._half_claim = timedelta(seconds=transport.limits.longest)
        self._unrecorded = _Unrecorded()
        self._busy: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._bug: BaseException | None = None
        self._is_stopping = False
        # Database calls block, so they need a thread; a single one keeps the steps in order.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="outbox")

    async def run_once(self) -> bool:
        """Records results, claims due delivery queues and starts to send. Returns whether there was anything to do.

        Raises DatabaseUnavailableError; the results are then kept for the next call.
        """
        if self._bug is not None:
            raise self._bug
        if not self._unrecorded and not may_find(self._engine, queue_store.DUE, now=self._clock()):
            return False
        unrecorded, self._unrecorded = self._unrecorded, _Unrecorded()
        try:
            runs = await asyncio.get_running_loop().run_in_executor(self._thread, self._step, unrecorded)
        except BaseException:
            self._unrecorded.tried[:0] = unrecorded.tried
            self._unrecorded.ended.update(unrecorded.ended)
            self._unrecorded.webhooks.update(unrecorded.webhooks)
            raise
        self._busy -= unrecorded.webhooks
        for run in runs:
            self._busy[run.webhook.id] += 1
            task = asyncio.create_task(self._send(run))
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        return bool(unrecorded or runs)

    def is_idle(self) -> bool:
        """Returns whether no delivery is pending, so that only a new event can make one due. Returns False if finding
        out would take long."""
        return not may_find(self._engine, queue_store.ANY_PENDING)

    async def settle(self) -> None:
        """Returns when no run is active and all results are recorded."""
        while self._tasks or self._unrecorded:
            if self._tasks:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            await self.run_once()

    async def stop(self, patience: float) -> None:
        """Starts nothing new, waits up to `patience` seconds for active runs, cancels the rest and records results."""
        self._is_stopping = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self.run_once()
        finally:
            await self._transport.close()
            self._thread.shutdown()

    # -- in the event loop

    async def _send(self, run: _Run) -> None:
        """Sends the deliveries of a queue in order, up to the first that has to be retried."""
        next_at: datetime | None = None
        try:
            for delivery, published in run.waiting:
                if self._is_stopping or time.monotonic() > run.deadline:
                    return
                at = self._clock()
                answer = await self._attempt(run, published, at)
                tried = self._attempt_record(delivery, answer, at)
                self._unrecorded.tried.append(tried)
                self._on_attempt(tried)
                self._wake()
                if tried.attempt.retry_at is not None:
                    next_at = tried.attempt.retry_at
                    return
        finally:
            self._unrecorded.ended[run.queue.id] = next_at
            self._unrecorded.webhooks[run.webhook.id] += 1
            self._wake()

    async def _attempt(self, run: _Run, published: Published, at: datetime) -> SendResult:
        """Sends one event. An error is a result, not an exception, so that one delivery never stops the others."""
        try:
            return await self._sent(run, published, at)
        except Exception as error:
            log.exception("Event %s could not be sent to webhook %s", published.event.id, run.webhook.id)
            return SendResult(0.0, error=f"it could not be sent: {type(error).__name__}")

    async def _sent(self, run: _Run, published: Published, at: datetime) -> SendResult:
        webhook, event, url = run.webhook, published.event, run.webhook.url
        try:
            own = json.loads(self._cipher.open(webhook.sealed_headers))
            signers = [self._cipher.open(webhook.sealed_secret)]
            if webhook.sealed_old_secret and webhook.old_secret_until and at < webhook.old_secret_until:
                signers.append(self._cipher.open(webhook.sealed_old_secret))
        except SecretUnreadableError as error:
            return SendResult(0.0, error=error.title)
        if webhook.target is not None:
            options = own
            request = registry.request(
                webhook.target,
                options,
                Message.from_json(event.data["message"]),
                now=self._wall(),
                event_id=event.id,
            )
            if request is not None:
                answer = await self._transport.send(request.url, "", request.body, request.headers, request.own)
                return replace(answer, excerpt=registry.without_secrets(answer.excerpt, options))
            url, own = options["url"], options.get("headers", {})
        if webhook.is_lineage:
            media_type = open_lineage.MEDIA_TYPE
            body = open_lineage.body(published.event, self._config.namespace, run.facts.get(published.seq, Facts()))
        else:
            media_type = f"{cloud_event.MEDIA_TYPE}; charset=utf-8"
            body = cloud_event.body(published, self._config.source)
        headers = {
            "Content-Type": media_type,
            **signing.signed_headers(signers, published.event.id, int(self._wall().timestamp()), body),
        }
        return await self._transport.send(url, published.event.table_id or "", body, headers, own)

    def _attempt_record(self, delivery: Delivery, answer: SendResult, at: datetime) -> AttemptRecord:
        now = self._clock()
        tries, first = delivery.tries + 1, delivery.first_tried_at or at
        outcome = after_answer(
            answer,
            tries=tries,
            first_tried_at=first,
            now=now,
            wall=self._wall(),
            config=self._config.delivery,
            rng=self._rng,
        )
        if delivery.event_type in TESTS and isinstance(outcome, TryAgain):
            outcome = GiveUp()  # A person is watching the test and can repeat it.
        delivery = delivery.evolve(tries=tries, first_tried_at=first)
        match outcome:
            case Done():
                delivery = delivery.evolve(state=DeliveryState.DELIVERED, ended_at=now)
            case GiveUp():
                delivery = delivery.evolve(state=DeliveryState.DEAD, ended_at=now)
            case TryAgain(retry_at):
                return AttemptRecord(delivery, DeliveryAttempt(at, answer, retry_at))
        return AttemptRecord(delivery, DeliveryAttempt(at, answer))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._bug = error

    # -- in the thread

    def _step(self, unrecorded: _Unrecorded) -> list[_Run]:
        now = self._clock()
        busy = self._busy - unrecorded.webhooks
        if not unrecorded and not self._can_claim(now, busy):
            # The read comes first, so that the usual case takes no write lock.
            return []
        with writing(self._engine) as connection:
            to_disable = self._record(connection, unrecorded.tried, now)
            queue_store.release(connection, unrecorded.ended, claimant=self._name, now=now)
            runs = [] if self._is_stopping else self._claim(connection, busy, now, without=to_disable)
        for webhook_id, because in to_disable.items():
            try:
                disable(self._database, webhook_id, because=because)
            except (WebhookNotFoundError, DatabaseUnavailableError) as error:
                # The results are already recorded, and the next failed attempt tries to disable the webhook again.
                log.warning("Webhook %s could not be disabled: %s", webhook_id, error)
        return runs

    def _can_claim(self, now: datetime, busy: Counter[str]) -> bool:
        if self._is_stopping:
            return False
        with reading(self._engine) as connection:
            return any(self._capacity(webhook, busy) > 0 for webhook in queue_store.due(connection, now))

    def _capacity(self, webhook: Webhook, busy: Counter[str]) -> int:
        """Returns how many more delivery queues of this webhook may be claimed."""
        most = 1 if webhook.failing_since is not None else self._config.per_webhook
        return min(most - busy[webhook.id], self._config.at_once - busy.total())

    def _claim(
        self, connection: Connection, busy: Counter[str], now: datetime, *, without: Container[str]
    ) -> list[_Run]:
        deadline = time.monotonic() + self._half_claim.total_seconds()
        until = now + 2 * self._half_claim
        busy = busy.copy()
        chosen: dict[str, Webhook] = {}
        capacity: dict[str, int] = {}
        for webhook in queue_store.due(connection, now):
            if webhook.id not in without and (more := self._capacity(webhook, busy)) > 0:
                chosen[webhook.id], capacity[webhook.id] = webhook, more
                busy[webhook.id] += more
        if not capacity:
            return []
        claimed = queue_store.claim(connection, capacity, claimant=self._name, now=now, until=until)
        waiting = queue_store.waiting(connection, [queue.id for queue in claimed], self._config.run)
        return [
            _Run(webhook, queue, waiting[queue.id], deadline, self._facts_of(connection, webhook, waiting[queue.id]))
            for queue in claimed
            for webhook in [chosen[queue.webhook_id]]
        ]

    def _facts_of(
        self, connection: Connection, webhook: Webhook, waiting: Sequence[tuple[Delivery, Published]]
    ) -> dict[int, Facts]:
        if not webhook.is_lineage:
            return {}
        return {published.seq: self._facts(connection, published.event) for _, published in waiting}

    def _record(self, connection: Connection, tried: Sequence[AttemptRecord], now: datetime) -> Mapping[str, str]:
        """Records attempts and the health of their webhooks. Returns the reasons to disable webhooks, by their ids."""
        to_disable: dict[str, str] = {}
        if not tried:
            return to_disable
        before = webhook_store.locked(connection, {each.delivery.webhook_id for each in tried})
        after = dict(before)
        for each in tried:
            webhook, answer = after.get(each.delivery.webhook_id), each.attempt.answer
            if webhook is None:
                continue  # The webhook and its deliveries were deleted meanwhile.
            because = reason_to_disable(webhook, answer, now=now, config=self._config.delivery)
            if because is not None:
                to_disable[webhook.id] = because
            after[webhook.id] = webhook.after_attempt(each.attempt.at, is_accepted=answer.is_accepted)
        queue_store.record(connection, tried)
        webhook_store.note_health(connection, [webhook for webhook in after.values() if webhook != before[webhook.id]])
        return to_disable
