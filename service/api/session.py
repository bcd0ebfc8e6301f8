"""Sessions of the dashboard: /v1/session"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from fastapi import Request, Response
from pydantic import BaseModel, Field

from service.access import session_store
from service.access.errors import NoLoginError, UnencryptedLoginError
from service.access.session import opened
from service.access.token import Role
from service.api import session_cookie
from service.api.dependencies import Caller, CallerDep, DatabaseDep, ExposureDep
from service.api.routes import Routes
from service.api.statuses import CREATED, NOTHING
from service.db import audit_record
from service.db.engine import writing

router = Routes(prefix="/v1/session", tags=["access"])


class Way(StrEnum):
    """`open`: no token exists, and the caller needs none."""

    OPEN = "open"
    BEARER = "bearer"
    SESSION = "session"


class SessionOut(BaseModel):
    """The caller, as the service sees it."""

    who: str = Field(description="Name of the token", examples=["ada"])
    token_id: str | None = Field(examples=["4f0c9d2b71aa"])
    role: Role = Field(description="What the caller may do", examples=["operator"])
    way: Way = Field(description="How the caller is known", examples=["bearer"])
    expires_at: datetime | None = Field(description="When the session ends, or the token; null: never")

    @classmethod
    def of(cls, caller: Caller, *, expires_at: datetime | None = None) -> SessionOut:
        token, session = caller.token, caller.session
        if token is None:
            return cls(who=caller.name, token_id=None, role=caller.role, way=Way.OPEN, expires_at=None)
        end = expires_at or (session.expires_at if session else token.expires_at)
        way = Way.SESSION if session or expires_at else Way.BEARER
        return cls(who=token.name, token_id=token.id, role=token.role, way=way, expires_at=end)


@router.on(
    "POST ",
    "Log in: exchange a token for a cookie",
    NoLoginError,
    UnencryptedLoginError,
    role=Role.READER,
    status_code=CREATED,
)
def log_in(
    request: Request, response: Response, database: DatabaseDep, exposure: ExposureDep, caller: CallerDep
) -> SessionOut:
    """Send the token as `Authorization: Bearer <token>`. The answer sets a cookie for the dashboard, which ends after
    GROUNDSKEEPER_SESSION_HOURS, with the token, or when you log out. Other clients send their token with each call."""
    if caller.token is None or caller.session is not None:
        raise NoLoginError
    is_secure = session_cookie.must_be_secure(request, exposure)
    cookie, session = opened(caller.token, database.clock(), exposure.session_lifetime)
    with writing(database.engine) as connection:
        audit_record.about("session", session.id)
        session_store.add(connection, session)
    session_cookie.set_cookie(response, cookie, session, is_secure=is_secure, request=request)
    return SessionOut.of(caller, expires_at=session.expires_at)


@router.on("GET ", "Show who you are", role=Role.READER)
def get_session(caller: CallerDep) -> SessionOut:
    return SessionOut.of(caller)


@router.on("DELETE ", "Log out: end the session of the cookie", role=Role.READER, status_code=NOTHING)
def log_out(request: Request, response: Response, database: DatabaseDep, caller: CallerDep) -> None:
    """A copy of the cookie is worth nothing afterwards. Without a session it changes nothing."""
    if caller.session is not None:
        with writing(database.engine) as connection:
            audit_record.about("session", caller.session.id)
            session_store.remove(connection, caller.session.id)
    session_cookie.clear(response, request)
