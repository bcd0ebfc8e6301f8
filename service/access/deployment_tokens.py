"""Stores tokens when the service starts: those that the deployment's settings have, or a first token if none exists."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from service.access import token_changes, token_store
from service.access.token import Bearer, Role, Token, digest, issued
from service.model.errors import SettingsError

# The secret has at least 128 random bits, in hexadecimal. Only a hash without salt is stored, so a shorter secret, or
# one that a person has chosen, could be guessed.
_SHORTEST_SECRET = 32
_LONGEST_ID = 32
_BY = "the start of the service"


def accept(
    connection: Connection, setting: str, text: str, role: Role, at: datetime, *, groups: tuple[str, ...] | None = None
) -> None:
    """Stores the token if it does not exist yet. Replicas may do this concurrently. A revoked token stays revoked.
    Raises SettingsError if the text is not a token, or if its id belongs to another token."""
    bearer = Bearer.parse(text.strip())
    if bearer is None or len(bearer.id) > _LONGEST_ID or len(bearer.secret) < _SHORTEST_SECRET:
        raise SettingsError(
            f"{setting} must be gk_<id>_<secret> with at least {_SHORTEST_SECRET} characters of secret.",
            hint="This makes a secret: python3 -c 'import secrets; print(secrets.token_hex(32))'.",
        )
    token = Token(bearer.id, setting, role, digest(bearer.secret), created_at=at, groups=groups)
    token_changes.create_if_absent(connection, token, by=_BY, route=setting)
    found = token_store.find(connection, bearer.id)
    if found is None or found.digest != digest(bearer.secret) or found.role is not role:
        raise SettingsError(f"The id in {setting} belongs to another token.", hint="Take a new id with a new secret.")


def make_first(connection: Connection, file: Path, at: datetime) -> None:
    """Stores a new admin token and writes it to a new file that only its owner may read.

    Raises SettingsError before anything is stored if the file cannot be created or exists already: it may belong to
    another database.
    """
    bearer, token = issued("first", Role.ADMIN, at)
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(f"{bearer}\n")
    except OSError as error:
        raise SettingsError(
            f"The first token cannot be written to {file}: {error.strerror}.",
            hint="Choose another GROUNDSKEEPER_FIRST_TOKEN_FILE, or remove the file if its database is gone.",
        ) from error
    token_changes.create(connection, token, by=_BY, route=str(file))
