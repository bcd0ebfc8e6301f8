"""The composition root: here the parts of the running service are chosen by the settings and put together."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from service.access.token import Role, issued
from service.api.app import create_app
from service.api.dependencies import Parts, is_loopback
from service.delivery.attempt_policy import DeliveryTerms
from service.delivery.dispatcher import Dispatcher, DispatchTerms
from service.delivery.guard import Guard
from service.delivery.http import Sender, SendLimits, trusted
from service.delivery.kafka import KafkaSender
from service.delivery.secret_cipher import SecretBox, key_from
from service.delivery.transport import Carrier
from service.events.notifier import Bell
from service.hand_over.coordinator import HandOvers, HandOverTerms
from service.model.backoff import BackOff
from service.model.clock import utc_now
from service.observation.observer import Observer, ObserveTerms
from service.observation.poll_requests import Hurry
from service.queue import recovery
from service.queue.leases import LeaseTerms
from service.registration import detection
from service.runtime import retention
from service.runtime.dispatch import DispatchThread
from service.runtime.local_worker import LocalWorkers, command
from service.runtime.process import Daemon, Tick, url_of
from service.scheduling import scheduler
from service.scheduling.admission import Limits

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from sqlalchemy import Engine

    from service.runtime.settings import Settings

_OBSERVE_SECONDS = 1.0
_HAND_OVER_SECONDS = 1.0
_PRUNE_SECONDS = 600.0


@dataclass
class Composition:
    """What several parts of one running service have in common."""

    chosen: Settings
    engine: Engine
    bell: Bell = field(default_factory=Bell)
    hurry: Hurry = field(default_factory=Hurry)
    rng: random.Random = field(default_factory=random.Random)  # jitter, nothing secret

    def __post_init__(self) -> None:
        self._box = self._secret_box()
        self._guard = Guard.of(self.chosen.webhook_allowed_hosts)

    def daemon(self, listening: socket.socket, on_ready: Callable[[], None]) -> Daemon:
        """The service with its local workers. The database must be migrated."""
        chosen = self.chosen
        secret, token = issued("local worker", Role.WORKER, utc_now())
        parts = Parts(
            engine=self.engine,
            examine=detection.examine,
            bell=self.bell,
            hurry=self.hurry,
            rng=self.rng,
            terms=LeaseTerms(
                lease=timedelta(seconds=chosen.lease_seconds),
                timeout_seconds=chosen.job_timeout_seconds,
                backoff=BackOff(first=chosen.retry_first_seconds, most=chosen.retry_most_seconds),
            ),
            max_attempts=chosen.max_attempts,
            planning=scheduler.Terms(
                limits=Limits(
                    chosen.max_active_jobs,
                    chosen.max_active_by_group,
                    chosen.max_active_by_kind,
                    at_once=chosen.max_new_jobs,
                ),
                max_attempts=chosen.max_attempts,
            ),
            max_request_bytes=chosen.max_request_bytes,
            is_loopback=is_loopback(chosen.host),
            allowed_roots=chosen.allowed_roots,
            storage_options=chosen.storage_options,
            local_worker=token,
            public_url=chosen.public_url,
            flink_hosts=chosen.flink_hosts,
            callback_key=chosen.callback_key.get_secret_value() if chosen.callback_key else None,
            box=self._box,
            guard=self._guard,
            event_source=chosen.event_source,
        )
        return Daemon(
            create_app(parts),
            listening,
            bell=self.bell,
            ticks=self._ticks(parts),
            workers=LocalWorkers(
                command(
                    url_of(listening),
                    master=chosen.master,
                    slots=chosen.slots,
                    group=chosen.worker_group,
                    driver_memory=chosen.driver_memory,
                ),
                count=chosen.workers,
                # Always, not only when tokens exist: the first one may be made while we run.
                environment={"GROUNDSKEEPER_WORKER_TOKEN": str(secret)},
                rng=self.rng,
                drain_seconds=chosen.drain_seconds,
            ),
            dispatch=DispatchThread(self.bell, self._dispatcher, poll_seconds=chosen.webhook_poll_seconds),
            on_ready=on_ready,
        )

    def _ticks(self, parts: Parts) -> list[Tick]:
        chosen, engine, bell = self.chosen, self.engine, self.bell
        keep = retention.Keep(
            history=timedelta(days=chosen.history_days),
            commits=timedelta(days=chosen.commit_days),
            events=timedelta(days=chosen.events_days),
        )
        ticks = [
            Tick(
                "recover",
                chosen.recover_seconds,
                lambda: recovery.run_once(engine, bell, utc_now),
                # While the service was down no worker could keep its lease; each gets the time for a heartbeat.
                first_after=chosen.lease_seconds / 2,
            ),
            Tick("observe", _OBSERVE_SECONDS, self._observer().run_once, rung=self.hurry.rung),
            Tick("hand-over", _HAND_OVER_SECONDS, self._hand_overs().run_once),
            Tick("prune", _PRUNE_SECONDS, lambda: retention.run_once(engine, utc_now, keep)),
        ]
        if chosen.automatic:
            ticks.append(
                Tick(
                    "plan",
                    chosen.plan_seconds,
                    lambda: scheduler.run_once(engine, bell, utc_now, terms=parts.planning),
                )
            )
        return ticks

    def _hand_overs(self) -> HandOvers:
        chosen = self.chosen
        terms = HandOverTerms(hosts=chosen.flink_hosts, storage_options=chosen.storage_options)
        return HandOvers(self.engine, self.bell, utc_now, terms, hurry=self.hurry.ask)

    def _observer(self) -> Observer:
        chosen = self.chosen
        return Observer(
            self.engine,
            utc_now,
            self.rng,
            self.hurry,
            ObserveTerms(
                poll_seconds=chosen.poll_seconds,
                look_seconds=chosen.look_seconds,
                threads=chosen.look_threads,
                small_file_bytes=chosen.small_file_bytes,
            ),
            storage_options=chosen.storage_options,
            on_change=lambda _looked: self.bell.ring(),
        )

    def _dispatcher(self, wake: Callable[[], None]) -> Dispatcher:
        chosen = self.chosen
        limits = SendLimits(
            connect=chosen.webhook_connect_seconds,
            read=chosen.webhook_timeout_seconds,
            total=chosen.webhook_timeout_seconds,
        )
        delivery = DeliveryTerms(
            schedule=chosen.webhook_schedule_seconds,
            most_hold=timedelta(seconds=chosen.webhook_hold_seconds),
            disable_after=timedelta(days=chosen.webhook_disable_days),
        )
        agent, tls = f"groundskeeper/{version('groundskeeper')}", trusted(chosen.webhook_ca_file)
        return Dispatcher(
            self.engine,
            utc_now,
            self.rng,
            self.bell,
            self._box,
            Carrier(
                Sender(self._guard, limits, user_agent=agent, tls=tls),
                KafkaSender(self._guard, limits, client_id=agent, tls=tls),
            ),
            DispatchTerms(delivery, chosen.event_source),
            wake=wake,
        )

    def _secret_box(self) -> SecretBox:
        """Without keys from the settings: a key file beside an SQLite database. Other databases have no place beside
        them that all replicas share; there webhooks need keys from the settings."""
        keys, url = self.chosen.secret_keys, self.engine.url
        if keys or url.database is None or self.engine.dialect.name != "sqlite":
            return SecretBox([key.get_secret_value() for key in keys])
        return SecretBox([key_from(Path(url.database).with_suffix(".key"))])
