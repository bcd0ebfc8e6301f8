"""Dependencies of every call: the application context from the composition root, and the caller."""

from __future__ import annotations

import ipaddress
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Engine

from jobs.storage.permissions import Permissions
from service.access import token_store
from service.access.token import Bearer, Role, Token
from service.db.engine import reading
from service.delivery.guard import Guard
from service.delivery.secret_cipher import SecretCipher
from service.events.notifier import Notifier
from service.lake.reader_pool import InProcess, Readers
from service.model.backoff import BackOff
from service.model.clock import Clock, utc_now
from service.model.errors import ForbiddenError, UnauthenticatedError
from service.observation.poll_requests import PollRequests
from service.queue.leases import LeaseConfig
from service.registration.registry import Examine
from service.scheduling import scheduler

_VERIFICATIONS = 8
# Of all that RFC 3986 allows, what a loopback host can look like.
_AUTHORITY = re.compile(r"(?P<host>[a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
_ORIGIN = re.compile(rf"https?://{_AUTHORITY.pattern}", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class AppContext:
    """The collaborators and settings of the API.

    `permissions` are the places, options and classes that tables may have; its roots are None if not set. `readers` run
    what reads tables. `local_worker` is the token of the workers that this process starts; it is not in the database,
    so it ends with the process. `flink_hosts` are the hosts whose REST API may be called. `event_source` is the
    `source` of the CloudEvents. `verifications` limits the timelines that are read at once for reports of workers.
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
    planning: scheduler.SchedulerConfig = field(default_factory=scheduler.SchedulerConfig)
    max_request_bytes: int = 8 * 1024 * 1024
    is_loopback: bool = True
    permissions: Permissions = field(default_factory=Permissions)
    storage_options: Mapping[str, str] = field(default_factory=dict)
    local_worker: Token | None = None
    public_url: str | None = None
    callback_key: str | None = field(default=None, repr=False)
    flink_hosts: tuple[str, ...] = ()
    cipher: SecretCipher = field(default_factory=SecretCipher.fresh)
    guard: Guard = field(default_factory=Guard)
    event_source: str = "/groundskeeper"
    verifications: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_VERIFICATIONS))


@dataclass(frozen=True)
class Caller:
    """The caller of a request. `is_open` if no token exists: any caller on the loopback address then has all rights."""

    name: str
    role: Role
    is_open: bool = False

    def may(self, needed: Role) -> bool:
        return self.is_open or self.role.covers(needed)


# Dependencies that only read memory are async. Otherwise each would need a thread of the pool, several per call.
async def app_context_of(request: Request) -> AppContext:
    context = request.app.state.context
    assert isinstance(context, AppContext)
    return context


AppContextDep = Annotated[AppContext, Depends(app_context_of)]

bearer = HTTPBearer(auto_error=False, description="A token from `groundskeeper token create`")


def caller_of(
    request: Request,
    context: AppContextDep,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> Caller:
    """Returns the caller. Raises UnauthenticatedError, with the same message for every fault of the token."""
    caller = _identify(request, context, credentials.credentials if credentials else None)
    request.state.caller = caller
    return caller


def _identify(request: Request, context: AppContext, text: str | None) -> Caller:
    claimed = Bearer.parse(text) if text else None
    if claimed and context.local_worker and claimed.id == context.local_worker.id:
        if context.local_worker.matches(claimed.secret):
            return Caller(context.local_worker.name, Role.WORKER)
        raise UnauthenticatedError("The token is not valid.")
    with reading(context.engine) as connection:
        token = token_store.find(connection, claimed.id) if claimed else None
        # Also when the last token is revoked: other machines are never let in without one.
        is_open = context.is_loopback and token is None and not token_store.exist(connection)
    if is_open:
        _refuse_foreign_host(request)
        return Caller("anybody", Role.ADMIN, is_open=True)
    if claimed is None or token is None or not token.matches(claimed.secret):
        raise UnauthenticatedError("The token is not valid." if text else "The request carries no token.")
    return Caller(f"{token.name} ({token.id})", token.role)


def _refuse_foreign_host(request: Request) -> None:
    """Raises ForbiddenError: a web page can point its own host name to 127.0.0.1, or post a form there, from the
    owner's browser."""
    # Not `request.url`, which falls back to the address of the server when the header is not valid.
    hosts, origins = request.headers.getlist("host"), request.headers.getlist("origin")
    named = [_AUTHORITY.fullmatch(host) for host in hosts] + [_ORIGIN.fullmatch(origin) for origin in origins]
    if len(hosts) != 1 or not all(match and is_loopback(match["host"]) for match in named):
        raise ForbiddenError(
            "Without tokens, a request must name a loopback host, and come from a page there if it comes from a page.",
            hint="Call 127.0.0.1 or localhost, or make a token with `groundskeeper token create`.",
        )


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
    """Returns the public URL of this service, without a trailing slash: the setting, or else that of this request."""
    return (context.public_url or str(request.base_url)).rstrip("/")


def roots_for(context: AppContext, caller: Caller) -> tuple[str, ...] | None:
    """Returns the allowed locations of tables; None means any. Without the setting, only a loopback service without
    tokens allows any."""
    if context.permissions.roots is not None:
        return context.permissions.roots
    return None if context.is_loopback and caller.is_open else ()
