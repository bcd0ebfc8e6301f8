"""An instant that has left the active timeline."""

from __future__ import annotations

from dataclasses import dataclass

from service.lake.instant import Instant
from service.lake.instant_metadata import InstantMetadata

MOST_INSTANTS = 1_000_000
"""At most this many instants are read from the history of one table."""


@dataclass(frozen=True)
class Archived:
    """A completed instant and its metadata."""

    instant: Instant
    metadata: InstantMetadata


Found = dict[tuple[str, str], Archived]
"""Archived instants by requested time and action. Several files may contain the same instant, because a compaction of
the history keeps its inputs for a while."""
