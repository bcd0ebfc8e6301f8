"""Puts the API together."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from service.api import (
    commits,
    dashboard,
    decisions,
    events,
    health,
    incidents,
    jobs,
    middleware,
    policies,
    problems,
    tables,
    webhooks,
    worker,
    workers,
    writers,
)
from service.api.dependencies import AppContext
from service.api.responses import ProblemDocument

_DESCRIPTION = """
Runs compaction, cleaning, clustering and bucket expansion on Apache Hudi tables, under the table's own lock.

1. `POST /v1/tables` registers a table.
2. `POST /v1/tables/{table_id}/jobs` asks for a table service; `"dry_run": true` answers the plan and changes nothing.
3. `GET /v1/jobs/{job_id}` shows how far it is, what it made, and why it failed if it did.
4. `PUT /v1/policies/{pattern}` says what should be done without being asked;
   `GET /v1/tables/{table_id}/decisions` shows what was decided, and why.

Every error is a problem document (RFC 9457) with a `type`, a `detail` that says why and a `hint` what to do.
"""

_TAGS = [
    {"name": "tables", "description": "Register Hudi tables and say what is known about their writers."},
    {"name": "commits", "description": "What was committed to the tables, and how they stand."},
    {"name": "incidents", "description": "What went wrong with the tables, and what has become of it."},
    {"name": "writers", "description": "For the writers: Hudi's commit callback, and the options that they need."},
    {"name": "policies", "description": "Say what should be done by itself, and when; pause it."},
    {"name": "decisions", "description": "See what was done by itself, what was not, and why."},
    {"name": "jobs", "description": "Ask for table services, look at them, cancel them."},
    {"name": "webhooks", "description": "Be told of commits, jobs and tables: signed, in order, at least once."},
    {"name": "worker", "description": "The protocol of the Spark workers: lease, heartbeat, result."},
    {"name": "health", "description": "For probes. These calls need no token."},
]


def create_app(context: AppContext) -> FastAPI:
    """The database must be migrated. Nothing runs in the background: the ticks are `service.daemon`'s."""
    # FastAPI's own page loads its scripts from a public server, which a browser inside a company may not reach.
    app = FastAPIOffline(
        title="Groundskeeper",
        version=version("groundskeeper"),
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        redoc_url=None,
        # A path is spelt in one way; a redirect would drop the body of a POST.
        redirect_slashes=False,
    )
    app.state.context = context
    app.state.streams = events.Streams()
    for part in (
        tables,
        commits,
        incidents,
        policies,
        decisions,
        jobs,
        webhooks,
        events,
        writers,
        workers,
        worker,
        health,
    ):
        app.include_router(part.router)
    dashboard.install(app)
    problems.install(app)
    # The last one added is the first one passed.
    app.add_middleware(middleware.SizeLimit, max_bytes=context.max_request_bytes)
    app.add_middleware(middleware.AuditLog)
    _document_problems(app)
    return app


def _document_problems(app: FastAPI) -> None:
    """Adds the problem document to the schemas that `statuses.documented` points to, and has it replace FastAPI's own
    form of a validation error, which this API never answers."""
    generate = app.openapi

    def openapi() -> dict[str, object]:
        if app.openapi_schema is None:
            document = generate()
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            own = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(own.pop("$defs", {}))
            schemas["ProblemDocument"] = own
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            for path in document["paths"].values():
                for operation in path.values():
                    _replace_validation_error(operation["responses"])
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way


def _replace_validation_error(responses: dict[str, dict[str, object]]) -> None:
    for response in responses.values():
        content = response.get("content")
        if isinstance(content, dict) and "HTTPValidationError" in str(content):
            response["description"] = "`params-invalid`: something is missing, unknown or out of range"
            response["content"] = {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}
            }
