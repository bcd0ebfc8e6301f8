"""How a webhook logs in to Kafka: by the header `Authorization: Basic ...`, as it would to a receiver of HTTP."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from service.model.errors import HeaderNotAllowedError

if TYPE_CHECKING:
    from collections.abc import Mapping


def login(headers: Mapping[str, str]) -> dict[str, str]:
    """The client's options; none without the header. Raises HeaderNotAllowedError. No value is repeated in its words.

    The mechanism is PLAIN.
    """
    value = next((value for name, value in headers.items() if name.lower() == "authorization"), None)
    if value is None:
        return {}
    scheme, _, encoded = value.partition(" ")
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        user, colon, password = "", "", ""
    if scheme.lower() != "basic" or not colon:
        raise HeaderNotAllowedError("For Kafka, Authorization is `Basic` and user:password in base64 (RFC 7617).")
    return {"sasl_mechanism": "PLAIN", "sasl_plain_username": user, "sasl_plain_password": password}
