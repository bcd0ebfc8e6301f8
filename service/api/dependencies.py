"""Dependencies of every call: the parts of the application that it uses, the address of the service, and the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from service.access.oidc.identity import Identity
from service.access.session import Session
from service.access.token import Role, Token
from service.delivery.guard import Guard
from service.events.database import Database
from service.metrics.monitoring import Monitoring
from service.metrics.table_series import Chosen
from service.model.errors import ForbiddenError
from service.model.loopback import is_loopback
from service.observation.lake_access import LakeAccess
from service.scheduling.queue_settings import QueueSettings


@dataclass(frozen=True)
class Exposure:
    """The part of the settings that calls see."""

    is_loopback: bool = True
    public_url: str | None = None
    callback_key: str | None = field(default=None, repr=False)
    # The token of the workers that this process starts: not in the database, so it ends with the process.
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

        The caller chooses the Host that it sends. It counts only if it names this machine, or a trusted proxy passes it
        on; otherwise the address at which the request has arrived.
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


@dataclass(frozen=True)
class AppContext:
    """The collaborators and settings of the API, from the composition root. A call takes the parts that it uses.
    `guard` knows which addresses webhooks may have; `identity` is None without an OpenID provider."""

    database: Database
    lake: LakeAccess
    queue: QueueSettings = field(default_factory=QueueSettings)
    monitoring: Monitoring = field(default_factory=Monitoring)
    exposure: Exposure = field(default_factory=Exposure)
    guard: Guard = field(default_factory=Guard)
    identity: Identity | None = None


@dataclass(frozen=True)
class Caller:
    """The caller of a request. `is_open` if no token exists: any caller on the loopback address then has all rights.
    `session` is set if a browser's cookie stands for the token."""

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
        return self.is_open or self.role.covers(needed)

    def roots(self, lake: LakeAccess) -> tuple[str, ...] | None:
        """Returns the allowed locations of tables; None means any. Without the setting, only a loopback service without
        tokens allows any."""
        if lake.permissions.roots is not None:
            return lake.permissions.roots
        return None if self.is_open else ()


def _part(name: str) -> Callable[[Request], Awaitable[object]]:
    # Dependencies that only read memory are async. Otherwise each would need a thread of the pool, several per call.
    async def part_of(request: Request) -> object:
        return getattr(request.app.state.context, name)

    return part_of


DatabaseDep = Annotated[Database, Depends(_part("database"))]
LakeDep = Annotated[LakeAccess, Depends(_part("lake"))]
QueueDep = Annotated[QueueSettings, Depends(_part("queue"))]
MonitoringDep = Annotated[Monitoring, Depends(_part("monitoring"))]
ExposureDep = Annotated[Exposure, Depends(_part("exposure"))]
GuardDep = Annotated[Guard, Depends(_part("guard"))]
IdentityDep = Annotated[Identity | None, Depends(_part("identity"))]

bearer = HTTPBearer(auto_error=False, description="A token from `groundskeeper token create`")


async def caller_of(request: Request, _documented: Annotated[object, Depends(bearer)]) -> Caller:
    """Returns the caller that `service.api.authentication.Authentication` has found."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


CallerDep = Annotated[Caller, Depends(caller_of)]


def needs(role: Role) -> Callable[[Caller], Awaitable[None]]:
    """Returns a dependency that raises ForbiddenError unless the caller may act as `role`."""

    async def check(caller: CallerDep) -> None:
        check_role(caller, role)

    return check


def check_role(caller: Caller, role: Role) -> None:
    """Raises ForbiddenError unless the caller may act as `role`."""
    if not caller.may(role):
        raise ForbiddenError(f"This call needs the role {role.value}; the token has the role {caller.role.value}.")
