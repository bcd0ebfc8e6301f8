"""Options that carry secrets: they are kept and handed to workers, but never shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK = "******"

_SECRET = re.compile(r"passw|secret|token|access[._-]?key|api[._-]?key|private[._-]?key|credential|session", re.I)
# `hoodie.write.lock.zookeeper.session_timeout_ms` is no secret, and worth seeing.
_HARMLESS = re.compile(r"timeout|_ms$", re.I)


def is_secret(key: str) -> bool:
    """Whether the value of an option with this name must not be shown. Says yes in doubt."""
    return bool(_SECRET.search(key)) and not _HARMLESS.search(key)


def masked(options: Mapping[str, str]) -> dict[str, str]:
    return {key: MASK if is_secret(key) else value for key, value in options.items()}


def unmasked(options: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """`options` as sent by somebody who may have got them masked: a mask stands for the stored value."""
    return {key: stored.get(key, value) if value == MASK else value for key, value in options.items()}
