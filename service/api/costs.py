"""/v1/models/cost: the expected cost of jobs, and the error of that expectation"""

from __future__ import annotations

from pydantic import BaseModel, Field

from jobs.contract import JobKind
from service.api.answers import ListOf
from service.api.dependencies import DatabaseDep, MonitoringDep
from service.api.routes import Routes
from service.queue.cost_model import Learned

router = Routes(prefix="/v1/models", tags=["jobs"])


class LearnedCostOut(BaseModel):
    """The learned cost of one kind of job. An attempt takes `seconds`, plus `seconds_per_gib` and `seconds_per_file`
    for the files that it works on. A table that differs from that has a factor of its own."""

    kind: JobKind
    dry_run: bool = Field(description="Whether this is the cost of dry runs")
    jobs: int = Field(
        description="Number of attempts from which the cost is learned: the latest that succeeded", examples=[200]
    )
    tables: int = Field(description="Number of tables of these attempts", examples=[31])
    seconds: float = Field(description="Seconds that each attempt takes", examples=[1.2])
    seconds_per_gib: float = Field(description="Seconds that each GiB of files takes", examples=[14.5])
    seconds_per_file: float = Field(description="Seconds that each file takes", examples=[0.012])
    error_on_other_tables: float | None = Field(
        description="Median error for tables that the model has not seen, as a share of the seconds that an attempt"
        " took. Half of the tables are held out for it in turn; null if too few are known",
        examples=[0.12],
    )
    error_on_known_tables: float | None = Field(
        description="Median error if the model knows the previous attempt on the same table; null if there is none",
        examples=[0.05],
    )

    @classmethod
    def of(cls, learned: Learned) -> LearnedCostOut:
        fit, accuracy = learned.fit, learned.accuracy
        return cls(
            kind=JobKind(learned.kind),
            dry_run=learned.dry_run,
            jobs=accuracy.jobs,
            tables=accuracy.tables,
            seconds=round(fit.seconds, 4),
            seconds_per_gib=round(fit.seconds_per_gib, 4),
            seconds_per_file=round(fit.seconds_per_file, 6),
            error_on_other_tables=_rounded(accuracy.of_other_tables),
            error_on_known_tables=_rounded(accuracy.of_known_tables),
        )


@router.reader("GET /cost", "Show what is learned about the cost of jobs, and its error by kind")
def get_cost_model(database: DatabaseDep, monitoring: MonitoringDep) -> ListOf[LearnedCostOut]:
    """The model learns from the last 50 000 attempts, and is the same after a restart."""
    known = {each.value for each in JobKind}
    learned = monitoring.forecaster.learned(database.engine)
    return ListOf[LearnedCostOut].of([each for each in learned if each.kind in known], LearnedCostOut.of)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
