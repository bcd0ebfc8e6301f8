"""The request that carries a message to a target."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Request:
    """A request. `own` are headers that the target's owner has set, or the login of SMTP."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: dict(_JSON))
    own: Mapping[str, str] = field(default_factory=dict)


def as_json(document: Any) -> bytes:
    # The name of a file may contain half of a surrogate pair, which cannot be encoded and becomes a question mark.
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
