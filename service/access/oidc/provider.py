"""An OpenID provider, as the settings describe it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from service.access.errors import LoginRefusedError
from service.access.token import RANK, Role, Token

ANYBODY = "*"
"""The name of the group that contains all persons whom the provider knows."""

_LONGEST_NAME = 200
_NAMES = ("preferred_username", "email", "name", "sub")


@dataclass(frozen=True)
class Grant:
    """The role that a group gives its members, for the tables of some patterns or for all tables."""

    role: Role
    tables: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Provider:
    """The provider. `roles` maps groups to the roles that they grant. Calls may use access tokens of the provider for
    `audience`; if it is None, calls may not use such tokens."""

    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    groups_claim: str = "groups"
    roles: Mapping[str, Grant] = field(default_factory=dict)
    audience: str | None = None
    ca_file: str | None = None

    @property
    def host(self) -> str:
        return urlsplit(self.issuer).netloc

    def groups_in(self, claims: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Returns the groups; None without the claim. `groups_claim` is the name of a claim, or the path to a member of
        a claim, such as `realm_access.roles`."""
        found: Any = claims.get(self.groups_claim)
        if found is None:
            found = claims
            for part in self.groups_claim.split("."):
                found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, str):
            return (found,)
        return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else None

    def person(self, claims: Mapping[str, Any], groups: tuple[str, ...], now: datetime) -> Token:
        """Returns the person whom checked claims describe, with the highest role that a group grants. The role holds
        for the tables of all groups that grant this role. Raises LoginRefusedError if no group grants a role."""
        name = name_in(claims)
        grants = [self.roles[each] for each in (*groups, ANYBODY) if each in self.roles]
        if not grants:
            raise LoginRefusedError(
                f"{name} is in no group that has a role here.",
                hint="An administrator maps groups to roles in GROUNDSKEEPER_OIDC_ROLES.",
            )
        role = max((each.role for each in grants), key=RANK.__getitem__)
        limits = [each.tables for each in grants if each.role is role]
        # If one group grants the role on all tables, the limits of the other groups do not matter.
        tables = None if None in limits else tuple(dict.fromkeys(one for each in limits for one in each or ()))
        return Token(person_id(self.issuer, claims["sub"]), name, role, digest="", created_at=now, tables=tables)


def person_id(issuer: str, subject: str) -> str:
    """Returns the id of a person's token. A provider never gives the subject of one person to another."""
    return f"u{hashlib.sha256(f'{issuer} {subject}'.encode()).hexdigest()[:24]}"


def name_in(claims: Mapping[str, Any]) -> str:
    for claim in _NAMES:
        value = claims.get(claim)
        if isinstance(value, str) and (name := "".join(each for each in value if each.isprintable()).strip()):
            return name[:_LONGEST_NAME]
    return "unnamed"
