"""Options that contain secrets: they are stored and passed to workers, but never shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MASK = "******"

_SECRET = re.compile(r"passw|secret|token|access[._-]?key|api[._-]?key|private[._-]?key|credential|session", re.I)
# `hoodie.write.lock.zookeeper.session_timeout_ms` is not a secret, and is useful to see.
_HARMLESS = re.compile(r"timeout|_ms$", re.I)


def is_secret(key: str) -> bool:
    """Returns whether the value of an option with this name must not be shown. True if in doubt."""
    return bool(_SECRET.search(key)) and not _HARMLESS.search(key)


def masked(options: Mapping[str, str]) -> dict[str, str]:
    return {key: MASK if is_secret(key) else value for key, value in options.items()}


def unmasked(options: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    """Replaces masks in `options`, sent by a caller who may have received them masked, by the stored values."""
    return {key: stored.get(key, value) if value == MASK else value for key, value in options.items()}
