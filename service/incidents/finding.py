"""Commits whose rows a poll found misplaced, before they are recorded as incidents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from service.incidents.incident import IncidentKind, IncidentState


@dataclass(frozen=True)
class Finding:
    """One commit whose rows are misplaced in one way."""

    kind: IncidentKind
    state: IncidentState
    instant: str
    operation: str | None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """The findings of a poll. `repaired` maps instants to the commits that moved their rows to the right buckets.
    `undone` are instants that are no longer part of the table."""

    findings: tuple[Finding, ...] = ()
    repaired: Mapping[str, str] = field(default_factory=dict)
    undone: frozenset[str] = frozenset()
