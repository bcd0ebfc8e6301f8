"""The expected costs of jobs that make reads cheaper, in the form that decisions need."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from jobs.contract import JobKind
from service.queue.cost import DEFAULT_SECONDS, Cost
from service.queue.forecaster import Planned

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from service.queue.forecaster import Forecaster

WEIGHED = (JobKind.COMPACTION, JobKind.CLUSTERING)
"""The kinds that make reads cheaper. Jobs of other kinds start before them."""

Costs = Mapping[tuple[str, JobKind], Cost]
"""The known expected costs of jobs, by table and kind."""

NO_COSTS: Costs = MappingProxyType({})


def costs_of(connection: Connection, forecaster: Forecaster | None, table_ids: Iterable[str]) -> Costs:
    """Returns the known expected costs of the jobs of these tables that make reads cheaper."""
    jobs = {(table_id, kind): Planned(table_id, kind.value) for table_id in table_ids for kind in WEIGHED}
    return forecaster.costs_by(connection, jobs) if forecaster and jobs else NO_COSTS


def work_seconds(costs: Costs, table_id: str) -> Mapping[JobKind, float]:
    """Returns the expected seconds of the jobs of a table."""
    found = ((kind, costs.get((table_id, kind))) for kind in WEIGHED)
    return {kind: cost.seconds if cost else DEFAULT_SECONDS for kind, cost in found}
