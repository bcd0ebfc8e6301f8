"""The parts of the API's context that depend only on the settings."""

from __future__ import annotations

import random
from datetime import timedelta

from service.access.oidc.identity import Identity
from service.access.secret_cipher import SecretCipher
from service.access.token import Token
from service.api.dependencies import Exposure
from service.metrics.table_series import Chosen
from service.model.backoff import BackOff
from service.model.loopback import is_loopback
from service.queue.leases import LeaseConfig
from service.runtime.settings import Settings
from service.scheduling.admission import Limits
from service.scheduling.queue_settings import QueueSettings
from service.scheduling.scheduler import SchedulerConfig
from service.simulation.fleet import Fleet

# At most this share of a processor core is spent on decisions.
_SHARE = 0.25


def queue_settings(chosen: Settings, rng: random.Random) -> QueueSettings:
    return QueueSettings(
        planning=SchedulerConfig(
            limits=Limits(
                chosen.max_active_jobs,
                chosen.max_active_by_group,
                chosen.max_active_by_kind,
                at_once=chosen.max_new_jobs,
            ),
            worker_hours_by_group=chosen.worker_hours_by_group,
            max_attempts=chosen.max_attempts,
            seconds_at_once=_SHARE * chosen.plan_seconds,
        ),
        leases=LeaseConfig(
            lease=timedelta(seconds=chosen.lease_seconds),
            timeout_seconds=chosen.job_timeout_seconds,
            backoff=BackOff(first=chosen.retry_first_seconds, most=chosen.retry_most_seconds),
            lock_wait_seconds=chosen.lock_wait_seconds,
            requested_first=chosen.requested_first,
            looks_at_locks=True,
        ),
        rng=rng,
        lock_break_after=timedelta(seconds=chosen.lock_break_seconds),
    )


def simulated_fleet(chosen: Settings, planning: SchedulerConfig) -> Fleet:
    return Fleet(
        limits=planning.limits,
        worker_hours_by_group=planning.worker_hours_by_group,
        poll_seconds=chosen.poll_seconds,
    )


def exposure(chosen: Settings, local_worker: Token) -> Exposure:
    return Exposure(
        is_loopback=is_loopback(chosen.host),
        public_url=chosen.public_url,
        callback_key=chosen.callback_key.get_secret_value() if chosen.callback_key else None,
        local_worker=local_worker,
        session_lifetime=timedelta(hours=chosen.session_hours),
        max_request_bytes=chosen.max_request_bytes,
        open_metrics=chosen.open_metrics,
        event_source=chosen.event_source,
        metrics_of_tables=Chosen(chosen.metrics_tables, chosen.metrics_most_tables),
        spark_ui_url=chosen.spark_ui_url,
        price_per_gb_hour=chosen.price_per_gb_hour,
    )


def identity(chosen: Settings, cipher: SecretCipher) -> Identity | None:
    """Returns the object that identifies persons; None without a provider. Raises SecretKeyMissingError if there is no
    key, because log-ins are encrypted before browsers get them."""
    provider = chosen.provider
    if provider is None:
        return None
    cipher.seal("")
    return Identity(provider)
