"""Sessions of browsers. A browser sends its token once, and from then on a cookie. Only a hash of the cookie is
stored."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from service.access.token import Token, digest
from service.model.record import Record


@dataclass(frozen=True)
class Session(Record):
    """A stored session; `digest` is the hex SHA-256 of its secret. The session has the rights of its token, and ends
    when that token ends."""

    id: str
    token_id: str
    digest: str
    created_at: datetime
    expires_at: datetime
    # The ID token that the OpenID provider issued at the log-in, encrypted. A log-out at the provider needs it.
    id_token: str | None = None

    @property
    def lifetime(self) -> timedelta:
        return self.expires_at - self.created_at

    def is_valid(self, now: datetime) -> bool:
        return now < self.expires_at

    def matches(self, secret: str, now: datetime) -> bool:
        return self.is_valid(now) and hmac.compare_digest(self.digest, digest(secret))


@dataclass(frozen=True)
class Cookie:
    """The parts of the value `<id>.<secret>` of a cookie."""

    id: str
    secret: str

    def __str__(self) -> str:
        return f"{self.id}.{self.secret}"

    def __repr__(self) -> str:
        return f"Cookie(id={self.id!r})"

    @classmethod
    def parse(cls, text: str) -> Cookie | None:
        session_id, dot, secret = text.partition(".")
        is_one = dot and secret and session_id.isascii() and session_id.isalnum() and len(session_id) <= 32
        return cls(session_id, secret) if is_one else None


def opened(
    token: Token, now: datetime, lifetime: timedelta, *, session_id: str | None = None, id_token: str | None = None
) -> tuple[Cookie, Session]:
    """Opens a session. Returns the cookie for the browser, and the session to store. The session ends no later than its
    token."""
    cookie = Cookie(session_id or secrets.token_hex(8), secrets.token_hex(32))
    end = now + lifetime
    expires_at = end if token.expires_at is None else min(end, token.expires_at)
    return cookie, Session(cookie.id, token.id, digest(cookie.secret), now, expires_at, id_token)
