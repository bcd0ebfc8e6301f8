"""The order of completion before table version 8, which only the modification times of the timeline's files show. In a
copy of a table these times are new and in any order, so instants that completed before the copy are ordered by their
requested times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.format.appearance import appearances, seen_to_appear


@dataclass(frozen=True)
class CompletionOrder:
    """The modification times in ms of completed files, by instant. Files up to `until_ms` were probably copied."""

    modified_ms: Mapping[str, int]
    until_ms: int = -1

    @classmethod
    def of(cls, modified_ms: Mapping[str, int]) -> CompletionOrder:
        """Returns the order for the files of the active timeline, given as names with milliseconds since 1970. A writer
        makes the requested file at the time in its name, a copy at another time, so the time differences between copied
        files do not match their names. A requested file counts as copied if no other file confirms its time."""
        seen = appearances(modified_ms)
        live = {each.instant for each in seen_to_appear(seen)}
        times = {each.instant: modified_ms[each.name] for each in seen if each.is_completion}
        stamped = [time for instant, time in times.items() if instant not in live]
        stamped += [modified_ms[each.name] for each in seen if not each.is_completion and each.instant not in live]
        return cls(times, max(stamped, default=-1))

    def is_known(self, instant: str) -> bool:
        """Returns whether the instant's file has the time of its completion."""
        return self.modified_ms.get(instant, -1) > self.until_ms

    def key(self, instant: str) -> tuple[int, str]:
        """Returns the sort key of a completed instant."""
        return (self.modified_ms[instant] if self.is_known(instant) else self.until_ms), instant
