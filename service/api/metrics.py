"""The metrics for Prometheus: /metrics"""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import Depends, Request, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from service.access.token import Role
from service.api.dependencies import METRICS_PATH, ExposureDep, bearer, caller_of, needs
from service.api.routes import Routes
from service.model.errors import NotReadyError

router = Routes(tags=["health"])

_SECONDS = 5.0
_EXAMPLE = """# HELP groundskeeper_tables Registered tables
# TYPE groundskeeper_tables gauge
groundskeeper_tables 12.0
"""


async def may_scrape(request: Request, exposure: ExposureDep, _documented: Annotated[object, Depends(bearer)]) -> None:
    """Raises ForbiddenError unless the caller may read, or the settings let anybody scrape."""
    if not exposure.open_metrics:
        await needs(Role.READER)(await caller_of(request, None))


# No thread of the pool is needed, so scrapes are answered also when calls that wait for tables take all.
@router.on(
    f"GET {METRICS_PATH}",
    "Show the metrics in the text format of Prometheus",
    NotReadyError,
    responses={
        200: {
            "description": "Metrics; `groundskeeper_database_up` is 0 if those of the database could not be read",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
    dependencies=[Depends(may_scrape)],
    response_class=Response,
)
async def get_metrics(request: Request) -> Response:
    """Needs the role reader, unless `GROUNDSKEEPER_OPEN_METRICS` is set. The answer is made once a second at most:
    callers in between get the last one."""
    made = asyncio.wrap_future(request.app.state.scrapes.latest())
    # Unlike `wait_for` this does not cancel it, since other callers may wait for it.
    await asyncio.wait([made], timeout=_SECONDS)
    if not made.done():
        raise NotReadyError(f"The database did not answer within {_SECONDS:g} s.")
    return Response(made.result(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
