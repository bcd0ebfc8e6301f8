"""Rules for the headers that callers add to their webhooks: names and values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from service.delivery.errors import HeaderNotAllowedError

MOST = 20
_MOST_CHARACTERS = 4096

# Names are those of RFC 9110, section 5.1. Values are that part of section 5.5 which all receivers interpret alike.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_RESERVED = re.compile(
    r"host|content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|proxy-.*|webhook-.*|user-agent",
    re.IGNORECASE,
)


def checked(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers unchanged. Raises HeaderNotAllowedError; its detail contains no header value."""
    if len(headers) > MOST:
        raise HeaderNotAllowedError(f"At most {MOST} headers are allowed.")
    if len({name.lower() for name in headers}) < len(headers):
        raise HeaderNotAllowedError("The same name is given twice.")
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise HeaderNotAllowedError(f"'{name}' is not a valid name of a header.")
        if _RESERVED.fullmatch(name):
            raise HeaderNotAllowedError(f"{name} is set by the service itself.")
        if len(value) > _MOST_CHARACTERS or not _VALUE.fullmatch(value):
            raise HeaderNotAllowedError(f"The value of {name} is too long, or not printable ASCII without line breaks.")
    return dict(headers)
