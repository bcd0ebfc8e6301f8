"""Dependencies of every call: the application context from the composition root, and the caller."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from sqlalchemy import Engine

from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher
from service.access.session import Session
from service.access.token import Role, Token
from service.delivery.guard import Guard
from service.events.notifier import Notifier
from service.health.cached_problems import Board
from service.lake.reader_pool import InProcess, Readers
from service.metrics.process_metrics import ProcessMetrics
from service.model.backoff import BackOff
from service.model.clock import Clock, utc_now
from service.model.errors import ForbiddenError
from service.model.rounds import Rounds
from service.observation.poll_requests import PollRequests
from service.queue.forecaster import Forecaster
from service.queue.leases import LeaseConfig
from service.registration.registry import Examine
from service.scheduling import scheduler

CALLBACK_PATH = "/v1/callbacks/hudi"
DELEGATION_PATH = "/v1/hoodie/service/"
METRICS_PATH = "/metrics"
_VERIFICATIONS = 8


@dataclass(frozen=True)
class AppContext:
    """The collaborators and settings of the API.

    `permissions` are the places, options and classes that tables may have; its roots are None if not set. `readers` run
    what reads tables. `local_worker` is the token of the workers that this process starts; it is not in the database,
    so it ends with the process. `flink_hosts` are the hosts whose REST API may be called, `lock_hosts` those of lock
    servers that may be connected to. A lock is not broken before it is `lock_break_after` old. `event_source` is the
    `source` of the CloudEvents. `rounds` are those of the background tasks. `verifications` limits
    the timelines that are read at once for reports of workers. `metrics` are those that the process itself measures;
    with `open_metrics` anybody may scrape. `board` has the problems that were computed last.
    """

    engine: Engine
    examine: Examine
    readers: Readers = field(default_factory=InProcess)
    clock: Clock = utc_now
    notifier: Notifier = field(default_factory=Notifier)
    poll_requests: PollRequests = field(default_factory=PollRequests)
    # For jitter only, not for secrets.
    rng: random.Random = field(default_factory=random.Random)
    config: LeaseConfig = field(default_factory=lambda: LeaseConfig(timedelta(seconds=30), 3600.0, BackOff()))
    max_attempts: int = 3
    lock_break_after: timedelta = timedelta(hours=1)
    planning: scheduler.SchedulerConfig = field(default_factory=scheduler.SchedulerConfig)
    max_request_bytes: int = 8 * 1024 * 1024
    is_loopback: bool = True
    permissions: Permissions = field(default_factory=Permissions)
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    local_worker: Token | None = None
    session_lifetime: timedelta = timedelta(hours=12)
    public_url: str | None = None
    callback_key: str | None = field(default=None, repr=False)
    flink_hosts: tuple[str, ...] = ()
    lock_hosts: tuple[str, ...] = ()
    cipher: SecretCipher = field(default_factory=SecretCipher.fresh)
    guard: Guard = field(default_factory=Guard)
    event_source: str = "/groundskeeper"
    rounds: Rounds = field(default_factory=Rounds)
    metrics: ProcessMetrics = field(default_factory=ProcessMetrics)
    open_metrics: bool = False
    board: Board = field(default_factory=Board)
    forecaster: Forecaster = field(default_factory=Forecaster)
    verifications: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_VERIFICATIONS))


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


# Dependencies that only read memory are async. Otherwise each would need a thread of the pool, several per call.
async def app_context_of(request: Request) -> AppContext:
    context = request.app.state.context
    assert isinstance(context, AppContext)
    return context


AppContextDep = Annotated[AppContext, Depends(app_context_of)]

bearer = HTTPBearer(auto_error=False, description="A token from `groundskeeper token create`")


async def caller_of(request: Request, _documented: Annotated[object, Depends(bearer)]) -> Caller:
    """Returns the caller that `service.api.authentication.Authentication` has found."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


CallerDep = Annotated[Caller, Depends(caller_of)]


def needs(role: Role) -> Callable[[Caller], Awaitable[None]]:
    """Returns a dependency that raises ForbiddenError unless the caller may act as `role`."""

    async def check(caller: CallerDep) -> None:
        if not caller.may(role):
            raise ForbiddenError(f"This call needs the role {role.value}; the token has the role {caller.role.value}.")

    return check


def url_of_service(request: Request, context: AppContext) -> str:
    """Returns the public URL of this service, without a trailing slash: the setting, or else that of this request.

    The caller chooses the Host that it sends. It counts only if it names this machine, or a trusted proxy passes it on;
    otherwise the address at which the request has arrived.
    """
    if context.public_url is not None:
        return context.public_url.rstrip("/")
    server = request.scope.get("server")
    is_told = getattr(request.state, "is_proxied", False) or is_loopback(request.url.hostname or "")
    if is_told or not server or server[1] is None:
        return str(request.base_url).rstrip("/")
    host = f"[{server[0]}]" if ":" in server[0] else server[0]
    return f"{request.url.scheme}://{host}:{server[1]}"


def roots_for(context: AppContext, caller: Caller) -> tuple[str, ...] | None:
    """Returns the allowed locations of tables; None means any. Without the setting, only a loopback service without
    tokens allows any."""
    if context.permissions.roots is not None:
        return context.permissions.roots
    return None if context.is_loopback and caller.is_open else ()
