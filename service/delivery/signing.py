"""Signatures by the Standard Webhooks scheme (version 1, symmetric)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable

PREFIX = "whsec_"
_KEY_BYTES = 32


def new_secret() -> str:
    """Returns `whsec_` and 32 random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def signed_headers(signers: Iterable[str], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Returns the three headers of a message, with one signature per secret. `timestamp` is in seconds since 1970."""
    content = f"{message_id}.{timestamp}.".encode() + body
    keys = [base64.b64decode(secret.removeprefix(PREFIX)) for secret in signers]
    signatures = [base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode() for key in keys]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
