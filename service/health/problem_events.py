"""Events about problems."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from service.events.event import Event, EventType, event_id
from service.health.problem import Severity
from service.health.problem_store import OpenProblem


def problem_event(type_: EventType, found: OpenProblem, counts: Mapping[Severity, int], at: datetime) -> Event:
    """Returns the event for a problem that has opened, or whose severity has risen; or that is resolved. `counts` are
    the problems that are open now."""
    problem, about = found.problem, found.problem.about
    data: dict[str, Any] = {
        "problem": {
            "id": problem.id,
            "kind": problem.kind.value,
            "severity": problem.severity.value,
            "about": {"type": about.type.value, "id": about.id, "name": about.name},
            "since": problem.since.isoformat(),
            "opened_at": found.opened_at.isoformat(),
            "resolved_at": at.isoformat() if type_ is EventType.PROBLEM_RESOLVED else None,
            **problem.words,
        },
        "open": {severity.value: counts.get(severity, 0) for severity in Severity},
    }
    if problem.table_id is not None:
        data["table"] = {"id": about.id, "name": about.name, "base_path": found.base_path}
    parts = (problem.id, found.opened_at.isoformat(), problem.severity.value)
    return Event(event_id(type_.value, *parts), type_, at, problem.table_id, data)
