"""The frame of a table's instants: the offset from UTC of the clock by which writers name them. Instants are wall-clock
text by the clock and in the zone of the writer's JVM, unless the table's timeline is in UTC
(`HoodieInstantTimeGenerator`, Hudi 1.2.0). The storage records the modification time of each file of the timeline by
its own clock. The frame is the difference between both. A file appears after the moment in its name and never before,
so a late file makes the writers' clock look slower than it is, never faster. A frame that is too slow is safe: our
instants are then still earlier than the writers' next ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any, NamedTuple

from jobs.format.clock_set_back import SetBack, set_back
from jobs.format.instants import EPOCH, utc_text, wall_clock
from jobs.format.table_version import WITH_COMPLETION_TIMES

TOLERANCE = timedelta(seconds=5)
"""Clocks that differ by less count as one clock; jobs wait for this time with the table's lock held. Hudi does the same
with 0.2 s (`hoodie.time.generator.max_expected_clock_skew_ms`): a process that makes an instant waits until all other
clocks have passed it. A file may appear some seconds late, which looks like such a difference."""
LATE_START = timedelta(seconds=20)
"""The same tolerance before table version 8. Only the file of the *requested* instant shows the clock there, and
writers of Hudi 0.15 create that file only when they have prepared their write."""

_FILE = re.compile(r"(?P<requested>\d{14,17})(_(?P<completed>\d{14,17}))?\.(?P<action>\w+)(\.(requested|inflight))?")
# The same files of a timeline are looked through several times.
_parsed = lru_cache(4096)(_FILE.fullmatch)
_RECENT, _MOST = timedelta(days=2), 100
# Zones are at most 14 hours from UTC. If a clock is further off, our instants follow right after the last one on the
# timeline, which is correct in any frame.
_FURTHEST = timedelta(hours=26)
_NEWEST = 20
# Year to millisecond.
_DIGITS = 17


class Stamped(NamedTuple):
    """A file of the timeline with its modification time by the storage, in UTC (without zone)."""

    name: str
    written: datetime


class Sample(NamedTuple):
    """A moment by the writer's clock, and the storage's time in UTC (without zone) when its file appeared."""

    shown: datetime
    written: datetime

    @property
    def lag(self) -> timedelta:
        return self.written - self.shown


@dataclass(frozen=True)
class Disagreement:
    """Two clocks that writers use alternately: their offsets from UTC, and the moment (UTC) since which they have done
    so."""

    one: timedelta
    other: timedelta
    since: datetime

    @property
    def apart(self) -> timedelta:
        return abs(self.one - self.other)

    def to_json(self) -> dict[str, Any]:
        return {
            "one_seconds": round(self.one.total_seconds(), 1),
            "other_seconds": round(self.other.total_seconds(), 1),
            "since": utc_text(self.since),
        }


@dataclass(frozen=True)
class ClockFrame:
    """The clocks of a table's writers, as measured from the files of its timeline. `offset` is the offset of their
    clock from UTC; None if it is unknown, as for a copied table, whose files are all new. `slowest` is a lower bound of
    the offset for every writer. `since` (UTC) is when the first of the `samples` of this frame appeared. `latest` is
    the greatest moment in the names of the timeline's files; before table version 8 it includes the completion times,
    which are the modification times of the files. `offset_of_files` converts the times of files to the frame."""

    offset: timedelta | None = None
    slowest: timedelta | None = None
    since: datetime | None = None
    samples: int = 0
    latest: datetime | None = None
    disagreement: Disagreement | None = None
    set_back: SetBack | None = None
    tolerance: timedelta = TOLERANCE
    offset_of_files: timedelta = timedelta()

    @property
    def zone(self) -> timedelta:
        """The part of the offset that is a time zone: the nearest half hour, or one of the quarter hours that some zone
        uses."""
        offset = self.offset or timedelta()
        quarter = _nearest(offset, timedelta(minutes=15))
        is_close = abs(offset - quarter) <= timedelta(minutes=2)
        return quarter if is_close and quarter in _QUARTERS else _nearest(offset, timedelta(minutes=30))

    @property
    def skew(self) -> timedelta:
        """The rest of the offset, by which the clock is ahead."""
        return (self.offset or timedelta()) - self.zone

    def to_json(self) -> dict[str, Any]:
        """Returns the members that a job's result and the service show. `utc_offset_seconds` is the sum of the zone and
        of the seconds by which the clock is ahead; None if it is unknown."""
        is_known = self.offset is not None and self.since is not None
        return {
            "utc_offset_seconds": round(self.offset.total_seconds(), 1) if self.offset is not None else None,
            "zone_seconds": int(self.zone.total_seconds()) if is_known else None,
            "ahead_seconds": round(self.skew.total_seconds(), 1) if is_known else None,
            "since": utc_text(self.since) if self.since is not None else None,
            "samples": self.samples,
            "disagreement": self.disagreement.to_json() if self.disagreement is not None else None,
            "set_back": self.set_back.to_json() if self.set_back is not None else None,
        }

    def behind(self, now: datetime) -> timedelta:
        """Returns for how long the slowest writer will make instants that are earlier than `latest`; `now` is in UTC,
        without zone."""
        if self.slowest is None or self.latest is None:
            return timedelta()
        return max(timedelta(), self.latest - (now + self.slowest))


# Nepal, Eucla, and the Chatham Islands in winter and in summer.
_QUARTERS = frozenset(timedelta(hours=hours, minutes=45) for hours in (5, 8, 12, 13))


def frame_of(files: Iterable[Stamped], *, version: int, ingestion: str) -> ClockFrame:
    """Measures the frame. `version` is the table version, `ingestion` the action of its writers' commits. Commits of
    other actions are ignored, because they come from table services, including ours."""
    listed = list(files)
    tolerance = TOLERANCE if version >= WITH_COMPLETION_TIMES else LATE_START
    named = [moment for each in listed for moment in _moments(each.name, version)]
    latest = max(named, default=None)
    samples = _samples(listed, version, ingestion)
    completed = [each for each in listed if _parsed(each.name) and not each.name.endswith((".requested", ".inflight"))]
    ends = [each.written for each in completed] if version < WITH_COMPLETION_TIMES else []
    if not samples:
        # In a copy all files are newer than their instants, so the newest one counts as the file of the last instant.
        of_files = latest - max(ends) if latest and ends else timedelta()
        return ClockFrame(latest=latest, tolerance=tolerance, offset_of_files=of_files)
    clocks = _clocks(samples, tolerance)
    newest = next(clock for clock in clocks if samples[-1] in clock)
    others = [samples.index(each) for clock in clocks if clock is not newest for each in clock]
    run = samples[max(others, default=-1) + 1 :]
    lags = sorted(each.lag for each in newest[-_NEWEST:])
    return ClockFrame(
        offset=-lags[0],
        slowest=-lags[ceil(0.9 * (len(lags) - 1))] - _grain(samples),
        since=run[0].written,
        samples=len(newest),
        latest=max([*named, *(end - lags[0] for end in ends)]),
        disagreement=_disagreement(samples, clocks, tolerance),
        set_back=set_back({each.name: each.written for each in listed}, tolerance),
        tolerance=tolerance,
        offset_of_files=-lags[0],
    )


def appeared_before(files: Iterable[Stamped], instant: str, *, ingestion: str, tolerance: timedelta) -> list[str]:
    """Returns the files of writers that appeared after our `instant` but have an earlier moment in their name. The
    clock of such a writer is behind ours, or was set back. An instant that completed under the lock cannot be late, but
    a requested one may be, by `tolerance`. Files that were all created at the same moment are ignored: they were
    copied, or written again by an upgrade of the table."""
    listed = list(files)
    instants = _instants_of(listed, ingestion)
    cut = max((each.written for each in instants if each.is_at_once), default=EPOCH)
    begun = min((each.written for each in listed if each.name.startswith(f"{instant}.")), default=None)
    if begun is None:
        return []
    ours, grain = wall_clock(instant), max(_grain(listed), timedelta(seconds=1))
    found = []
    for each in listed:
        parts = _parsed(each.name)
        if parts is None or parts["action"] != ingestion or each.written <= max(begun + grain, cut):
            continue
        is_requested = each.name.endswith(".requested")
        text = parts["requested"] if is_requested else parts["completed"]
        if text and wall_clock(text) + (tolerance if is_requested else timedelta()) < ours:
            found.append(each.name)
    return found


def latest_of(names: Iterable[str]) -> datetime | None:
    """Returns the greatest moment in the names of a metadata table's files. Some of its instants have three digits more
    than those of the table (`HoodieTableMetadataUtil.createIndexInitTimestamp`, Hudi 1.2.0)."""
    texts = (text for name in names for text in name.partition(".")[0].split("_") if text.isdigit())
    return max(filter(None, (_moment(text[:_DIGITS]) for text in texts)), default=None)


@lru_cache(4096)
def _moments(name: str, version: int) -> Sequence[datetime]:
    parts = _parsed(name)
    if parts is None:
        return ()
    found = []
    for text in (parts["requested"], parts["completed"] if version >= WITH_COMPLETION_TIMES else None):
        if text and (moment := _moment(text)):
            found.append(moment)
    return found


def _moment(text: str) -> datetime | None:
    try:
        at = wall_clock(text)
    except ValueError:
        return None
    # Hudi's special instants, such as `00000000000001`, are not moments.
    return at if at.year >= 1971 else None


def _samples(files: Sequence[Stamped], version: int, ingestion: str) -> list[Sample]:
    """Returns the samples of the writers' clocks in the order of appearance, without copied files. A copy creates the
    files of an instant at once or in any order, so the times between the files differ from the times between the
    moments in their names. All files up to the last copied one are left out."""
    instants = _instants_of(files, ingestion)
    found = [Sample(each.ended, each.written) for each in instants if each.ended is not None and not each.is_copied]
    if version < WITH_COMPLETION_TIMES:
        for each in files:
            parts = _parsed(each.name)
            is_request = parts is not None and parts["action"] == ingestion and each.name.endswith(".requested")
            if parts and is_request and (at := _moment(parts["requested"])):
                found.append(Sample(at, each.written))
    cut = max((each.written for each in instants if each.is_copied), default=EPOCH)
    live = sorted(
        (each for each in found if each.written > cut and abs(each.lag) <= _FURTHEST),
        key=lambda each: (each.written, each.shown),
    )
    return [each for each in live if live[-1].written - each.written <= _RECENT][-_MOST:]


@dataclass(frozen=True)
class _Completed:
    """A completed instant: the completion time in its name, None before table version 8, and the time of its last file.
    `is_at_once`: its files were created in less time than its writer took."""

    ended: datetime | None
    written: datetime
    is_copied: bool
    is_at_once: bool


def _instants_of(files: Sequence[Stamped], ingestion: str) -> list[_Completed]:
    """Returns the completed instants of writers that have the files of both states."""
    requested: dict[str, datetime] = {}
    completed: dict[str, tuple[str | None, datetime]] = {}
    for each in files:
        parts = _parsed(each.name)
        if parts is None or parts["action"] != ingestion:
            continue
        if each.name.endswith(".requested"):
            requested[parts["requested"]] = each.written
        elif not each.name.endswith(".inflight"):
            completed[parts["requested"]] = (parts["completed"], each.written)
    grain = _grain(files)
    found = []
    for instant, (text, written) in completed.items():
        begun = requested.get(instant)
        if _moment(instant) is None or begun is None:
            continue
        ended = _moment(text) if text else None
        took = ended - wall_clock(instant) if ended else None
        is_at_once = _is_at_once(written - begun, took, grain)
        is_copied = is_at_once or (took is not None and written - begun > took * 2 + TOLERANCE + grain)
        found.append(_Completed(ended, max(begun, written) if is_copied else written, is_copied, is_at_once))
    return found


def _is_at_once(stamped: timedelta, took: timedelta | None, grain: timedelta) -> bool:
    """Returns whether the files of one instant were created in less time than its writer took."""
    if took is None:
        return stamped < timedelta() if grain else stamped < timedelta(milliseconds=20)
    return stamped < took / 2 - grain


def _grain(samples: Sequence[Sample] | Sequence[Stamped]) -> timedelta:
    """Returns the resolution of the storage's times: a second, or (nearly) zero."""
    is_whole = all(each.written.microsecond == 0 for each in samples)
    return timedelta(seconds=1) if is_whole else timedelta()


def _clocks(samples: Sequence[Sample], tolerance: timedelta) -> list[list[Sample]]:
    """Groups the samples by clock, each group in the order of appearance."""
    groups: list[list[Sample]] = []
    least = timedelta()
    for each in sorted(samples, key=lambda each: each.lag):
        if not groups or each.lag - least > tolerance:
            groups.append([])
            least = each.lag
        groups[-1].append(each)
    return [sorted(group, key=lambda each: (each.written, each.shown)) for group in groups]


def _disagreement(
    samples: Sequence[Sample], clocks: Sequence[Sequence[Sample]], tolerance: timedelta
) -> Disagreement | None:
    """Returns the two clocks with the most samples, if writers use both alternately. If a clock was corrected, or
    daylight saving began, all samples of one clock precede the samples of the other clock, which is no disagreement."""
    confirmed = sorted((clock for clock in clocks if _is_confirmed(clock, tolerance)), key=len, reverse=True)[:2]
    if len(confirmed) < 2 or len(clocks) > len(samples) / 2:
        return None
    one, other = confirmed
    turns = [each in one for each in samples if each in one or each in other]
    if sum(before != after for before, after in pairwise(turns)) < 3:
        return None
    since = max(one[0].written, other[0].written)
    return Disagreement(-min(each.lag for each in one), -min(each.lag for each in other), since)


def _is_confirmed(clock: Sequence[Sample], tolerance: timedelta) -> bool:
    """Returns whether several distant samples agree, because late files would not, except by chance."""
    shown = [each.shown for each in clock]
    return max(shown) - min(shown) > tolerance


def _nearest(value: timedelta, unit: timedelta) -> timedelta:
    return unit * round(value / unit)


def spoken(offset: timedelta) -> str:
    """Returns the offset of a clock from UTC in words."""
    seconds = round(offset.total_seconds())
    if not seconds:
        return "by UTC"
    return f"{timedelta(seconds=abs(seconds))} {'ahead of' if seconds > 0 else 'behind'} UTC"


def utc_now() -> datetime:
    """Returns the current time in UTC, without zone, as the functions of this module need it."""
    return datetime.now(UTC).replace(tzinfo=None)
