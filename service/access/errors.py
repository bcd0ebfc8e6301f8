"""Errors of encrypted secrets and of sessions."""

from __future__ import annotations

from service.model.errors import ConflictError, ForbiddenError


class SecretKeyMissingError(ConflictError):
    type = "secret-key-missing"
    title = "The service has no key to encrypt secrets with"
    hint = "An administrator has to set GROUNDSKEEPER_SECRET_KEYS, with the same value on every replica."
    why = (
        "Secrets of tables and webhooks are stored encrypted, and the service has neither a key of its settings nor one"
        " of its own beside an SQLite database."
    )
    example = "GROUNDSKEEPER_SECRET_KEYS is not set."


class SecretUnreadableError(ConflictError):
    type = "secret-unreadable"
    title = "A stored secret cannot be decrypted: it was encrypted with another key"
    hint = (
        "Add the old key to GROUNDSKEEPER_SECRET_KEYS; or send the secrets again: PATCH the table with its options, or"
        " rotate the webhook's secret and set its headers."
    )
    why = (
        "The secret was encrypted with a key that this replica does not have: the key was changed, or the replicas have"
        " different ones."
    )
    example = "A secret of table tbl_0f3c2a9d5e7b1c44 cannot be decrypted."


class UnencryptedLoginError(ForbiddenError):
    type = "login-unencrypted"
    title = "A session needs HTTPS: without it, its cookie could be read on the way"
    hint = "Reach the service through a proxy with HTTPS, or at a loopback address: ssh -L 8080:127.0.0.1:8080 <host>."
    why = "The call came over plain HTTP from another machine, where anybody on the way can read a cookie and use it."
    example = "A session needs HTTPS: without it, its cookie could be read on the way"


class NoLoginError(ConflictError):
    type = "no-login"
    title = "There is no token to log in with"
    hint = (
        "Send one as `Authorization: Bearer <token>`. While no token exists, every call is open, and needs no session."
    )
    why = (
        "A login exchanges a token for a cookie. The call had no token: either no token exists yet, or the call came"
        " with the cookie of an earlier login."
    )
    example = "There is no token to log in with"
