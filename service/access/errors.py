"""Errors of encrypted secrets, of sessions and of log-ins by an OpenID provider."""

from __future__ import annotations

from service.model.errors import ConflictError, ForbiddenError, GroundskeeperError


class SecretKeyMissingError(ConflictError):
    type = "secret-key-missing"
    title = "The service has no key to encrypt secrets with"
    hint = "An administrator has to set GROUNDSKEEPER_SECRET_KEYS, with the same value on every replica."
    why = (
        "Secrets of tables and webhooks are stored encrypted. The service has no key in its settings, and no key file"
        " beside an SQLite database."
    )
    example = "GROUNDSKEEPER_SECRET_KEYS is not set."


class SecretUnreadableError(ConflictError):
    type = "secret-unreadable"
    title = "A stored secret cannot be decrypted: it was encrypted with another key"
    hint = (
        "Add the old key to GROUNDSKEEPER_SECRET_KEYS. Or send the secrets again: PATCH the table with its options, or"
        " rotate the webhook's secret and set its headers."
    )
    why = (
        "The secret was encrypted with a key that this replica does not have. The key was changed, or the replicas have"
        " different keys."
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


class ProviderUnavailableError(GroundskeeperError):
    type = "provider-unavailable"
    title = "The OpenID provider does not answer as it should"
    hint = "Try again later. Tokens of `groundskeeper token create` need no provider."
    why = (
        "The service reads the provider's metadata and keys, and exchanges codes for tokens. The provider could not"
        " be reached, has not answered in time, or has sent an answer that cannot be used."
    )
    example = "https://sso.example.com/.well-known/openid-configuration has not answered within 5 s."


class LoginExpiredError(ForbiddenError):
    type = "login-expired"
    title = "This log-in was not begun in this browser, or has already ended"
    hint = "Log in again from the dashboard."
    why = (
        "The provider sends the browser back with the state of a log-in. The same browser must have begun this log-in"
        " in the last 10 min, and each answer counts only once. A browser that accepts no cookies cannot log in."
    )
    example = "The provider's answer belongs to another log-in, perhaps of another tab."


class LoginRefusedError(ForbiddenError):
    type = "login-refused"
    title = "The log-in by the OpenID provider was refused"
    hint = "Log in again. If that does not help, ask an administrator of the provider."
    why = (
        "The provider has refused the log-in, its ID token was not acceptable, the person is in no group that has a"
        " role here, or an administrator has revoked the person's access."
    )
    example = "ada is in no group that has a role here."
