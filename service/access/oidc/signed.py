"""Checks of signed tokens (RFC 7519) by the keys of the provider (RFC 7517). Only asymmetric algorithms are accepted:
with `none` or HMAC, anybody who knows the public key could sign a token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jwt

from service.access.oidc.exchange import parsed

MOST_CHARACTERS = 16 * 1024
MOST_KEYS = 200
SKEW_SECONDS = 60.0
"""The clocks of provider and service may differ by this time."""

_TYPES = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), ("RSA", None)),
    "ES256": ("EC", "P-256"),
    "ES384": ("EC", "P-384"),
    "ES512": ("EC", "P-521"),
    "EdDSA": ("OKP", "Ed25519"),
}
# A token without a key id is checked with at most this many keys.
_MOST_CANDIDATES = 8
_LONGEST_SUBJECT = 512
_JWS = jwt.PyJWS(options={"enforce_minimum_key_length": True})


class RejectedTokenError(Exception):
    """A token that is not accepted; the text says why."""


@dataclass(frozen=True)
class Header:
    algorithm: str
    key_id: str | None

    @classmethod
    def of(cls, token: str) -> Header:
        """Raises RejectedTokenError."""
        if len(token) > MOST_CHARACTERS:
            raise RejectedTokenError(f"The token has more than {MOST_CHARACTERS} characters.")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise RejectedTokenError("The token is not a signed JSON web token.") from error
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in _TYPES:
            raise RejectedTokenError("The algorithm of the token is not accepted.")
        return cls(algorithm, key_id)

    def candidates(self, keys: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns the keys that may have signed the token."""
        kind, curve = _TYPES[self.algorithm]
        found = [
            key
            for key in keys
            if key.get("kty") == kind
            and (curve is None or key.get("crv") == curve)
            and key.get("use", "sig") == "sig"
            and key.get("alg", self.algorithm) == self.algorithm
            and (self.key_id is None or key.get("kid") == self.key_id)
        ]
        return found[:_MOST_CANDIDATES]


def claims_of(token: str, header: Header, keys: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the claims of a token that one of the keys has signed. Raises RejectedTokenError."""
    for key in header.candidates(keys):
        try:
            made = jwt.PyJWK(key, header.algorithm)
            return parsed(_JWS.decode(token, made, algorithms=[header.algorithm]))
        except jwt.PyJWTError:
            continue
        except ValueError as error:
            raise RejectedTokenError("The claims of the token are not a JSON object.") from error
    raise RejectedTokenError("None of the provider's keys has signed the token.")


def check(claims: dict[str, Any], *, issuer: str, audience: str, now: datetime) -> None:
    """Raises RejectedTokenError unless the provider has made the token for `audience`, and it is valid at `now`."""
    audiences = claims.get("aud")
    if claims.get("iss") != issuer:
        raise RejectedTokenError("Another issuer has made the token.")
    if audience not in (
        [audiences] if isinstance(audiences, str) else audiences if isinstance(audiences, list) else ()
    ):
        raise RejectedTokenError("The token is for another audience.")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise RejectedTokenError("The token names no subject.")
    at = now.timestamp()
    end, start, made = (_moment(claims, name) for name in ("exp", "nbf", "iat"))
    if end is None or at >= end + SKEW_SECONDS:
        raise RejectedTokenError("The token has expired.")
    if max(start or 0, made or 0) > at + SKEW_SECONDS:
        raise RejectedTokenError("The token is not valid yet. Perhaps a clock is wrong.")


def check_of_login(claims: dict[str, Any], *, client_id: str, nonce: str) -> None:
    """Checks the claims that only ID tokens have. Raises RejectedTokenError."""
    if claims.get("nonce") != nonce:
        raise RejectedTokenError("The token belongs to another log-in.")
    if claims.get("azp", client_id) != client_id or (
        len(claims["aud"]) > 1 and isinstance(claims["aud"], list) and "azp" not in claims
    ):
        raise RejectedTokenError("The token was made for another client.")


def _moment(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RejectedTokenError(f"The token's {name} is not a number.")
    return value
