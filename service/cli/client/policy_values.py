"""Settings of policies in a form for people. Units, ranges and defaults come from the settings' declarations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

from jobs.spec import Spec
from service.cli.client.output import compact
from service.model.formatting import count, duration, size
from service.policies.policy import SECTIONS, Policy


def shown(name: str, value: Any) -> str:
    """Returns a value with its unit, and windows as times. If the value is rounded, the exact value follows."""
    member = name.rpartition(".")[2]
    if member == "windows" and isinstance(value, list):
        return "; ".join(map(_window, value)) or "at any time"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "-" if value is None else compact(value)
    if member.endswith("_bytes"):
        return size(value).replace(".0 ", " ")
    if member == "seconds" or member.endswith("_seconds"):
        text = duration(value)
        return text if _length(text) == value else f"{text} ({value} s)"
    if member.endswith("_hours"):
        return count(int(value), "hour")
    return compact(value)


def default_of(name: str) -> Any:
    value: Any = _defaults()
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def range_of(name: str) -> str:
    """Returns a text with the least and the greatest value; empty if there are no bounds."""
    section, _, member = name.partition(".")
    declared: Any = SECTIONS.get(section, Policy)
    bounds: dict[str, Any] = {}
    sources = [declared.params, declared] if section in SECTIONS else [declared]
    for each in sources:
        for spec in _specs(get_type_hints(each, include_extras=True).get(member or section)):
            bounds |= {side: bound for side, bound in spec.bounds().items() if side in ("ge", "gt", "le", "lt")}
    low, high = (bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt")))
    if low is None and high is None:
        return ""
    # Bounds such as 2^53 exist only because JSON carries no larger numbers exactly, so they are not shown.
    ends = ("" if each is None or each >= 2**53 else shown(name, each) for each in (low, high))
    return " to ".join(ends).strip() if high is not None and high < 2**53 else f"from {shown(name, low)}"


@cache
def _defaults() -> dict[str, Any]:
    return Policy().to_json()


def _specs(hint: Any) -> Iterator[Spec]:
    for part in get_args(hint):
        if isinstance(part, Spec):
            yield part
        else:
            yield from _specs(part)


def _window(window: dict[str, Any]) -> str:
    days = ", ".join(window.get("days") or ()) or "every day"
    return f"{days} {window['start']}-{window['end']}"


def _length(text: str) -> int:
    """Returns the seconds of a formatted duration."""
    number, unit = text.split(" ")
    return int(number) * {"s": 1, "min": 60, "h": 3600, "day": 86_400, "days": 86_400}[unit]
