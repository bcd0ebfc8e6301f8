"""Something that happened, as others are told of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True)
class Event:
    """`id` is the same however often the event is sent. `type` is one of the catalogue, `data` fits its JSON Schema.

    `table_id` is None for what belongs to no table.
    """

    id: str
    type: str
    at: datetime
    table_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
