"""The files of a table that are out of use, and which of them a cleaning deletes."""

from __future__ import annotations

from bisect import insort
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from jobs.job_params import CleaningPolicy
from service.simulation.table_past import Freed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from service.policies.settings import CleaningSettings

    class Instant(Protocol):
        """An instant before the simulation. `run` is the table service that made it; None for a writer. `on_timeline`
        is its sort key among the instants of the timeline."""

        at: float
        run: JobKind | None
        on_timeline: str


_HOUR = 3600.0
_on_timeline = attrgetter("on_timeline")


class OutOfUse:
    """Files that are out of use. Each entry stands for files that one instant replaced, the earliest first: the number
    of the instant, its time, and how many files and bytes it replaced. Instants of writers, and of table services that
    write, are numbered in the order of the timeline. If sessions of Spark SQL write the table, only instants of writers
    are numbered, as in the job (`clean_retention`)."""

    def __init__(self, entries: Iterable[tuple[int, float, float, float]] = ()) -> None:
        self._entries = deque(entries)

    def __copy__(self) -> OutOfUse:
        return OutOfUse(self._entries)

    def add(self, instant: int, at: float, files: float, size: float) -> None:
        entry = instant, at, files, size
        if not self._entries or self._entries[-1] <= entry:
            self._entries.append(entry)
        else:  # Writers have committed while a job ran, and the job's instant is earlier than theirs.
            insort(self._entries, entry)

    def first(self, instants: int) -> tuple[int, float] | None:
        """Returns how many of the `instants` followed the first one that took files out of use, and the time of that
        first one; None if no files are out of use."""
        return (instants - self._entries[0][0], self._entries[0][1]) if self._entries else None

    def removable(
        self, settings: CleaningSettings, instants: int, now: float, behind: int = 0
    ) -> tuple[int, float, float]:
        """Returns how many of the first entries a cleaning removes, and the files and bytes of these. Consumers need
        the files that the last `behind` instants replaced."""
        number, files, size = 0, 0.0, 0.0
        most = len(self._entries)
        for instant, at, its_files, its_bytes in self._entries:
            match settings.policy:
                case CleaningPolicy.KEEP_LATEST_COMMITS:
                    is_kept = instants - instant < settings.retain
                case CleaningPolicy.KEEP_LATEST_BY_HOURS:
                    is_kept = at > now - settings.retain * _HOUR
                case CleaningPolicy.KEEP_LATEST_FILE_VERSIONS:
                    is_kept = number > most - settings.retain
            if is_kept or instants - instant < behind:
                break
            number, files, size = number + 1, files + its_files, size + its_bytes
        return number, files, size

    def remove(self, number: int) -> None:
        for _ in range(number):
            self._entries.popleft()

    def before(self, instants: int) -> list[Freed]:
        return [Freed(instants - instant, at) for instant, at, *_ in self._entries]


def left_by(
    instants: Iterable[Instant],
    settings: CleaningSettings,
    *,
    is_merge_on_read: bool,
    has_sessions: bool = False,
    behind: int = 0,
) -> Sequence[Freed]:
    """Returns the files that are out of use after these instants: those that instants replaced and that the cleanings
    among the instants have left."""
    found, number = OutOfUse(), 0
    for each in sorted(instants, key=_on_timeline):
        if each.run is JobKind.CLEANING:
            found.remove(found.removable(settings, number, each.at, behind)[0])
            continue
        number += each.run is None or not has_sessions
        if each.run is not None or not is_merge_on_read:
            found.add(number, each.at, 1.0, 0.0)
    return found.before(number) or [Freed(number, 0.0)]
