"""Assembles the API."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi_offline import FastAPIOffline

from service.api import (
    advices,
    audit,
    bulk,
    calendar,
    catalogs,
    commits,
    consumers,
    costs,
    dashboard,
    decisions,
    delegation,
    discovery,
    docs,
    entity_tags,
    events,
    freezes,
    health,
    health_problems,
    incidents,
    jobs,
    lineage,
    locks,
    login,
    middleware,
    notifications,
    outcomes,
    overview,
    policies,
    problem_pages,
    problems,
    report,
    session,
    shadows,
    simulations,
    tables,
    webhooks,
    worker,
    workers,
    writers,
)
from service.api.audit_trail import AuditTrail
from service.api.authentication import Authentication
from service.api.dependencies import AppContext
from service.api.document.completion import complete
from service.api.open_calls import JobWaits
from service.api.problems import ProblemDocument
from service.api.request_ids import RequestIds
from service.api.statuses import document_common
from service.api.traces import Traces
from service.db.probe import Probe
from service.metrics.scrape import Scrapes

_DESCRIPTION = """
Runs compaction, cleaning, clustering and bucket expansion on Apache Hudi tables, under the table's own lock.

1. `POST /v1/tables` registers a table.
2. `POST /v1/tables/{table_id}/jobs` asks for a table service; `"dry_run": true` returns the plan and changes nothing.
3. `GET /v1/jobs/{job_id}` shows its progress, its result, and the reason if it failed.
4. `PUT /v1/policies/{pattern}` sets which jobs the service starts automatically;
   `GET /v1/tables/{table_id}/decisions` shows what it decided, and why.

Every error is a problem document (RFC 9457) with a `type`, a `detail` with the reason and a `hint` with the remedy.
Each answer has a header `X-Request-Id` with the id of the request; the service's log and audit trail have the same id.
A request may bring its own id in this header, of up to 128 letters, digits and `._:/+=@-`. Otherwise the id is new.
"""

_TAGS = [
    {"name": "tables", "description": "Register Hudi tables and declare their writers."},
    {"name": "commits", "description": "The commits of the tables, and their current state."},
    {"name": "incidents", "description": "Faults that were found on tables, and how each one was resolved."},
    {"name": "problems", "description": "Everything that is wrong now, the most serious first, and what to do."},
    {"name": "writers", "description": "Hudi's commit callback, and the options that writers need."},
    {"name": "delegation", "description": "Hudi's protocol of a table service manager: writers delegate their plans."},
    {"name": "policies", "description": "Set which jobs start automatically, and when; pause them."},
    {"name": "decisions", "description": "See which jobs were started automatically, which were not, and why."},
    {"name": "jobs", "description": "Submit, inspect and cancel jobs."},
    {
        "name": "webhooks",
        "description": "Receive events about commits, jobs and tables: signed, in order, at least once.",
    },
    {"name": "notifications", "description": "Tell people in Slack, Teams, PagerDuty, Alertmanager or by mail."},
    {"name": "audit", "description": "See who changed what, and when."},
    {"name": "access", "description": "Log in to the dashboard. Other clients send a bearer token with each call."},
    {"name": "worker", "description": "The protocol of the Spark workers: lease, heartbeat, result."},
    {"name": "health", "description": "For probes, which need no token, and for Prometheus."},
]


# The path of a call is compared with one route after the other, so the routes of frequent calls come first.
_PARTS = (
    writers,
    worker,
    lineage,
    tables,
    bulk,
    calendar,
    locks,
    discovery,
    catalogs,
    commits,
    consumers,
    incidents,
    health_problems,
    overview,
    freezes,
    shadows,
    simulations,
    advices,
    policies,
    decisions,
    outcomes,
    jobs,
    costs,
    report,
    webhooks,
    notifications,
    events,
    delegation,
    workers,
    audit,
    session,
    health,
    problem_pages,
)
# The routes do not depend on an application, so all applications of a process share them.
_ROUTES = [route for part in _PARTS for route in part.router.routes if isinstance(route, APIRoute)]


def create_app(context: AppContext) -> FastAPI:
    """Returns the application. The database must be migrated. The background ticks run in `service.runtime.process`."""
    # The class serves the files of the documentation itself; FastAPI's own page loads them from a public server.
    app = FastAPIOffline(
        title="Groundskeeper",
        version=version("groundskeeper"),
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        docs_url=None,
        redoc_url=None,
        # A path with a further slash at its end is not found, because a redirect would drop the body of a POST.
        redirect_slashes=False,
    )
    database, monitoring, exposure = context.database, context.monitoring, context.exposure
    app.state.context = context
    app.state.streams = events.Streams()
    app.state.job_waits = JobWaits()
    app.state.probe = Probe(database.engine)
    app.state.worker_check = health.worker_check(database.engine, database.clock)
    app.state.scrapes = Scrapes(monitoring.metrics, context.fleet_work)
    app.router.routes += _ROUTES
    dashboard.install(app, context.identity.provider.host if context.identity else None)
    audited = login.install(app) if context.identity else []
    docs.install(app)
    problems.install(app)
    # Starlette runs middleware in reverse order: the one that was added last runs first.
    app.add_middleware(middleware.SizeLimit, max_bytes=exposure.max_request_bytes)
    app.add_middleware(Authentication, database=database, exposure=exposure, identity=context.identity)
    app.add_middleware(middleware.AuditLog, trail=AuditTrail(database, [*_ROUTES, *audited]))
    app.add_middleware(middleware.Latencies, metrics=monitoring.metrics)
    app.add_middleware(Traces)
    app.add_middleware(RequestIds)
    _document_problems(app)
    return app


def _document_problems(app: FastAPI) -> None:
    """Adds the problems of every operation, and the schema of the problem document. FastAPI's own schemas of validation
    errors are left out, because this API never returns such an error."""
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
            for address, path in document["paths"].items():
                for method, operation in path.items():
                    is_conditional = entity_tags.document(method, address, operation)
                    document_common(method, operation, is_conditional=is_conditional)
            complete(document, {name: each.example for name, each in problem_pages.every_type().items()})
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way
