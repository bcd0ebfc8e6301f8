"""Dependencies of calls: the parts of the application that a call uses, the address of the service, and the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Annotated

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBearer
from sqlalchemy import Connection

from service.access.oidc.identity import Identity
from service.access.session import Session
from service.access.token import Role, Token
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import reading
from service.delivery.guard import Guard
from service.events.database import Database
from service.incidents import store as incident_store
from service.metrics.installation import FleetWork, InProcess, Installation
from service.metrics.monitoring import Monitoring
from service.metrics.table_series import Chosen
from service.model.errors import ForbiddenError
from service.model.loopback import is_loopback
from service.observation.lake_access import LakeAccess
from service.policies.precedence import Subject
from service.queue import job_store
from service.registration.catalogs.catalog import Catalog
from service.scheduling.queue_settings import QueueSettings
from service.simulation.edit import Edit
from service.simulation.what_if import Period, Replayer, WhatIf


@dataclass(frozen=True)
class Exposure:
    """The part of the settings that calls use."""

    is_loopback: bool = True
    public_url: str | None = None
    callback_key: str | None = field(default=None, repr=False)
    # The token of the workers that this process starts. The token is not in the database, so it ends with the process.
    local_worker: Token | None = None
    session_lifetime: timedelta = timedelta(hours=12)
    max_request_bytes: int = 8 * 1024 * 1024
    open_metrics: bool = False  # Whether anybody may scrape.
    price_per_gb_hour: float | None = None  # For the cost in reports.
    metrics_of_tables: Chosen = field(default_factory=Chosen)
    spark_ui_url: str | None = None  # A template with the id of a Spark application.
    event_source: str = "/groundskeeper"  # The `source` of the CloudEvents.

    def url_for(self, request: Request) -> str:
        """Returns the public URL of this service, without a trailing slash: the setting, or else the request's URL.

        A caller could send any `Host`. So this header counts only if it names this machine, or if a trusted proxy has
        passed it on. Otherwise the URL has the address at which the request arrived.
        """
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        server = request.scope.get("server")
        is_known = getattr(request.state, "is_proxied", False) or is_loopback(request.url.hostname or "")
        if is_known or not server or server[1] is None:
            return str(request.base_url).rstrip("/")
        host = f"[{server[0]}]" if ":" in server[0] else server[0]
        return f"{request.url.scheme}://{host}:{server[1]}"


CALLBACK_PATH = "/v1/callbacks/hudi"
DELEGATION_PATH = "/v1/hoodie/service/"
METRICS_PATH = "/metrics"
LOGIN_PATH = "/login"
LOGIN_CALLBACK_PATH = "/login/callback"


Simulator = Callable[[Edit, Period], WhatIf]
"""Simulates an edit of policies in a separate process."""


@dataclass(frozen=True)
class AppContext:
    """The objects and settings that the calls of the API use. `service.runtime.composition` makes them. `guard` knows
    which addresses webhooks may have. `identity` is None without an OpenID provider. `simulator` is None if simulations
    run in this process. `catalogs` are the catalogs in the settings. `fleet` computes answers about all tables. If
    `fleet` is None, this process computes these answers."""

    database: Database
    lake: LakeAccess
    queue: QueueSettings = field(default_factory=QueueSettings)
    monitoring: Monitoring = field(default_factory=Monitoring)
    exposure: Exposure = field(default_factory=Exposure)
    guard: Guard = field(default_factory=Guard)
    identity: Identity | None = None
    simulator: Simulator | None = None
    catalogs: tuple[Catalog, ...] = ()
    fleet: FleetWork | None = None

    @cached_property
    def fleet_work(self) -> FleetWork:
        return self.fleet or InProcess(
            Installation(self.database, self.monitoring, chosen=self.exposure.metrics_of_tables)
        )


@dataclass(frozen=True)
class Caller:
    """The caller of a request. `is_open` is true if no token exists; then any caller on the loopback address has all
    rights. `session` is set if the caller was identified by a browser's cookie.

    The role may hold only for some tables (`Token.tables`). `may` tells whether the role holds for all tables and the
    service itself, `may_on` whether it holds for one table."""

    name: str
    role: Role
    is_open: bool = False
    token: Token | None = None
    session: Session | None = None

    @classmethod
    def of(cls, token: Token, session: Session | None = None) -> Caller:
        return cls(f"{token.name} ({token.id})", token.role, token=token, session=session)

    @property
    def token_id(self) -> str | None:
        return self.token.id if self.token else None

    def may_lease(self, group: str) -> bool:
        return self.token is None or self.token.may_lease(group)

    def may(self, needed: Role) -> bool:
        return self.is_open or (Role.READER if self._patterns else self.role).covers(needed)

    def may_on(self, needed: Role, table: Registration) -> bool:
        subject = Subject.of(table)
        has_role = not self._patterns or any(subject.matches(each) for each in self._patterns)
        return self.may(needed) or (has_role and self.role.covers(needed))

    def may_on_some(self, needed: Role) -> bool:
        """Returns whether the caller may act as `needed` on at least some tables."""
        return self.may(needed) or self.role.covers(needed)

    @property
    def _patterns(self) -> tuple[str, ...] | None:
        return self.token.tables if self.token else None

    def roots(self, lake: LakeAccess) -> tuple[str, ...] | None:
        """Returns the allowed locations of tables; None means any. Without the setting, any location is allowed, but
        only while no token exists, because then all callers are on the loopback address."""
        if lake.permissions.roots is not None:
            return lake.permissions.roots
        return None if self.is_open else ()


def _part(name: str) -> Callable[[Request], Awaitable[object]]:
    # Dependencies that only read memory are async. Otherwise each of them would need a thread of the pool, and a call
    # has several.
    async def part_of(request: Request) -> object:
        return getattr(request.app.state.context, name)

    return part_of


DatabaseDep = Annotated[Database, Depends(_part("database"))]
LakeDep = Annotated[LakeAccess, Depends(_part("lake"))]
QueueDep = Annotated[QueueSettings, Depends(_part("queue"))]
MonitoringDep = Annotated[Monitoring, Depends(_part("monitoring"))]
FleetDep = Annotated[FleetWork, Depends(_part("fleet_work"))]
ExposureDep = Annotated[Exposure, Depends(_part("exposure"))]
CatalogsDep = Annotated[tuple[Catalog, ...], Depends(_part("catalogs"))]
GuardDep = Annotated[Guard, Depends(_part("guard"))]


async def _simulator(request: Request) -> Simulator:
    context: AppContext = request.app.state.context
    return context.simulator or Replayer.of(context.database.engine)


SimulatorDep = Annotated[Simulator, Depends(_simulator)]
IdentityDep = Annotated[Identity | None, Depends(_part("identity"))]

bearer = HTTPBearer(auto_error=False, description="A token from `groundskeeper token create`")


async def caller_of(request: Request, _documented: Annotated[object, Depends(bearer)]) -> Caller:
    """Returns the caller that `service.api.authentication.Authentication` has found."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


CallerDep = Annotated[Caller, Depends(caller_of)]


def needs(role: Role, *, of_tables: bool = False) -> Callable[[Request, Caller], Awaitable[None]]:
    """Returns a dependency that raises ForbiddenError unless the caller may act as `role`: on the table that the path
    of the call names, or else everywhere. If `of_tables` is set, the operation itself checks each of its tables
    (`check_role`)."""

    async def check(request: Request, caller: CallerDep) -> None:
        if caller.may(role):
            return
        if not caller.may_on_some(role) or not (of_tables or request.path_params.keys() & _TABLE_OF_PARAMETER.keys()):
            raise forbidden(caller, role)
        if not of_tables:
            await run_in_threadpool(_check_path, caller, role, request)

    return check


def _check_path(caller: Caller, role: Role, request: Request) -> None:
    database = request.app.state.context.database
    with reading(database.engine) as connection:
        for name, table_id_of in _TABLE_OF_PARAMETER.items():
            if name in request.path_params:
                check_role(
                    caller, role, table_store.get(connection, table_id_of(connection, request.path_params[name]))
                )


_TABLE_OF_PARAMETER: Mapping[str, Callable[[Connection, str], str]] = {
    "table_id": lambda _, table_id: table_id,
    "job_id": lambda connection, job_id: job_store.get(connection, job_id).table_id,
    "incident_id": lambda connection, incident_id: incident_store.get(connection, incident_id).table_id,
}
"""Finds the table to which the object in a path belongs, by the name of the path's parameter."""


def check_role(caller: Caller, role: Role, table: Registration) -> None:
    """Raises ForbiddenError unless the caller may act as `role` on the table."""
    if not caller.may_on(role, table):
        raise forbidden(caller, role)


def forbidden(caller: Caller, role: Role) -> ForbiddenError:
    patterns = caller.token.tables if caller.token else None
    where = f" on the tables {', '.join(patterns)} only" if patterns else ""
    return ForbiddenError(f"This call needs the role {role.value}; the token has the role {caller.role.value}{where}.")
