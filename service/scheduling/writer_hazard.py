"""Hazards of a change of the number of buckets: writers that would lose rows, or go on with the old number."""

from __future__ import annotations

from dataclasses import dataclass

from jobs.contract import WriterEngine
from jobs.format.hudi_versions import may_ignore_hashing_config
from service.catalog.registration import Registration
from service.lake.engine_sighting import Sightings
from service.scheduling.decision import Run, Skip, Suggest

_SQL_LOSES_ROWS = (
    "set hoodie.bucket.index.query.pruning=false in every such session, and declare it (`writers.query_pruning_off`)"
)


@dataclass(frozen=True)
class Obstacle:
    """The reason why a job would refuse to change the number of buckets."""

    code: str  # The type of the problem.
    because: str  # A sentence for the owner.


WRITERS_TOO_OLD = "writers-too-old"
OBSTACLES = frozenset({"sql-statements-lose-rows", WRITERS_TOO_OLD})


@dataclass(frozen=True)
class WriterHazard:
    """The effect of a change of the number of buckets on the table's writers."""

    obstacle: Obstacle | None = None
    warning: str | None = None  # A sentence for the owner about a hashing config that the table already has.


NO_HAZARD = WriterHazard()


def writer_hazard(table: Registration, sightings: Sightings, *, has_hashing_config: bool) -> WriterHazard:
    """Returns the hazard, which exists in two cases: the table's writers may be too old, or Spark SQL writes the table
    while the owner has not declared that query pruning is off.

    In `UPDATE`, `DELETE` and `SELECT`, Hudi 1.2 misses rows of a table that has a hashing config. So a job would refuse
    to write the first hashing config (`jobs.protocol.writer_engines.of_sql_statements`, `jobs.protocol.older_hudi`).
    """
    writers = table.writers
    version = table.profile.get("table_version")
    if version and not writers.stopped and may_ignore_hashing_config(version, writers.hudi_version):
        declared = f"Hudi {writers.hudi_version}" if writers.hudi_version else "none"
        return WriterHazard(
            Obstacle(
                WRITERS_TOO_OLD,
                "writers older than Hudi 1.1 would keep the old number of buckets and duplicate rows (table version"
                f" {version}, writers declared: {declared})",
            )
        )
    if WriterEngine.SPARK_SQL not in writers.known_engines(sightings) or writers.query_pruning_off:
        return NO_HAZARD
    if has_hashing_config:
        return WriterHazard(warning=f"Spark SQL writes the table, which has a hashing config: {_SQL_LOSES_ROWS}.")
    return WriterHazard(
        Obstacle(
            "sql-statements-lose-rows",
            f"Spark SQL reads and writes the table, and Hudi 1.2 would lose rows there: {_SQL_LOSES_ROWS}",
        )
    )


def unless_refused(proposal: Run | Suggest | Skip, obstacle: Obstacle | None) -> Run | Suggest | Skip:
    """Returns the proposal; if it is `Run` and its job would be refused, returns a `Skip` with the reason instead."""
    if obstacle is None or isinstance(proposal, Skip):
        return proposal
    return Skip(obstacle.code, f"{proposal.because}. But {obstacle.because}", warning=proposal.warning)
