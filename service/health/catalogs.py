"""Problems of catalogs: the syncs of a catalog fail, or registrations of tables differ from what the catalog says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from service.health.next_step import Step
from service.health.problem import About, Definition, HealthProblem, ObjectType, ProblemKind, Severity
from service.health.problem_facts import Facts
from service.model.command_line import line
from service.model.formatting import duration

CATALOG_FAILING = Definition(
    ProblemKind.CATALOG_FAILING,
    Severity.WARNING,
    "A catalog cannot be synced",
    "New, moved and dropped tables of the catalog are not noticed.",
    "Do what the error says; the service tries again by itself.",
)

CATALOG_DIFFERS = Definition(
    ProblemKind.CATALOG_DIFFERS,
    Severity.NOTICE,
    "Catalog and registrations differ",
    "New tables of the catalog are not serviced, and polls of moved or dropped tables may fail.",
    "Look at each table and its reason. Register or unregister the table, by hand or by the catalog's rules, or"
    " exclude it by a pattern of the catalog.",
)

_WORDS = {"new": "new", "moved": "moved", "dropped": "dropped", "refused": "refused", "broken": "not readable"}


def catalogs(facts: Facts, now: datetime) -> Iterator[HealthProblem]:
    for each in facts.catalogs:
        about = About(ObjectType.CATALOG, each.name, each.name)
        if each.error is not None and each.failing_since is not None:
            yield CATALOG_FAILING.of(
                about,
                each.failing_since,
                f"{each.error.title}: {each.error.detail} This began {duration(now - each.failing_since)} ago.",
                {"error": each.error.type, "failures": each.failures},
                step=Step(line("catalogs", "show", each.name)),
                remedy=each.error.hint or None,
            )
        counts = (each.report or {}).get("counts") or {}
        if counts and each.differs_since is not None:
            named = ", ".join(f"{number} {_WORDS.get(kind, kind)}" for kind, number in sorted(counts.items()))
            first = [str(found["name"]) for found in (each.report or {}).get("findings", ())[:5]]
            yield CATALOG_DIFFERS.of(
                about,
                each.differs_since,
                f"The last sync has left differences: {named}. The first ones: {', '.join(first)}.",
                {**counts, "first": first},
                step=Step(line("catalogs", "show", each.name)),
            )
