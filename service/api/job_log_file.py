"""The whole log of a job as a file: /v1/jobs/{id}/log.txt"""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from fastapi.responses import PlainTextResponse

from jobs.contract import LogLevel
from service.api.dependencies import DatabaseDep
from service.api.job_models import as_text
from service.api.jobs import JobId
from service.api.routes import Routes
from service.db.engine import reading
from service.queue import job_log, job_store

router = Routes(prefix="/v1/jobs", tags=["jobs"])


@router.reader(
    "GET /{job_id}/log.txt",
    "Download the log of a job",
    response_model=str,
    response_class=PlainTextResponse,
)
def download_job_log(
    job_id: JobId,
    database: DatabaseDep,
    level: Annotated[LogLevel, Query(description="Only lines of this level and above")] = LogLevel.DEBUG,
) -> PlainTextResponse:
    """Returns all lines that are kept, the oldest first, as a file that is named after the job."""
    with reading(database.engine) as connection:
        job_store.get(connection, job_id)
        text = as_text(job_log.whole(connection, job_id, level))
    return PlainTextResponse(text, headers={"Content-Disposition": f'attachment; filename="{job_id}.log"'})
