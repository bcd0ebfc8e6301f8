"""Bearer tokens and their roles. Only a hash of a token is ever stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from service.model.record import Record


class Role(StrEnum):
    """The roles. reader < operator < admin: each includes the rights of the role before it. A worker may only lease,
    send heartbeats and report."""

    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"

    def covers(self, needed: Role) -> bool:
        if Role.WORKER in (self, needed):
            return self is needed
        return RANK[self] >= RANK[needed]


RANK = {Role.READER: 0, Role.OPERATOR: 1, Role.ADMIN: 2}


# The latest end of a token is in the year 2999, so that the time can be shown in any zone.
_LAST_SECONDS = 32_472_144_000


@dataclass(frozen=True)
class Token(Record):
    """A stored token. `digest` is the hex SHA-256 of its secret. The secret has 256 random bits, so it needs no slow
    hash.

    `groups` are the worker groups whose jobs the holder may lease; None means any, as in tokens of earlier versions.

    `tables` are patterns of names, as in policies. The role holds for these tables; for all others the holder is a
    reader. None means that the role holds for all tables.

    The token of a person whom the OpenID provider has identified has no secret and an empty digest; the person's
    sessions belong to it.
    """

    id: str
    name: str
    role: Role
    digest: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    groups: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None

    @property
    def is_person(self) -> bool:
        return not self.digest

    def until(self, seconds: float) -> Token:
        """Returns the token with an end of its validity, in seconds since 1970."""
        return replace(self, expires_at=datetime.fromtimestamp(min(seconds, _LAST_SECONDS), UTC))

    def is_valid(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def matches(self, secret: str, now: datetime) -> bool:
        return self.is_valid(now) and hmac.compare_digest(self.digest, digest(secret))

    def may_lease(self, group: str) -> bool:
        return self.groups is None or group in self.groups


@dataclass(frozen=True)
class Bearer:
    """The parts of the text `gk_<id>_<secret>` that a caller sends."""

    id: str
    secret: str

    def __str__(self) -> str:
        return f"gk_{self.id}_{self.secret}"

    def __repr__(self) -> str:
        return f"Bearer(id={self.id!r})"

    @classmethod
    def parse(cls, text: str) -> Bearer | None:
        prefix, _, rest = text.partition("_")
        token_id, _, secret = rest.partition("_")
        return cls(token_id, secret) if prefix == "gk" and token_id.isalnum() and secret else None

    @classmethod
    def new(cls) -> Bearer:
        return cls(id=secrets.token_hex(6), secret=secrets.token_hex(32))


def issued(
    name: str,
    role: Role,
    at: datetime,
    **more: Any,
) -> tuple[Bearer, Token]:
    """Creates a token; `more` are further members of it. Returns the text that the holder sends, and the token to
    store."""
    bearer = Bearer.new()
    return bearer, Token(bearer.id, name, role, digest(bearer.secret), created_at=at, **more)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
