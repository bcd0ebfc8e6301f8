"""Authentication to Kafka, by user and password from the header `Authorization: Basic ...`, as for HTTP receivers."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from service.delivery.errors import HeaderNotAllowedError


def login(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the client's options for the mechanism PLAIN; none without the header.

    Raises HeaderNotAllowedError; its detail contains no header value.
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
