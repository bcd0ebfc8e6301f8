"""Identifies the caller of each request before its body is read."""

from __future__ import annotations

import asyncio
import base64
import hmac
import re
import time
from collections import OrderedDict
from functools import partial

from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.access import session_store, token_store
from service.access.known_tokens import KnownTokens, NotKnownError
from service.access.oidc.identity import Identity
from service.access.session import Cookie
from service.access.token import Bearer, Role, Token
from service.api.dependencies import CALLBACK_PATH, DELEGATION_PATH, METRICS_PATH, Caller, Exposure
from service.api.errors import MediaTypeError
from service.api.problems import answer
from service.api.session import cookie_of
from service.db.engine import reading
from service.events.database import Database
from service.model.errors import ForbiddenError, GroundskeeperError, UnauthenticatedError
from service.model.loopback import is_loopback

# A loopback host may be spelled in these ways, which are fewer than RFC 3986 allows.
_AUTHORITY = re.compile(r"(?P<host>[a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
_ORIGIN = re.compile(rf"https?://{_AUTHORITY.pattern}", re.IGNORECASE | re.ASCII)
_JSON = re.compile(r"application/([a-z0-9.+-]+\+)?json\s*(;.*)?", re.IGNORECASE | re.ASCII)
# The connection of a refused call with a larger body is closed, so that the body need not be read.
_LARGE_BYTES = 64 * 1024


class Authentication:
    """Refuses scrapes and calls below /v1 that have no valid token. The endpoints find the caller in the request's
    state."""

    def __init__(self, app: ASGIApp, database: Database, exposure: Exposure, identity: Identity | None) -> None:
        self._app = app
        self._database, self._exposure, self._identity = database, exposure, identity
        self._failures = Failures()
        self._tokens = KnownTokens(database.engine)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._guards(scope["path"]):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            request.state.caller = await self._caller(request)
        except GroundskeeperError as error:
            has_tried = "authorization" in request.headers or cookie_of(request) is not None
            if isinstance(error, UnauthenticatedError) and has_tried:
                address = scope["client"][0] if scope.get("client") else ""
                await asyncio.sleep(self._failures.pause_after(address, time.monotonic()))
            headers = {"Connection": "close"} if _is_large(request) else {}
            if isinstance(error, UnauthenticatedError) and scope["path"].startswith(DELEGATION_PATH):
                # Hudi's client sends its credentials only to a server that asks for Basic authentication.
                headers["WWW-Authenticate"] = 'Basic realm="groundskeeper", charset="UTF-8"'
            await answer(error, instance=scope["path"], headers=headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _caller(self, request: Request) -> Caller:
        """Identifies most callers without reading the database, because a read would need a thread."""
        identify = partial(_identify, request, self._database, self._exposure, self._identity, self._tokens)
        try:
            return identify(reads=False)
        except NotKnownError:
            return await run_in_threadpool(identify, reads=True)

    def _guards(self, path: str) -> bool:
        return path.startswith("/v1/") or (path == METRICS_PATH and not self._exposure.open_metrics)


class Failures:
    """The failed authentications of the last minute, by address. The more failures an address has, the later its next
    failure is answered."""

    FREE = 5
    FIRST_SECONDS = 0.1
    MOST_SECONDS = 2.0
    FORGOTTEN_AFTER_SECONDS = 60.0
    MOST_ADDRESSES = 10_000

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def pause_after(self, address: str, now: float) -> float:
        """Counts a failure; returns how many seconds its answer must wait. `now` is monotonic, in seconds."""
        count, last = self._counts.pop(address, (0, now))
        count = 1 if now - last > self.FORGOTTEN_AFTER_SECONDS else count + 1
        self._counts[address] = (count, now)
        if len(self._counts) > self.MOST_ADDRESSES:
            self._counts.popitem(last=False)
        excess = count - self.FREE
        return 0.0 if excess <= 0 else min(self.FIRST_SECONDS * 2.0 ** min(excess - 1, 10), self.MOST_SECONDS)


def _identify(
    request: Request,
    database: Database,
    exposure: Exposure,
    identity: Identity | None,
    tokens: KnownTokens,
    *,
    reads: bool,
) -> Caller:
    """Returns the caller. Raises UnauthenticatedError, with the same message for every fault of the token. Raises
    NotKnownError if `reads` is False and the database would have to be read."""
    if exposure.callback_key is not None and request.scope["path"] == CALLBACK_PATH:
        return _writer(request, exposure.callback_key)
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if request.scope["path"].startswith(DELEGATION_PATH):
        _refuse_page(request)
        password = _password(text) if scheme.lower() == "basic" else None
        if exposure.callback_key is not None:
            return _delegating_writer(password, exposure.callback_key)
        scheme, text = ("bearer", password) if password is not None else (scheme, text)
    claimed = Bearer.parse(text.strip()) if scheme.lower() == "bearer" else None
    token = _token(exposure, tokens, claimed, reads=reads)
    # Callers on other machines always need a token. If tokens were created and all were revoked, all callers need one.
    if token is None and identity is None and exposure.is_loopback and not tokens.exist(reads=reads):
        _refuse_foreign_host(request)
        _refuse_form(request)
        return Caller("anybody", Role.ADMIN, is_open=True)
    if not text and (cookie := cookie_of(request)) is not None:
        _refuse_page(request)
        _refuse_form(request)
        _check(reads=reads)
        return _of_session(database, cookie)
    if identity is not None and claimed is None and scheme.lower() == "bearer" and identity.provider.audience:
        _check(reads=reads)
        return _of_access_token(database, identity, text.strip())
    if claimed is None or token is None or not token.matches(claimed.secret, database.clock()):
        raise UnauthenticatedError("The token is not valid." if text else "The request carries no token.")
    return Caller.of(token)


def _check(*, reads: bool) -> None:
    if not reads:
        raise NotKnownError


def _of_access_token(database: Database, identity: Identity, text: str) -> Caller:
    now = database.clock()
    person = identity.of_access_token(text, now)
    with reading(database.engine) as connection:
        known = token_store.current(connection, person)
    if known is None or not known.is_valid(now):
        raise UnauthenticatedError("The token is not valid.")
    return Caller.of(known)


def _token(exposure: Exposure, tokens: KnownTokens, claimed: Bearer | None, *, reads: bool) -> Token | None:
    if claimed is None:
        return None
    if exposure.local_worker and claimed.id == exposure.local_worker.id:
        return exposure.local_worker
    return tokens.find(claimed.id, reads=reads)


def _of_session(database: Database, cookie: Cookie) -> Caller:
    """Returns the caller with the rights of the session's token. Raises UnauthenticatedError if the session or its
    token has ended."""
    now = database.clock()
    with reading(database.engine) as connection:
        session = session_store.find(connection, cookie.id)
        token = token_store.find(connection, session.token_id) if session else None
    if session is None or token is None or not session.matches(cookie.secret, now) or not token.is_valid(now):
        raise UnauthenticatedError("The session is not valid, or has ended.", hint="Log in again.")
    return Caller.of(token, session)


def _writer(request: Request, key: str) -> Caller:
    given = request.headers.get("hudi-callback-key", "")
    if not hmac.compare_digest(given.encode(), key.encode()):
        raise UnauthenticatedError(
            "The header HUDI-CALLBACK-KEY is missing or wrong.",
            hint="Set hoodie.write.commit.callback.http.api.key in the writer.",
        )
    return Caller("a writer", Role.READER)


def _delegating_writer(password: str | None, key: str) -> Caller:
    if password is None or not hmac.compare_digest(password.encode(), key.encode()):
        raise UnauthenticatedError(
            "The password in the user info is missing or wrong.",
            hint="Set hoodie.table.service.manager.uris=http://writer:<the callback key>@<this service>.",
        )
    return Caller("a writer", Role.READER)


def _password(credentials: str) -> str | None:
    """Returns the password of HTTP Basic authentication. Hudi's client for a table service manager can send no other
    credentials: its HTTP client makes them from the user info of the URI."""
    try:
        _, colon, password = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return password if colon else None


def _refuse_page(request: Request) -> None:
    """Raises ForbiddenError if a web page of another site, port or subdomain has made the browser send this call. Such
    a call may be a GET that changes something, or may carry the user's cookie."""
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise ForbiddenError("A web page of another site may not make this call.", hint="Call it from the dashboard.")


def _refuse_foreign_host(request: Request) -> None:
    """Raises ForbiddenError if the request does not name a loopback host. Otherwise a web page could point its own host
    name to 127.0.0.1, or make the user's browser post a form there."""
    # The headers are read directly, because `request.url` has the address of the server if `Host` is not valid.
    hosts, origins = request.headers.getlist("host"), request.headers.getlist("origin")
    named = [_AUTHORITY.fullmatch(host) for host in hosts] + [_ORIGIN.fullmatch(origin) for origin in origins]
    if len(hosts) != 1 or not all(match and is_loopback(match["host"]) for match in named):
        raise ForbiddenError(
            "Without tokens, a request must name a loopback host, and so must the address of a web page that sends the"
            " request.",
            hint="Call 127.0.0.1 or localhost, or create a token with `groundskeeper token create`.",
        )


def _refuse_form(request: Request) -> None:
    """Raises MediaTypeError for a POST that is not JSON and may come from a page of another site.

    Browsers send such a POST without asking. They send JSON, and other methods, only after a preflight, which the
    service never grants. Browsers name the page's origin in each POST, so a POST with neither origin nor content type
    comes from a program. The service's own pages may send other types, because the page of the API documentation sends
    no type with a call without a body."""
    sent = request.headers
    origin = sent.get("origin", "").partition("://")[2]
    is_own = bool(origin) and origin == sent.get("host")
    is_json = _JSON.fullmatch(sent.get("content-type", ""))
    if request.method == "POST" and not is_json and not is_own and ("origin" in sent or "content-type" in sent):
        raise MediaTypeError


def _is_large(request: Request) -> bool:
    length = request.headers.get("content-length", "0")
    return "transfer-encoding" in request.headers or not length.isdigit() or int(length) > _LARGE_BYTES
