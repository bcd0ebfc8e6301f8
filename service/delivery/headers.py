"""The headers that callers add to their webhooks: which they may choose, and what may stand in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from service.model.errors import HeaderNotAllowedError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST = 20
_MOST_CHARACTERS = 4096

# RFC 9110, section 5.1; and of 5.5 what every receiver understands alike.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_RESERVED = re.compile(
    r"host|content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|proxy-.*|webhook-.*|user-agent",
    re.IGNORECASE,
)


def checked(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers as they are given. Raises HeaderNotAllowedError. No value is repeated in its words."""
    if len(headers) > MOST:
        raise HeaderNotAllowedError(f"At most {MOST} headers are taken.")
    if len({name.lower() for name in headers}) < len(headers):
        raise HeaderNotAllowedError("The same name is given twice.")
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise HeaderNotAllowedError(f"{name!r} is not the name of a header.")
        if _RESERVED.fullmatch(name):
            raise HeaderNotAllowedError(f"{name} is set by the service itself.")
        if len(value) > _MOST_CHARACTERS or not _VALUE.fullmatch(value):
            raise HeaderNotAllowedError(f"The value of {name} is too long, or not printable ASCII without line breaks.")
    return dict(headers)
