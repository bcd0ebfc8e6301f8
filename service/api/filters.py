"""Query parameters that several lists share."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import StringConstraints

from jobs.contract import JobKind
from service.api.patterns import GLOB, SOME_TEXT
from service.api.requests import Moment

_REPEATED = "May be repeated. Default: any"

Since = Annotated[Moment | None, Query(description="At this time or later", examples=["2026-01-01T00:00:00Z"])]
Until = Annotated[Moment | None, Query(description="Before this time", examples=["2026-01-02T00:00:00Z"])]
OfTable = Annotated[
    str | None,
    Query(
        max_length=64,
        pattern=SOME_TEXT,
        description="Only those of the table with this id",
        examples=["tbl_0f3c2a9d5e7b1c44"],
    ),
]
# Each star multiplies the steps of a comparison.
Glob = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=GLOB)]
OfKinds = Annotated[list[JobKind], Query(description=_REPEATED, max_length=50, examples=[["compaction", "cleaning"]])]
Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of items on a page")]
CursorText = Annotated[str | None, Query(max_length=500, description="`next_cursor` of the previous page")]


def _listed(
    *, since: Since = None, until: Until = None, limit: Limit = 100, cursor: CursorText = None
) -> dict[str, Any]:
    return {"since": since, "until": until, "limit": limit, "cursor": cursor}


Listed = Annotated[dict[str, Any], Depends(_listed)]
"""The period and the page of a list, by the names that the `page` of a store has for them."""
