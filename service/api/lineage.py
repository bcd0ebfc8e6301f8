"""The schema of the facet of our own in OpenLineage events. It needs no token: those who read the events have none."""

from __future__ import annotations

from typing import Any

from service.api.routes import Routes
from service.delivery import lineage_facet

router = Routes(prefix="/openlineage", tags=["webhooks"])


@router.on(f"GET /{lineage_facet.NAME}.json", "Read the JSON Schema of the OpenLineage facet `groundskeeper_job`")
async def get_lineage_facet_schema() -> dict[str, Any]:
    """The `_schemaURL` of the facet is the `$id` of this schema."""
    return lineage_facet.schema()
