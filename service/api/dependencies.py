"""Dependencies of every call: the parts of the application that it uses, and the caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from service.access.session import Session
from service.access.token import Role, Token
from service.api.exposure import Exposure
from service.delivery.guard import Guard
from service.events.database import Database
from service.metrics.monitoring import Monitoring
from service.model.errors import ForbiddenError
from service.observation.lake_access import LakeAccess
from service.scheduling.queue_settings import QueueSettings

CALLBACK_PATH = "/v1/callbacks/hudi"
DELEGATION_PATH = "/v1/hoodie/service/"
METRICS_PATH = "/metrics"


@dataclass(frozen=True)
class AppContext:
    """The collaborators and settings of the API, from the composition root. A call takes the parts that it uses.
    `guard` knows which addresses webhooks may have."""

    database: Database
    lake: LakeAccess
    queue: QueueSettings = field(default_factory=QueueSettings)
    monitoring: Monitoring = field(default_factory=Monitoring)
    exposure: Exposure = field(default_factory=Exposure)
    guard: Guard = field(default_factory=Guard)


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
        if not caller.may(role):
            raise ForbiddenError(f"This call needs the role {role.value}; the token has the role {caller.role.value}.")

    return check
