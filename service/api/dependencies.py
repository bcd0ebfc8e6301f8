"""What every call needs: the parts that the composition root put together, and who is calling."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Engine

from service.access import token_store
from service.access.token import Bearer, Role, Token
from service.db.engine import reading
from service.delivery.guard import Guard
from service.delivery.secret_cipher import SecretCipher
from service.events.notifier import Notifier
from service.model.backoff import BackOff
from service.model.clock import Clock, utc_now
from service.model.errors import ForbiddenError, UnauthenticatedError
from service.observation.poll_requests import PollRequests
from service.queue.leases import LeaseConfig
from service.registration.registry import Examine
from service.scheduling import scheduler


@dataclass(frozen=True)
class AppContext:
    """Everything the API is made of. `allowed_roots` of None: not set. `local_worker` is the token of the worker that
    this very process starts; it is in no database, so it ends with the process. `flink_hosts` are those whose
    REST API may be called. `event_source` is that of the CloudEvents."""

    engine: Engine
    examine: Examine
    clock: Clock = utc_now
    notifier: Notifier = field(default_factory=Notifier)
    poll_requests: PollRequests = field(default_factory=PollRequests)
    # Jitter only; nothing secret comes from it.
    rng: random.Random = field(default_factory=random.Random)
    config: LeaseConfig = field(default_factory=lambda: LeaseConfig(timedelta(seconds=30), 3600.0, BackOff()))
    max_attempts: int = 3
    planning: scheduler.SchedulerConfig = field(default_factory=scheduler.SchedulerConfig)
    max_request_bytes: int = 8 * 1024 * 1024
    is_loopback: bool = True
    allowed_roots: tuple[str, ...] | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)
    local_worker: Token | None = None
    public_url: str | None = None
    callback_key: str | None = field(default=None, repr=False)
    flink_hosts: tuple[str, ...] = ()
    cipher: SecretCipher = field(default_factory=SecretCipher.fresh)
    guard: Guard = field(default_factory=Guard)
    event_source: str = "/groundskeeper"


@dataclass(frozen=True)
class Caller:
    """Who calls. `is_open` when no token was ever made: then whoever reaches the loopback address may do all."""

    name: str
    role: Role
    is_open: bool = False

    def may(self, needed: Role) -> bool:
        return self.is_open or self.role.covers(needed)


# What only looks at memory is async: else it would wait for a thread, and most calls have several of them.
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
    """Raises UnauthenticatedError, with the same words whatever was wrong with the token."""
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
        is_open = token is None and not token_store.exist(connection)
    if is_open:
        _refuse_foreign_host(request)
        return Caller("anybody", Role.ADMIN, is_open=True)
    if claimed is None or token is None or not token.matches(claimed.secret):
        raise UnauthenticatedError("The token is not valid." if text else "There is no token.")
    return Caller(f"{token.name} ({token.id})", token.role)


def _refuse_foreign_host(request: Request) -> None:
    """A web page can point its own host name to 127.0.0.1, or send a form there, from the owner's browser."""
    origin = request.headers.get("origin")
    for host in (request.url.hostname, urlsplit(origin).hostname if origin else "localhost"):
        if not is_loopback(host or ""):
            raise ForbiddenError(
                f"Without tokens only a loopback host may be called, and from no other page, not {host}.",
                hint="Call 127.0.0.1 or localhost, or make a token with `groundskeeper token create`.",
            )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


CallerDep = Annotated[Caller, Depends(caller_of)]


def needs(role: Role) -> Callable[[Caller], Awaitable[None]]:
    """A dependency that lets only callers pass that may act as `role`. Raises ForbiddenError."""

    async def check(caller: CallerDep) -> None:
        if not caller.may(role):
            raise ForbiddenError(f"It needs the role {role.value}, and the token has the role {caller.role.value}.")

    return check


def url_of_service(request: Request, context: AppContext) -> str:
    """How others reach this service: by the setting, or else as this caller did. Without a slash at the end."""
    return (context.public_url or str(request.base_url)).rstrip("/")


def roots_for(context: AppContext, caller: Caller) -> tuple[str, ...] | None:
    """Where tables may lie: None is anywhere. Without a setting that is only so for a service nobody else reaches."""
    if context.allowed_roots is not None:
        return context.allowed_roots
    return None if context.is_loopback and caller.is_open else ()
