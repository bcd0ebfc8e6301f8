"""The order of completion before table version 8, where only the times of the timeline's files tell it.

A copy of a table renews these times, in any order: after it, instants that completed before the copy have the order of
their requests, which their names tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jobs.format.appearance import appearances, seen_to_appear

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class CompletionOrder:
    """The modification times in ms of completed files, by instant. Files up to `until_ms` were copied, as far as can be
    told, or others of about that time were."""

    modified_ms: Mapping[str, int]
    until_ms: int = -1

    @classmethod
    def of(cls, modified_ms: Mapping[str, int]) -> CompletionOrder:
        """Returns the order by the files of the active timeline: their names, and milliseconds since 1970.

        A writer makes the requested file at the time in its name; a copy makes it at another, so the distances between
        requested files differ from those between their names. Requests that no others confirm count as copied.
        """
        seen = appearances(modified_ms)
        live = {each.instant for each in seen_to_appear(seen)}
        times = {each.instant: modified_ms[each.name] for each in seen if each.is_completion}
        stamped = [time for instant, time in times.items() if instant not in live]
        stamped += [modified_ms[each.name] for each in seen if not each.is_completion and each.instant not in live]
        return cls(times, max(stamped, default=-1))

    def is_known(self, instant: str) -> bool:
        """Returns whether the time of its file is that of its completion."""
        return self.modified_ms.get(instant, -1) > self.until_ms

    def key(self, instant: str) -> tuple[int, str]:
        """Returns the sort key of a completed instant."""
        return (self.modified_ms[instant] if self.is_known(instant) else self.until_ms), instant
