"""Sightings of the engines that write a table. Hudi does not record the engines, but each leaves marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from jobs.contract import JsonMapped, WriterEngine
from jobs.spec import Spec


@dataclass(frozen=True)
class Mark:
    """One trace of an engine: when it was left; the instant, None for a trace outside the timeline; and the evidence as
    text."""

    engine: WriterEngine
    at: datetime
    instant: str | None
    evidence: str


@dataclass(frozen=True)
class Sighting(JsonMapped):
    """All marks of one engine. `instant` and `evidence` are those of the last mark."""

    first_seen: datetime
    last_seen: datetime
    instant: Annotated[
        str | None, Spec("The latest instant with evidence; null if the evidence is in the table itself")
    ]
    evidence: Annotated[
        str, Spec("What shows that the engine writes the table", examples=("flink checkpoint in the commit",))
    ]


Sightings = Mapping[WriterEngine, Sighting]


def with_marks(sightings: Sightings, marks: Iterable[Mark]) -> dict[WriterEngine, Sighting]:
    """Returns the sightings with the marks added. Marks may come in any order and more than once."""
    found = dict(sightings)
    for mark in marks:
        old = found.get(mark.engine)
        if old is None:
            found[mark.engine] = Sighting(mark.at, mark.at, mark.instant, mark.evidence)
        elif mark.at > old.last_seen:
            found[mark.engine] = Sighting(old.first_seen, mark.at, mark.instant, mark.evidence)
        elif mark.at < old.first_seen:
            found[mark.engine] = Sighting(mark.at, old.last_seen, old.instant, old.evidence)
    return found


def to_json(sightings: Sightings) -> dict[str, Any]:
    return {engine.value: sighting.to_json() for engine, sighting in sightings.items()}


def from_json(data: Mapping[str, Any] | None) -> dict[WriterEngine, Sighting]:
    return {WriterEngine(engine): Sighting.from_json(each) for engine, each in (data or {}).items()}
