"""The service's own facet in OpenLineage run events. The JSON Schema (2020-12) of the facet is a file of this
package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

NAME: Final = "groundskeeper_job"
URN: Final = "urn:groundskeeper:facet:job:1"
"""The `$id` of the schema. It is a name, not an address, because a service cannot know the address by which others
reach the service."""


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files("service.delivery") / "templates" / f"{NAME}.json").read_text())
    return found
