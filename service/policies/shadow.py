"""Shadows of policies: what a pattern's policy might be. A shadow decides beside the real policy, about the same
commits, and never starts anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from jobs.spec import Documented, Spec

ENOUGH = timedelta(days=7)
"""After this time a comparison has seen every day of a week."""

MOST = 100
"""Most shadows that are kept."""


@dataclass(frozen=True)
class Shadow(Documented):
    """The policy that a pattern might have, in place of the one that it has, if any."""

    pattern: Annotated[str, Spec(examples=("orders_*",))]
    settings: Annotated[
        Mapping[str, Any], Spec("The members that were sent", examples=({"compaction": {"commits": 10}},))
    ]
    started_at: Annotated[datetime, Spec("Since when it decides", examples=("2026-01-01T12:00:00Z",))]
    precedence: Annotated[int, Spec("If two patterns match, the higher value wins", examples=(0,))] = 0
