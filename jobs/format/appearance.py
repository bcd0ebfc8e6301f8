"""The order in which the files of a timeline appeared, compared with the times in their names. The name of a file has a
time of the writer's clock; the storage records its own time of the last modification. In a copy of a table all
modification times are new, so they do not show the order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, TypeVar

from jobs.format.instants import EPOCH, wall_clock

_FILE = re.compile(r"(?P<requested>\d{14,17})(_(?P<completed>\d{14,17}))?\.(?P<action>[a-z]+)(\.(?P<state>\w+))?")
_WRITES = frozenset({"commit", "deltacommit", "replacecommit", "compaction", "clustering", "logcompaction"})
TOLERANCE = timedelta(seconds=2)
"""Tolerance: some storages have times in whole seconds, and a name is chosen shortly before the file exists."""
_NEIGHBOURS = 6
_Item = TypeVar("_Item")
_COHERENT_SHARE = 0.8


class Appearance(NamedTuple):
    """A file of a write's instant."""

    name: str
    instant: str
    is_completion: bool
    named: datetime  # The requested or completion time in its name.
    at: datetime  # When it appeared, by the storage's clock.
    is_timed: bool = True  # False for completions before table version 8, whose names have the requested time.


@dataclass(frozen=True)
class Inversion:
    """An instant that appeared after another one had completed, and has an earlier time."""

    instant: str
    after: str
    by: timedelta
    is_completion: bool

    def __str__(self) -> str:
        happened = "completed" if self.is_completion else "began"
        return f"{self.instant} {happened} after {self.after}, and is {self.by.total_seconds():.0f} s earlier"


def appearances(modified_ms: Mapping[str, int]) -> list[Appearance]:
    """Returns the requests and completions of writes by their files' names, in the order in which they appeared."""
    found = [
        named._replace(at=EPOCH + timedelta(milliseconds=milliseconds))
        for name, milliseconds in modified_ms.items()
        if (named := _named(name)) is not None
    ]
    return sorted(found, key=lambda each: (each.at, each.named))


@lru_cache(4096)  # Each poll lists mostly the same files.
def _named(name: str) -> Appearance | None:
    """Returns what the name of a file says; None if it is not the file of a request or completion of a write."""
    match = _FILE.fullmatch(name)
    # Before table version 8 `<instant>.inflight` belongs to a commit. An inflight file has no time of its own.
    if match is None or match["action"] not in _WRITES or match["state"] not in (None, "requested"):
        return None
    try:
        named = wall_clock(match["completed"] or match["requested"])
    except ValueError:  # such as the first instant of a metadata table
        return None
    is_completion = match["state"] is None
    is_timed = not is_completion or match["completed"] is not None
    return Appearance(name, match["requested"], is_completion, named, EPOCH, is_timed)


def inversions(seen: Sequence[Appearance]) -> list[Inversion]:
    """Returns the instants whose times go back: completions with an earlier time than a completion that appeared
    before, and requests with an earlier time than an instant that had completed. `seen` must be in the order of
    appearance."""
    if _ascend(seen):
        return []
    coherent = seen_to_appear(seen)
    requests = {each.instant: each for each in coherent if not each.is_completion}
    found: dict[str, Inversion] = {}
    latest: dict[bool, Appearance] = {}
    recent: list[Appearance] = []
    for each in seen:
        while recent and recent[0].at + TOLERANCE < each.at:
            completed = recent.pop(0)
            for before in (completed if completed in coherent else None, requests.get(completed.instant)):
                if before and (before.is_completion not in latest or latest[before.is_completion].named < before.named):
                    latest[before.is_completion] = before
        if each.is_completion:
            recent.append(each)
        before = latest.get(each.is_completion)
        if before and each in coherent and each.named < before.named and each.instant != before.instant:
            by = before.named - each.named
            found.setdefault(each.instant, Inversion(each.instant, before.instant, by, each.is_completion))
    return list(found.values())


def _ascend(seen: Sequence[Appearance]) -> bool:
    """Returns whether requests and completions each appeared in the order of their times, and no completion before its
    request. Then no time goes back. This is the usual case, and the check for it takes a tenth of the time of a full
    comparison."""
    left = {each.instant for each in seen if not each.is_completion}
    last: dict[bool, datetime] = {}
    for each in seen:
        if each.named < last.get(each.is_completion, each.named) or (each.is_completion and each.instant in left):
            return False
        last[each.is_completion] = each.named
        if not each.is_completion:
            left.discard(each.instant)
    return True


def seen_to_appear(appeared: Sequence[Appearance]) -> set[Appearance]:
    """Returns the timed files that were not copied later: for most of their neighbours, the distance to a nearby file
    is the same by name as by the storage's time. `appeared` must be in the order of appearance."""
    seen = [each for each in appeared if each.is_timed]
    whole = all(each.at.microsecond == 0 for each in seen)
    slack = 1.1 if whole else 0.3
    witnessed = [any(_agree(each, other, slack) for other in _near(seen, number)) for number, each in enumerate(seen)]
    coherent = set()
    for number, each in enumerate(seen):
        near = _near(witnessed, number)
        if witnessed[number] and sum(near) >= _COHERENT_SHARE * len(near):
            coherent.add(each)
    return coherent


def _near(items: Sequence[_Item], number: int) -> list[_Item]:
    return [*items[max(0, number - _NEIGHBOURS) : number], *items[number + 1 : number + 1 + _NEIGHBOURS]]


def _agree(one: Appearance, other: Appearance, slack: float) -> bool:
    by_name, by_storage = (one.named - other.named).total_seconds(), (one.at - other.at).total_seconds()
    return abs(by_name) >= 2 * slack and abs(by_name - by_storage) <= max(slack, 0.01 * abs(by_name))
