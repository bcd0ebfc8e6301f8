"""Errors of encrypted secrets and of sessions."""

from __future__ import annotations

from service.model.errors import ConflictError, ForbiddenError


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


class UnencryptedLoginError(ForbiddenError):
    type = "login-unencrypted"
    title = "A session needs HTTPS: without it, its cookie could be read on the way"
    hint = "Reach the service through a proxy with HTTPS, or at a loopback address: ssh -L 8080:127.0.0.1:8080 <host>."


class NoLoginError(ConflictError):
    type = "no-login"
    title = "There is no token to log in with"
    hint = (
        "Send one as `Authorization: Bearer <token>`. While no token exists, every call is open, and needs no session."
    )
