"""The literals in the database's constraints are the values of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.db import schema
from service.incidents.incident import UNRESOLVED, IncidentKind
from service.queue.job import ACTIVE, WITH_WORKER

if TYPE_CHECKING:
    import sqlalchemy as sa

HOLDING = schema.JOB_HOLDING_TABLE


def literals(clause: sa.ColumnElement[bool]) -> str:
    return str(clause.compile(compile_kwargs={"literal_binds": True}))


@pytest.mark.parametrize(
    ("index", "states"),
    [
        (schema.JOB_PER_KIND, ACTIVE),
        (schema.JOB_REWRITING, ACTIVE),
        (HOLDING, WITH_WORKER),
        (schema.JOB_OF_REQUEST, WITH_WORKER),
    ],
)
def test_the_constraints_of_jobs_name_the_states_of_the_model(index: str, states: list[str]) -> None:
    [found] = [each for each in schema.jobs.indexes if each.name == index]
    listed = ", ".join(f"'{state}'" for state in states)
    assert f"jobs.state IN ({listed})" in literals(found.dialect_options["sqlite"]["where"])


def test_standing_incidents_and_late_files_are_those_of_the_model() -> None:
    listed = ", ".join(f"'{state}'" for state in UNRESOLVED)
    assert literals(schema.INCIDENT_IS_STANDING) == f"incidents.state IN ({listed})"
    assert literals(schema.INCIDENT_IS_OF_LATE_FILES) == f"incidents.kind = '{IncidentKind.LATE_FILES}'"
