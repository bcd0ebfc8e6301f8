"""The objects that answers about all tables are computed from, and the process that computes them. If there are very
many tables, the process of `service.runtime.fleet_process` computes these answers, so that no other call shares an
interpreter with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from service.events.database import Database
from service.metrics.database_state import Reader
from service.metrics.monitoring import Monitoring
from service.metrics.table_series import Chosen

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Installation:
    """The objects that answers about all tables need. `chosen` selects the tables that have metrics of their own."""

    database: Database
    monitoring: Monitoring = field(default_factory=Monitoring)
    chosen: Chosen = field(default_factory=Chosen)
    state: Reader = field(init=False)

    def __post_init__(self) -> None:
        state = Reader(self.database.engine, self.database.clock, self.monitoring.forecaster, self.chosen)
        object.__setattr__(self, "state", state)


class FleetWork(Protocol):
    """Calls functions with the `Installation`."""

    def run(self, function: Callable[Concatenate[Installation, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...


@dataclass(frozen=True)
class InProcess:
    """Calls functions in the calling thread."""

    installation: Installation

    def run(self, function: Callable[Concatenate[Installation, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return function(self.installation, *args, **kwargs)
