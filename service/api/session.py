"""Sessions of the dashboard, and their cookie: /v1/session"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

from fastapi import Request, Response
from pydantic import BaseModel, Field

from service.access import session_store
from service.access.errors import NoLoginError, UnencryptedLoginError
from service.access.session import Cookie, opened
from service.access.token import Role
from service.api.dependencies import Caller, CallerDep, DatabaseDep, Exposure, ExposureDep, IdentityDep
from service.api.routes import Routes
from service.api.statuses import CREATED
from service.db import audit_record
from service.db.engine import writing
from service.model.loopback import is_loopback

router = Routes(prefix="/v1/session", tags=["access"])

# Browsers accept a cookie with this prefix only over HTTPS, and send it only to the host that has set it.
_SECURE = "__Host-groundskeeper"


@dataclass(frozen=True)
class CookieName:
    """A cookie that no script can read. `same_site` is `lax` for a cookie that the browser has to send when another
    site redirects to this service."""

    suffix: str
    same_site: Literal["strict", "lax"]

    def of(self, request: Request) -> str | None:
        return request.cookies.get(_SECURE + self.suffix) or request.cookies.get(_plain(request) + self.suffix)

    def give(self, response: Response, request: Request, text: str, lifetime: timedelta, *, is_secure: bool) -> None:
        name, seconds = _SECURE if is_secure else _plain(request), max(0, int(lifetime.total_seconds()))
        response.set_cookie(
            name + self.suffix,
            text,
            max_age=seconds,
            path="/",
            secure=is_secure,
            httponly=True,
            samesite=self.same_site,
        )

    def take_back(self, response: Response, request: Request) -> None:
        for name, is_secure in ((_SECURE, True), (_plain(request), False)):
            response.delete_cookie(
                name + self.suffix, path="/", secure=is_secure, httponly=True, samesite=self.same_site
            )


OF_SESSION = CookieName("", "strict")
OF_LOGIN = CookieName("-login", "lax")


def cookie_of(request: Request) -> Cookie | None:
    text = OF_SESSION.of(request)
    return Cookie.parse(text) if text else None


def must_be_secure(request: Request, exposure: Exposure) -> bool:
    """Returns whether the cookie must be limited to HTTPS. The result is True if the page was loaded over HTTPS, and
    False if it came from a loopback address. Raises UnencryptedLoginError for any other page. The browser names the
    page's scheme and host in `Origin`, which proxies do not change."""
    origin = request.headers.get("origin")
    if origin is None and (exposure.public_url or "").startswith("https://"):
        return True
    try:
        page = urlsplit(str(request.base_url) if origin is None else origin)
        scheme, host = page.scheme, page.hostname or ""
    except ValueError as error:
        raise UnencryptedLoginError from error
    if scheme == "https":
        return True
    if is_loopback(host):
        return False
    raise UnencryptedLoginError


def _plain(request: Request) -> str:
    """Returns the name of the cookie without HTTPS. The name contains the port, because browsers send the cookies of a
    host to all of its ports."""
    server = request.scope.get("server")
    return f"groundskeeper-{server[1] if server and server[1] else 80}"


class Way(StrEnum):
    """How the caller was identified. `open`: no token exists, so the caller needs none."""

    OPEN = "open"
    BEARER = "bearer"
    SESSION = "session"


class SessionOut(BaseModel):
    """The caller, as the service sees it."""

    who: str = Field(description="Name of the token", examples=["ada"])
    token_id: str | None = Field(examples=["4f0c9d2b71aa"])
    role: Role = Field(description="What the caller may do", examples=["operator"])
    tables: list[str] | None = Field(
        description="Patterns of the tables for which the role holds; for others the caller is a reader. Null: the role"
        " holds for all tables",
        examples=[["tag:team=shop"]],
    )
    way: Way = Field(description="How the caller was identified", examples=["bearer"])
    expires_at: datetime | None = Field(description="When the session or the token ends; null: never")

    @classmethod
    def of(cls, caller: Caller, *, expires_at: datetime | None = None) -> SessionOut:
        token, session = caller.token, caller.session
        if token is None:
            return cls(who=caller.name, token_id=None, role=caller.role, tables=None, way=Way.OPEN, expires_at=None)
        end = expires_at or (session.expires_at if session else token.expires_at)
        way = Way.SESSION if session or expires_at else Way.BEARER
        tables = None if token.tables is None else list(token.tables)
        return cls(who=token.name, token_id=token.id, role=token.role, tables=tables, way=way, expires_at=end)


class LogOutOut(BaseModel):
    """What the browser still has to do after a log-out from this service."""

    log_out_url: str | None = Field(
        description="Where a browser logs out of the OpenID provider too; null if it need not, or cannot",
        examples=["https://sso.example.com/logout?client_id=groundskeeper"],
    )


@router.reader(
    "POST ", "Log in: exchange a token for a cookie", NoLoginError, UnencryptedLoginError, status_code=CREATED
)
def log_in(
    request: Request, response: Response, database: DatabaseDep, exposure: ExposureDep, caller: CallerDep
) -> SessionOut:
    """Send the token as `Authorization: Bearer <token>`. The answer sets a cookie for the dashboard, which ends after
    GROUNDSKEEPER_SESSION_HOURS, with the token, or when you log out. Other clients send their token with each call."""
    if caller.token is None or caller.token.is_person or caller.session is not None:
        raise NoLoginError
    is_secure = must_be_secure(request, exposure)
    cookie, session = opened(caller.token, database.clock(), exposure.session_lifetime)
    with writing(database.engine) as connection:
        audit_record.about("session", session.id)
        session_store.add(connection, session)
    OF_SESSION.give(response, request, str(cookie), session.lifetime, is_secure=is_secure)
    return SessionOut.of(caller, expires_at=session.expires_at)


@router.reader("GET ", "Show who you are")
def get_session(caller: CallerDep) -> SessionOut:
    return SessionOut.of(caller)


@router.reader("DELETE ", "Log out: end the session of the cookie")
def log_out(
    request: Request,
    response: Response,
    database: DatabaseDep,
    exposure: ExposureDep,
    *,
    identity: IdentityDep,
    caller: CallerDep,
) -> LogOutOut:
    """After this call, copies of the cookie are not valid. Without a session, the call changes nothing."""
    url = None
    if caller.session is not None:
        with writing(database.engine) as connection:
            audit_record.about("session", caller.session.id)
            session_store.remove(connection, caller.session.id)
        if identity is not None and caller.session.id_token is not None:
            id_token = database.cipher.open(caller.session.id_token)
            url = identity.end_url(id_token, f"{exposure.url_for(request)}/")
    OF_SESSION.take_back(response, request)
    return LogOutOut(log_out_url=url)
