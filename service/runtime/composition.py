"""The composition root: builds the parts of the running service from the settings."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from ipaddress import ip_network
from pathlib import Path

from sqlalchemy import Engine

from jobs.format.spark_options import is_local
from jobs.local_process import ids_of_process
from service.access.secret_cipher import SecretCipher, key_file, key_from
from service.access.token import Role, Token, issued
from service.api.app import create_app
from service.api.dependencies import AppContext
from service.db.checkpoints import Checkpoints
from service.db.timekeeping import Timekeeping
from service.delivery import lineage_webhook
from service.delivery.attempt_policy import DeliveryConfig
from service.delivery.dispatcher import Dispatcher, DispatcherConfig
from service.delivery.guard import Guard
from service.delivery.http import Sender, SendLimits, trusted
from service.delivery.kafka import KafkaSender
from service.delivery.smtp import SmtpSender
from service.delivery.transport import Transport
from service.events.database import Database
from service.events.notifier import Notifier
from service.events.replicas import ReplicaNotifications
from service.lake import reader_pool
from service.lake.reader_pool import ReaderLimits, ReaderPool
from service.locks.lock_watch import LockWatch, LockWatchConfig
from service.metrics.installation import Installation
from service.metrics.monitoring import Monitoring
from service.metrics.process_metrics import ProcessMetrics
from service.model.task_health import TaskHealth
from service.notifications import rounds
from service.observation.files_digest import FilesDigest
from service.observation.lake_access import LakeAccess
from service.observation.observer import Observer, ObserverConfig
from service.observation.poll_requests import PollRequests
from service.observation.table_read import IsolatedTableReader
from service.queue import lineage_facts, recovery
from service.queue.forecaster import Forecaster
from service.queue.hand_over.coordinator import HandOverConfig, HandOvers
from service.queue.outlook import Goals
from service.registration import detection, registry
from service.reports import fleet_samples
from service.runtime import retention, setting_rounds
from service.runtime.api_settings import exposure, identity, queue_settings, simulated_fleet
from service.runtime.connections import ConnectionLimits
from service.runtime.dispatch import DispatchThread
from service.runtime.due import when_due
from service.runtime.fleet_process import FleetProcess
from service.runtime.local_worker import LocalWorkers, command
from service.runtime.process import Daemon, url_of
from service.runtime.proxies import TrustedProxies
from service.runtime.settings import Settings
from service.runtime.ticks import Tick
from service.simulation import adviser
from service.simulation.adviser import AdviceWriter
from service.simulation.what_if import Replayer

_OBSERVE_SECONDS = 1.0
_HAND_OVER_SECONDS = 1.0
_LOCK_SECONDS = 0.5
# While no lock is watched and no job waits for writers, the watch of locks and the hand-overs wait at most this long.
_IDLE_SECONDS = 5.0
_NOTIFY_SECONDS = 5.0
_PRUNE_SECONDS = 600.0
_ADVICE_SECONDS, _ADVICE_MOST_SECONDS = 60.0, 30.0
_TREND_SECONDS = 60.0
_CLOCK_SECONDS = 10.0
_CHECKPOINT_SECONDS = 2.0
_COMMITS_SECONDS = 1.0
# The number of readers for registrations, verifications and hand-overs, and how many calls may wait for such a reader.
_READERS_OF_CALLS = 4
_QUEUED_CALLS = 16
_READ_SECONDS = 60.0
# The number of locks that are read at once, and the time limit of each read.
_LOOKS_AT_ONCE = 4
_LOOK_SECONDS = 5.0
_POLL_NICENESS = 10
_SIMULATIONS = ReaderLimits(seconds=50.0, queued=2, niceness=_POLL_NICENESS)
# The time limit of a `FilesDigest`, which is short because nothing waits for the result.
_FILES_DIGEST_SECONDS = 5.0
_READERS_IMPORT = ("service.observation.table_read", "service.registration.detection", "service.simulation.what_if")


@dataclass
class Composition:
    """The parts of one running service, and the objects that they share. The database must be migrated."""

    chosen: Settings
    engine: Engine
    notifier: Notifier = field(default_factory=Notifier)
    poll_requests: PollRequests = field(default_factory=PollRequests)
    tasks: TaskHealth = field(default_factory=TaskHealth)
    rng: random.Random = field(default_factory=random.Random)  # The generator is for jitter only, not for secrets.

    def __post_init__(self) -> None:
        self._timekeeping = Timekeeping(self.engine)
        self._clock = self._timekeeping.clock
        self._metrics = ProcessMetrics(self.tasks)
        self._cipher = self._secret_cipher()
        self._guard = Guard.of(self.chosen.webhook_allowed_hosts)
        reader_pool.preload(*_READERS_IMPORT)
        # The readers of polls have a lower priority than calls.
        limits = ReaderLimits(seconds=self.chosen.look_seconds, niceness=_POLL_NICENESS)
        self._poll_readers = ReaderPool(self.chosen.look_threads, limits)
        # Calls have separate readers, so that they never wait for polls.
        self._readers = ReaderPool(_READERS_OF_CALLS, ReaderLimits(seconds=_READ_SECONDS, queued=_QUEUED_CALLS))
        # Simulations run one at a time, because each occupies a processor core for seconds.
        self._simulators = ReaderPool(1, _SIMULATIONS)
        self._advisers = ReaderPool(1, _SIMULATIONS)
        # Reads of locks have separate readers too, so that a lock server that does not answer delays neither calls nor
        # polls.
        self._lock_readers = ReaderPool(_LOOKS_AT_ONCE, ReaderLimits(seconds=_LOOK_SECONDS))

    def daemon(self, listening: socket.socket, on_ready: Callable[[], None]) -> Daemon:
        """Returns the service with its local workers."""
        chosen = self.chosen
        registry.seal_stored(self.engine, self._cipher)
        lineage_webhook.ensure(
            self.engine,
            self._clock,
            self._cipher,
            self._guard,
            url=chosen.openlineage_url,
            api_key=chosen.openlineage_api_key.get_secret_value() if chosen.openlineage_api_key else None,
        )
        secret, token = issued("local worker", Role.WORKER, self._clock(), groups=(chosen.worker_group,))
        queue = queue_settings(chosen, self.rng)
        database = Database(self.engine, self._clock, self.notifier, self._cipher)
        lake = LakeAccess(
            examine=self._readers.isolated(detection.examine),
            readers=self._readers,
            storage_options=chosen.hadoop_options,
            poll_requests=self.poll_requests,
            permissions=chosen.permissions,
            flink_hosts=chosen.flink_hosts,
            lock_hosts=chosen.lock_hosts,
        )
        goals = Goals(chosen.wait_goal_seconds, chosen.wait_goal_by_group, chosen.requested_first)
        monitoring = Monitoring(tasks=self.tasks, metrics=self._metrics, forecaster=Forecaster(goals))
        exposed = exposure(chosen, token)
        self._fleet = FleetProcess(Installation(database, monitoring, exposed.metrics_of_tables))
        context = AppContext(
            database=database,
            lake=lake,
            catalogs=tuple(each.to_catalog(database, lake, chosen.storage_accounts) for each in chosen.catalogs),
            queue=queue,
            monitoring=monitoring,
            fleet=self._fleet,
            exposure=exposed,
            guard=self._guard,
            identity=identity(chosen, self._cipher),
            simulator=self._simulators.isolated(Replayer.of(self.engine, simulated_fleet(chosen, queue.planning))),
        )
        app = create_app(context)
        threading.Thread(target=self._fleet.prepare, name="fleet", daemon=True).start()
        return Daemon(
            TrustedProxies(app, chosen.trusted_proxies),
            listening,
            limits=ConnectionLimits(
                all=chosen.max_connections,
                per_address=chosen.max_connections_per_address,
                trusted_proxies=tuple(map(ip_network, chosen.trusted_proxies)),
            ),
            notifier=self.notifier,
            ticks=self._ticks(context),
            workers=LocalWorkers(
                command(
                    url_of(listening),
                    master=chosen.master,
                    slots=chosen.slots,
                    spare_slots=chosen.spare_slots,
                    group=chosen.worker_group,
                    driver_memory=chosen.driver_memory,
                ),
                count=chosen.workers,
                standbys=chosen.standby_workers,
                # Workers always get a token, because the service's first token may be created while it runs.
                environment={"GROUNDSKEEPER_WORKER_TOKEN": str(secret)},
                rng=self.rng,
                drain_seconds=chosen.drain_seconds,
                on_lost=self._take_back(context.database, token),
            ),
            dispatch=DispatchThread(
                self.notifier, self._dispatcher, poll_seconds=chosen.webhook_poll_seconds, tasks=self.tasks
            ),
            replicas=self._replicas(),
            on_end=self._end,
            tasks=self.tasks,
            on_ready=on_ready,
        )

    def _ticks(self, context: AppContext) -> list[Tick]:
        chosen, engine, notifier, clock = self.chosen, self.engine, self.notifier, self._clock
        locks = self._lock_watch()
        ticks = [
            Tick(
                "recover",
                chosen.recover_seconds,
                lambda: recovery.run_once(engine, notifier, clock),
                # No worker could renew its lease while the service was down, so each worker now gets time for a
                # heartbeat.
                first_after=chosen.lease_seconds / 2,
            ),
            Tick(
                "observe", _OBSERVE_SECONDS, self._observer(context.lake).run_once, notified=self.poll_requests.notified
            ),
            Tick("locks", _LOCK_SECONDS, locks.run_once, idle_seconds=_IDLE_SECONDS),
            Tick("hand-over", _HAND_OVER_SECONDS, self._hand_overs().run_once, idle_seconds=_IDLE_SECONDS),
            Tick(
                "problems",
                chosen.problem_seconds,
                partial(self._fleet.find_problems, timedelta(seconds=chosen.problem_seconds)),
            ),
            Tick("notifications", _NOTIFY_SECONDS, lambda: rounds.run_once(context.database, chosen.price_per_gb_hour)),
            Tick("trend", _TREND_SECONDS, partial(fleet_samples.run_once, engine, clock)),
            Tick("prune", _PRUNE_SECONDS, lambda: retention.run_once(engine, clock, retention.Keep.of(chosen))),
            Tick("clock", _CLOCK_SECONDS, self._timekeeping.run_once),
        ]
        if engine.dialect.name == "sqlite":
            copies = Checkpoints(engine)
            ticks.append(Tick("checkpoint", _CHECKPOINT_SECONDS, copies.run_once, is_due=copies.is_due))
            # PostgreSQL notifies this process of other replicas' changes, so callers that wait need not poll the
            # database.
            ticks.append(Tick("commits", _COMMITS_SECONDS, notifier.notify_here))
        ticks += setting_rounds.ticks(context, chosen)
        if chosen.automatic:
            ticks.append(Tick("plan", chosen.plan_seconds, partial(self._fleet.plan, context.queue.planning)))
            advice = AdviceWriter.of(engine, simulated_fleet(chosen, context.queue.planning))
            write = self._advisers.isolated(advice, _ADVICE_MOST_SECONDS)
            ticks.append(Tick("advice", _ADVICE_SECONDS, partial(adviser.run_once, context.database, write)))
        return when_due(ticks, engine, clock, self.poll_requests, locks)

    def _hand_overs(self) -> HandOvers:
        chosen = self.chosen
        config = HandOverConfig(
            hosts=chosen.flink_hosts, storage_options=chosen.hadoop_options, allowed_roots=chosen.allowed_roots
        )
        return HandOvers(
            self.engine, self.notifier, self._clock, config, self._readers, poll_requests=self.poll_requests.ask
        )

    def _lock_watch(self) -> LockWatch:
        chosen = self.chosen
        return LockWatch(
            self.engine,
            self.notifier,
            self._clock,
            LockWatchConfig(
                every=timedelta(seconds=chosen.lock_look_seconds),
                at_once=_LOOKS_AT_ONCE,
                storage_options=chosen.hadoop_options,
                lock_hosts=chosen.lock_hosts,
            ),
            self._lock_readers,
            cipher=self._cipher,
            permissions=chosen.permissions,
        )

    def _observer(self, lake: LakeAccess) -> Observer:
        chosen = self.chosen
        reader = IsolatedTableReader(
            self.engine.url.render_as_string(hide_password=False),
            chosen.hadoop_options,
            chosen.small_file_bytes,
            chosen.allowed_roots,
            chosen.lock_roots,
        )
        return Observer(
            self.engine,
            self._clock,
            self.rng,
            self.poll_requests,
            ObserverConfig(poll_seconds=chosen.poll_seconds, at_once=chosen.look_threads),
            read=self._poll_readers.isolated(reader),
            first=self._poll_readers.isolated(reader.first, _FILES_DIGEST_SECONDS),
            quiet=self._poll_readers.isolated(reader.quiet, _FILES_DIGEST_SECONDS),
            files_digest=self._poll_readers.isolated(
                FilesDigest(chosen.hadoop_options, chosen.allowed_roots), _FILES_DIGEST_SECONDS
            ),
            notifier=self.notifier,
            on_new_schema=partial(registry.detect_again, self.engine, lake),
        )

    def _dispatcher(self, wake: Callable[[], None]) -> Dispatcher:
        chosen = self.chosen
        limits = SendLimits(
            connect=chosen.webhook_connect_seconds,
            read=chosen.webhook_timeout_seconds,
            total=chosen.webhook_timeout_seconds,
        )
        delivery = DeliveryConfig(
            schedule=chosen.webhook_schedule_seconds,
            most_hold=timedelta(seconds=chosen.webhook_hold_seconds),
            disable_after=timedelta(days=chosen.webhook_disable_days),
        )
        agent, tls = f"groundskeeper/{version('groundskeeper')}", trusted(chosen.webhook_ca_file)
        return Dispatcher(
            self.engine,
            self._clock,
            self.rng,
            self.notifier,
            self._cipher,
            transport=Transport(
                Sender(self._guard, limits, user_agent=agent, tls=tls),
                KafkaSender(self._guard, limits, client_id=agent, tls=tls),
                SmtpSender(self._guard, limits, tls=tls),
            ),
            config=DispatcherConfig(delivery, chosen.event_source, chosen.openlineage_namespace),
            wake=wake,
            on_attempt=self._metrics.sent,
            facts=lineage_facts.facts,
        )

    def _end(self) -> None:
        self._fleet.close()
        for readers in (self._poll_readers, self._readers, self._lock_readers, self._simulators, self._advisers):
            readers.close()

    def _take_back(self, database: Database, token: Token) -> Callable[[int], None] | None:
        """Returns the function to call when a local worker has ended. Returns None if workers use a cluster, because
        executors may then still be working."""
        if not is_local(self.chosen.master):
            return None
        return lambda process: recovery.take_back(database, ids_of_process(process), token.id)

    def _replicas(self) -> ReplicaNotifications | None:
        is_shared = self.engine.dialect.name == "postgresql"
        return ReplicaNotifications(self.engine, self.notifier, self.tasks) if is_shared else None

    def _secret_cipher(self) -> SecretCipher:
        """Returns the cipher with the keys of the settings, or else with a key file beside an SQLite database. Replicas
        with another database share no directory, so they need keys in the settings."""
        keys, url = self.chosen.secret_keys, self.engine.url
        if keys or url.database is None or self.engine.dialect.name != "sqlite":
            return SecretCipher([key.get_secret_value() for key in keys])
        return SecretCipher([key_from(key_file(Path(url.database)))])
