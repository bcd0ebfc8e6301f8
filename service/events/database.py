"""The database of the service, with the clock, notifier and cipher that changes need."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Engine

from service.access.secret_cipher import SecretCipher
from service.events.notifier import Notifier
from service.model.clock import Clock, utc_now


@dataclass(frozen=True)
class Database:
    """`clock` dates the rows, `notifier` wakes listeners that wait for a change, and `cipher` encrypts stored
    secrets."""

    engine: Engine
    clock: Clock = utc_now
    notifier: Notifier = field(default_factory=Notifier)
    cipher: SecretCipher = field(default_factory=SecretCipher.fresh)
