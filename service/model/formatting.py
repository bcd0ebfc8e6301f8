"""Figures formatted for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LENGTHS = {"day": 86_400, "h": 3600, "min": 60}


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_of(names: Sequence[object], most: int) -> str:
    """Returns the first `most` names, followed by three dots if there are more."""
    return ", ".join(map(str, names[:most])) + (" ..." if len(names) > most else "")


def utc_minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def size(number: float) -> str:
    power = 0
    while number >= 1024 and power < len(_UNITS) - 1:
        number /= 1024
        power += 1
    return f"{number:.1f} {_UNITS[power]}" if power else f"{number:.0f} B"


def duration(span: timedelta | float) -> str:
    """Formats a timedelta, or a number of seconds, rounded down to whole units of its largest unit."""
    seconds = int(span.total_seconds() if isinstance(span, timedelta) else span)
    for unit, length in _LENGTHS.items():
        if seconds >= 2 * length or (seconds == length):
            number = seconds // length
            return count(number, unit) if unit == "day" else f"{number} {unit}"
    return f"{max(seconds, 0)} s"


def steady_for(seconds: float) -> float:
    """Returns the seconds until the text of `duration` changes, for a time that has lasted `seconds` until now."""
    if seconds < 0:
        return 1 - seconds
    whole = int(seconds)
    if whole in _LENGTHS.values():
        return 1 - seconds % 1
    length = next((each for each in _LENGTHS.values() if whole >= 2 * each), 1)
    return length - seconds % length
