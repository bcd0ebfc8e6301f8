"""/v1/lineage: OpenLineage events of programs that read tables"""

from __future__ import annotations

from typing import Annotated, Any, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from jobs.kinds.words import NO_NUL
from service.api.answers import Shown
from service.api.dependencies import DatabaseDep
from service.api.query_parameters import TOLERANT
from service.api.routes import Routes
from service.outcome import lineage
from service.outcome.lineage import Dataset, Received

router = Routes(prefix="/v1", tags=["writers"])

_MOST_DATASETS = 10_000
_MOST_SYMLINKS = 20

_Text = Annotated[str, StringConstraints(max_length=4096, pattern=NO_NUL)]


class _Tolerant(BaseModel):
    """Ignores unknown members, because producers send far more than is needed here."""

    model_config = ConfigDict(extra="ignore")


class LineageRunIn(_Tolerant):
    runId: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=NO_NUL)] = Field(  # noqa: N815
        description="Id of the run. A run counts once for each table", examples=["0190b1c2-6f1e-7c3a-9f2e-1d2c3b4a5f60"]
    )


class LineageDatasetIn(_Tolerant):
    """A dataset that the run has read."""

    namespace: _Text = Field(description="Namespace of the dataset", examples=["s3://lake"])
    name: _Text = Field(description="Name of the dataset in the namespace", examples=["orders"])
    facets: dict[str, Any] | None = Field(
        None, description="Facets of the dataset. Only `symlinks` is read: other names of the dataset"
    )

    def to_model(self) -> Dataset:
        return Dataset(self.namespace, self.name, tuple(_symlinks(self.facets or {})))


class LineageEventIn(_Tolerant):
    """A RunEvent. Events about jobs and datasets, which have no run, are accepted and not counted."""

    run: LineageRunIn | None = Field(None, description="The run; null in events about jobs and datasets")
    producer: _Text = Field(
        "", description="The program that sends the event", examples=["https://github.com/OpenLineage"]
    )
    inputs: list[LineageDatasetIn] | None = Field(
        None, max_length=_MOST_DATASETS, description="The datasets that the run has read"
    )


class LineageOut(Shown, declared=Received):
    counted: int = Field(description="Number of tables whose read was counted", examples=[1])
    repeated: int = Field(description="Number of tables whose read by the same run was counted before", examples=[0])
    unknown: int = Field(description="Number of datasets that are no registered tables", examples=[2])


@router.operator("POST /lineage", "Report which tables a run reads", openapi_extra=TOLERANT)
def post_lineage(event: LineageEventIn, database: DatabaseDep) -> LineageOut:
    """Accepts the RunEvents of OpenLineage, as Spark, Flink, Trino and Airflow send them. A run counts once for each
    table, however many events it sends. Tables are found by their path, or by their name in a catalog."""
    if event.run is None or event.producer.startswith(lineage.OWN_PRODUCER):
        return LineageOut.of(Received())
    inputs = [each.to_model() for each in event.inputs or ()]
    return LineageOut.of(lineage.receive(database, event.run.runId, inputs))


def _symlinks(facets: dict[str, Any]) -> list[tuple[str, str]]:
    facet = facets.get("symlinks")
    given = facet.get("identifiers") if isinstance(facet, dict) else None
    each = [one for one in given[:_MOST_SYMLINKS] if isinstance(one, dict)] if isinstance(given, list) else []
    pairs = [(one.get("namespace"), one.get("name")) for one in each]
    return [(one, other) for one, other in pairs if _is_text(one) and _is_text(other)]


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= 4096 and "\0" not in value
