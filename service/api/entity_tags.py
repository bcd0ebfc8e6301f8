"""Entity tags (RFC 9110, 8.8.3) of objects that can be updated, and the preconditions If-Match and If-None-Match.

A tag is a hash of those members of an object that the audit trail records. Callers declare these members, while the
service observes others. So a new commit does not make an update of a table's declarations fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fastapi import Response
from sqlalchemy import Connection

from service.access.secret_cipher import SecretCipher
from service.api.audit_objects import read
from service.api.errors import ChangedMeanwhileError

TAGGED = frozenset(
    {"table", "table-policy", "policy", "policy-shadow", "pause", "freeze", "webhook", "notification", "consumer"}
)
_UPDATES = ("PUT", "PATCH", "DELETE")
_TAGS = re.compile(r'(?:^|,)[ \t]*("[\x21\x23-\x7e]*")(?=[ \t]*(?:,|$))')

_HEADER = {
    "ETag": {
        "description": "Identifies the present declarations. Send it as `If-Match` with an update",
        "schema": {"type": "string"},
        "example": '"8c1d0e5f2a7b4963"',
    }
}
_PARAMETER = {
    "name": "If-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of the state that you have seen, several of them, or `*` for any. The call is refused"
    " with `changed-meanwhile` if the state has changed. Without this header the last update wins",
    "schema": {"type": "string", "maxLength": 1000},
    "example": '"8c1d0e5f2a7b4963"',
}

_OF_NEW = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "`*`: the call is refused with `changed-meanwhile` if the object already exists. So nothing is"
    " overwritten that somebody else has created meanwhile",
    "schema": {"type": "string", "maxLength": 1000},
    "example": "*",
}


@dataclass(frozen=True)
class Condition:
    """The headers If-Match and If-None-Match of an update, each None if it was not sent."""

    match: str | None = None
    none_match: str | None = None


def tag_of(members: Any) -> str:
    """Returns the tag of an object's members as JSON."""
    text = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return f'"{sha256(text.encode()).hexdigest()[:16]}"'


def set_tag(response: Response, connection: Connection, cipher: SecretCipher, kind: str, object_id: str) -> None:
    """Adds the tag of an object to an answer that shows it."""
    response.headers["ETag"] = tag_of(read(connection, cipher, kind, object_id)[1])


def condition_of(method: str, headers: Mapping[str, str]) -> Condition:
    """Returns the condition of an update. `headers` is case-insensitive, or has names in small letters."""
    if method not in _UPDATES:
        return Condition()
    return Condition(headers.get("if-match"), headers.get("if-none-match"))


def check(condition: Condition, found: tuple[str | None, Any], *, creates: bool) -> None:
    """Raises ChangedMeanwhileError unless an object meets the condition. `found` has the object's name and members.

    If the object does not exist, a call that `creates` it must not have If-Match. Any other call later raises its own
    error about the missing object.
    """
    if found == (None, None):
        if creates and condition.match is not None:
            raise ChangedMeanwhileError("The object does not exist, or no longer exists.")
        return
    tag = tag_of(found[1])
    if condition.match is not None and not _names(condition.match, tag):
        raise ChangedMeanwhileError(f"The object's state is {tag} now.", extensions={"etag": tag})
    if condition.none_match is not None and _names(condition.none_match, tag):
        raise ChangedMeanwhileError(f"The object already exists, with the state {tag}.", extensions={"etag": tag})


def _names(header: str, tag: str) -> bool:
    return header.strip() == "*" or tag in _TAGS.findall(header)


def document(method: str, path: str, operation: dict[str, Any]) -> bool:
    """Documents the tags of an operation, and returns whether it takes If-Match."""
    names_it = path in _TAGGED_PATHS
    naming = operation["operationId"] in _NAMING
    if naming or (names_it and method in ("get", "put", "patch")):
        for status in ("200", "201"):
            if status in operation["responses"]:
                operation["responses"][status].setdefault("headers", {}).update(_HEADER)
    is_conditional = method.upper() in _UPDATES and (names_it or naming)
    if is_conditional:
        operation.setdefault("parameters", []).append(_PARAMETER)
        if method == "put" and path not in _ALWAYS_THERE:
            operation["parameters"].append(_OF_NEW)
    return is_conditional


_TAGGED_PATHS = {
    "/v1/tables/{table_id}",
    "/v1/tables/{table_id}/policy",
    "/v1/tables/{table_id}/advice",
    "/v1/tables/{table_id}/consumers/{name}",
    "/v1/policies/{pattern}",
    "/v1/policy-shadows/{pattern}",
    "/v1/webhooks/{webhook_id}",
    "/v1/notifications/{name}",
    "/v1/pause",
    "/v1/freezes/{name}",
}
_ALWAYS_THERE = {"/v1/pause", "/v1/tables/{table_id}/policy", "/v1/tables/{table_id}/advice"}
# Operations whose path does not name the object, because the body or the answer does.
_NAMING = {"registerTable", "createWebhook", "putTableByPath"}
