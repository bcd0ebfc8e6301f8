"""Addresses that a page may link to: http or https, with a host, and without a name or a password."""

from __future__ import annotations

import re

WEB_URL = (
    r"^https?://(?:[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?(?:[/?#][!#-;=?-\[\]_a-z~]{0,1700})?$"
)
"""A regular expression without the characters that end an attribute or begin another address."""

APPLICATION_ID = r"^[A-Za-z0-9_.-]{1,128}$"
"""The id of an application of Spark, as its cluster managers give it."""

PLACE = "{application_id}"


def is_web_url(text: str | None) -> bool:
    return text is not None and re.fullmatch(WEB_URL, text) is not None


def filled(template: str, application_id: str) -> str:
    """Returns the address of an application by a template with `{application_id}`."""
    return template.replace(PLACE, application_id)
