"""The facet of our own in OpenLineage run events, by its JSON Schema (2020-12), which is a file of this package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

NAME: Final = "groundskeeper_job"
URN: Final = "urn:groundskeeper:facet:job:1"
"""The `$id` of the schema. A service cannot know the address at which others reach it, so the events have this name."""


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files("service.delivery") / "templates" / f"{NAME}.json").read_text())
    return found
