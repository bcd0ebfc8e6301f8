"""Errors of encrypted secrets."""

from __future__ import annotations

from service.model.errors import ConflictError


class SecretKeyMissingError(ConflictError):
    type = "secret-key-missing"
    title = "The service has no key to encrypt secrets with"
    hint = "An administrator has to set GROUNDSKEEPER_SECRET_KEYS, with the same value on every replica."


class SecretUnreadableError(ConflictError):
    type = "secret-unreadable"
    title = "A stored secret cannot be decrypted: it was encrypted with another key"
    hint = (
        "Add the old key to GROUNDSKEEPER_SECRET_KEYS; or send the secrets again: PATCH the table with its options, or"
        " rotate the webhook's secret and set its headers."
    )
