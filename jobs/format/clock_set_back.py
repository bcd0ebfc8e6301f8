"""Detects that a writer's clock was set back: an instant is earlier than another one that had completed before it
appeared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from jobs.format.appearance import appearances, inversions
from jobs.format.instants import EPOCH, utc_text

_MILLISECOND = timedelta(milliseconds=1)
_RECENT = timedelta(days=2)


@dataclass(frozen=True)
class SetBack:
    """The first instant that appeared after another one had completed, but has an earlier time."""

    instant: str
    after: str  # The instant that had completed before.
    by: timedelta  # How much earlier it is.
    since: datetime  # When it appeared (UTC, without zone).
    instants: int  # Number of such instants.

    def to_json(self) -> dict[str, Any]:
        return {
            "instant": self.instant,
            "after": self.after,
            "seconds": round(self.by.total_seconds(), 1),
            "since": utc_text(self.since),
            "instants": self.instants,
        }


def set_back(written: Mapping[str, datetime], tolerance: timedelta) -> SetBack | None:
    """Returns the first instant of the last two days that goes back by more than the tolerance; None if all ascend.
    `written` has the modification times of the timeline's files by name, in UTC without zone."""
    newest = max(written.values(), default=EPOCH)
    recent = {name: at for name, at in written.items() if newest - at <= _RECENT}
    seen = appearances({name: (at - EPOCH) // _MILLISECOND for name, at in recent.items()})
    found = [each for each in inversions(seen) if each.by > tolerance]
    if not found:
        return None
    first = found[0]
    since = min(each.at for each in seen if each.instant == first.instant)
    return SetBack(first.instant, first.after, first.by, since, len(found))
