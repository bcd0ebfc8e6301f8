"""Shadows of policies. A shadow is a policy on trial for a pattern: it decides about the same commits as the real
policy, but starts no jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from jobs.spec import Documented, Spec

ENOUGH = timedelta(days=7)
"""After this time a comparison covers every day of a week."""

MOST = 100
"""At most this many shadows may exist."""


@dataclass(frozen=True)
class Shadow(Documented):
    """A policy on trial for a pattern, which may have a real policy or none."""

    pattern: Annotated[str, Spec(examples=("orders_*",))]
    settings: Annotated[
        Mapping[str, Any], Spec("The members that were sent", examples=({"compaction": {"commits": 10}},))
    ]
    started_at: Annotated[datetime, Spec("When the shadow was started", examples=("2026-01-01T12:00:00Z",))]
    precedence: Annotated[int, Spec("If two patterns match, the higher value wins", examples=(0,))] = 0
