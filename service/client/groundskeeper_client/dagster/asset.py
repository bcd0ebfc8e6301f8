"""Assets whose materialization is a job."""

from collections.abc import Mapping, Sequence
from typing import Any

from dagster import AssetExecutionContext, AssetKey, AssetsDefinition, MaterializeResult, MetadataValue, asset

from groundskeeper_client.dagster.resource import GroundskeeperResource


def table_service_asset(
    table: str,
    kind: str,
    params: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    deps: Sequence[AssetKey | str] = (),
    group_name: str | None = None,
) -> AssetsDefinition:
    """Returns an asset. When Dagster materializes the asset, the asset runs the job on the table (id, name or base
    path), with the resource `groundskeeper`.

    The default name is `<table>_<kind>`. The materialization has the job's id, instants and result as metadata. If
    Dagster repeats a step, the step finds its earlier job.
    """

    @asset(
        name=name or f"{table}_{kind}",
        deps=list(deps),
        group_name=group_name,
        compute_kind="hudi",
        description=f"{kind} of the table {table}, by Groundskeeper",
    )
    def run(context: AssetExecutionContext, groundskeeper: GroundskeeperResource) -> MaterializeResult:
        job = groundskeeper.run_job(table, kind, params, context=context)
        return MaterializeResult(
            metadata={
                "job_id": job.id,
                "instants": MetadataValue.json(job.instants),
                "result": MetadataValue.json(job.result or {}),
            }
        )

    return run
