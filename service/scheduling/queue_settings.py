"""The settings by which jobs are started, leased and tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import timedelta

from anyio import CapacityLimiter

from service.model.backoff import BackOff
from service.queue.leases import LeaseConfig
from service.scheduling.scheduler import SchedulerConfig

_VERIFICATIONS = 8


@dataclass(frozen=True)
class QueueSettings:
    planning: SchedulerConfig = field(default_factory=SchedulerConfig)
    leases: LeaseConfig = field(default_factory=lambda: LeaseConfig(timedelta(seconds=30), 3600.0, BackOff()))
    rng: random.Random = field(default_factory=random.Random)  # The generator is for jitter only, not for secrets.
    # Limits the timelines that are read at once for reports of workers.
    verifications: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_VERIFICATIONS))
    lock_break_after: timedelta = timedelta(hours=1)  # The age at which a lock may be broken.
