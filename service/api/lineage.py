"""The schema of the facet of our own in OpenLineage events. It needs no token: those who read the events have none."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from service.delivery import lineage_facet

router = APIRouter(prefix="/openlineage", tags=["webhooks"])


@router.get(
    f"/{lineage_facet.NAME}.json",
    operation_id="getLineageFacetSchema",
    summary="Read the JSON Schema of the OpenLineage facet `groundskeeper_job`",
)
async def facet_schema() -> dict[str, Any]:
    """The `_schemaURL` of the facet is the `$id` of this schema."""
    return lineage_facet.schema()
