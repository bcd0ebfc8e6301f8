"""/v1/models/cost: the expected cost of jobs, and the error of that expectation"""

from __future__ import annotations

from pydantic import BaseModel, Field

from jobs.contract import JobKind
from service.api.answers import ListOf
from service.api.dependencies import FleetDep
from service.api.routes import Routes
from service.api.structs import answered
from service.metrics.installation import Installation
from service.model.errors import FleetUnavailableError
from service.queue.cost import CostPart
from service.queue.cost_fit import Fit
from service.queue.cost_model import Accuracy, Learned

router = Routes(prefix="/v1/models", tags=["jobs"])


class LearnedAmountOut(BaseModel):
    """What is learned about one part of the cost. An attempt takes `per_job`, plus `per_gib` and `per_file` for the
    files that it works on. If the attempts of a table take more or less, the model has a factor for this table."""

    of: CostPart = Field(description="The part of the cost", examples=["seconds"])
    jobs: int = Field(
        description="Number of attempts from which the amount is learned: the latest that succeeded and reported it",
        examples=[200],
    )
    tables: int = Field(description="Number of tables of these attempts", examples=[31])
    per_job: float = Field(description="What each attempt takes", examples=[1.2])
    per_gib: float = Field(description="What each GiB of files takes", examples=[14.5])
    per_file: float = Field(description="What each file takes", examples=[0.012])
    first_job: float = Field(
        description="Factor by which the first job of a worker takes more than later ones", examples=[2.3]
    )
    beside_another: float = Field(
        description="Factor by which a job takes more while its worker runs another one", examples=[1.4]
    )
    error_on_other_tables: float | None = Field(
        description="Median error for tables that the model does not know, as a share of what an attempt took. To"
        " measure the error, one half of the tables at a time is left out. Null if too few tables are known",
        examples=[0.12],
    )
    error_on_known_tables: float | None = Field(
        description="Median error if the model knows the previous attempt on the same table; null if there is none",
        examples=[0.05],
    )

    @classmethod
    def of_part(cls, part: CostPart, fit: Fit, accuracy: Accuracy) -> LearnedAmountOut:
        return cls(
            of=part,
            jobs=accuracy.jobs,
            tables=accuracy.tables,
            per_job=round(fit.per_job, 4),
            per_gib=round(fit.per_gib, 4),
            per_file=round(fit.per_file, 6),
            first_job=round(fit.slowness.first_job, 3),
            beside_another=round(fit.slowness.beside_another, 3),
            error_on_other_tables=_rounded(accuracy.of_other_tables),
            error_on_known_tables=_rounded(accuracy.of_known_tables),
        )


class LearnedCostOut(BaseModel):
    kind: JobKind
    dry_run: bool = Field(description="Whether this is the cost of dry runs")
    amounts: list[LearnedAmountOut] = Field(
        description="The seconds of attempts; also CPU seconds and bytes, as far as attempts report them"
    )

    @classmethod
    def of(cls, learned: Learned) -> LearnedCostOut:
        amounts = [LearnedAmountOut.of_part(part, *found) for part, found in learned.parts.items()]
        return cls(kind=JobKind(learned.kind), dry_run=learned.dry_run, amounts=amounts)


@router.reader("GET /cost", "Show what is learned about the cost of jobs, and its error by kind", FleetUnavailableError)
def get_cost_model(fleet: FleetDep) -> ListOf[LearnedCostOut]:
    """The model learns from the last 50 000 attempts. A restart does not change the model."""
    return answered(fleet, learned_costs)


def learned_costs(installation: Installation) -> ListOf[LearnedCostOut]:
    known = {each.value for each in JobKind}
    learned = installation.monitoring.forecaster.learned(installation.database.engine)
    return ListOf[LearnedCostOut].of([each for each in learned if each.kind in known], LearnedCostOut.of)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
