"""The pages that explain the types of problems: /problems, for programs as JSON and for browsers as HTML."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from fastapi import Path, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from jobs import lock_errors, storage_errors, table_errors  # noqa: F401 - their classes have pages
from jobs.errors import JobError
from jobs.problems import problem_type
from service.api.problems import problem_uri
from service.api.routes import Routes
from service.api.statuses import status_of
from service.model.errors import GroundskeeperError, RouteNotFoundError
from service.model.job_errors import JobConflictError
from service.queue import problem_types  # noqa: F401 - they have pages

_Error = TypeVar("_Error", GroundskeeperError, JobError)

router = Routes(prefix="/problems", tags=["health"])

_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
html { color-scheme: light dark; background: #fff; color: #17201b }
a { color: #17653a }
@media (prefers-color-scheme: dark) { html { background: #111613; color: #e6ece8 } a { color: #5ccb8c } }
pre { overflow-x: auto; padding: 1rem; border: 1px solid; border-radius: .4rem }
dt { font-weight: 600 } dd { margin: 0 0 .6rem } h2 { font-size: 1.1rem; margin-bottom: 0 } p { margin-top: .2rem }
"""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    f" style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_VARIES = {"Vary": "Accept"}
_AS_HTML = {"description": "JSON, or HTML for browsers", "content": {"text/html": {"schema": {"type": "string"}}}}


def _examples(schema: dict[str, Any]) -> None:
    schema["examples"] = [_shown(JobConflictError, status_of(JobConflictError)).model_dump()]


class ProblemType(BaseModel, json_schema_extra=_examples):
    """A type of problem that calls, jobs or both may have."""

    type: str = Field(description="The last part of `type` in a problem document", examples=["job-conflict"])
    title: str = Field(description="What happened")
    why: str = Field(description="Why such a problem occurs")
    hint: str = Field(description="What to do")
    status: int | None = Field(
        description="HTTP status of an answer with such a problem; null for a type that only the `error` of a job has"
    )
    example: dict[str, Any] = Field(description="A problem document of this type")


class ProblemTypeList(BaseModel):
    """All types of problems, in alphabetical order."""

    items: list[ProblemType] = Field(description="The types")


def every_type() -> dict[str, ProblemType]:
    """Returns all types of problems by name, in alphabetical order. A type that calls and jobs share has the texts for
    calls."""
    of_calls = [_shown(kind, status_of(kind), kind.example_members) for kind in _with_subclasses(GroundskeeperError)]
    of_jobs = [_shown(kind) for kind in _with_subclasses(JobError)]
    of_jobs += [_shown(each) for each in problem_type.declared()]
    found: dict[str, ProblemType] = {}
    for each in of_calls + of_jobs:
        found.setdefault(each.type, each)
    return dict(sorted(found.items()))


@router.on("GET ", "List the types of problems", responses={200: _AS_HTML}, response_model=ProblemTypeList)
async def list_problem_types(request: Request, response: Response) -> ProblemTypeList | Response:
    types = every_type()
    response.headers.update(_VARIES)
    return _page("Problems", _index(types)) if _wants_html(request) else ProblemTypeList(items=list(types.values()))


@router.on(
    "GET /{name}",
    "Explain a type of problem",
    RouteNotFoundError,
    responses={200: _AS_HTML},
    response_model=ProblemType,
)
async def explain_problem(
    name: Annotated[str, Path(max_length=100, description="The type's name", examples=["job-conflict"])],
    request: Request,
    response: Response,
) -> ProblemType | Response:
    """Explains what the problem means, why it happens and what to do, with an example. The `type` of each problem
    document is the address of such a page."""
    found = every_type().get(name)
    if found is None:
        raise RouteNotFoundError(
            f"There is no page about {name}.",
            hint="GET /problems lists the pages.",
        )
    response.headers.update(_VARIES)
    return _page(found.title, _body(found)) if _wants_html(request) else found


def _shown(
    declared: type[GroundskeeperError] | type[JobError] | problem_type.ProblemType,
    status: HTTPStatus | None = None,
    further: Mapping[str, Any] = MappingProxyType({}),
) -> ProblemType:
    """Returns the type for the pages. `further` are members of the example that not every problem has."""
    example = {
        **further,
        "type": problem_uri(declared.type),
        "title": declared.title,
        **({} if status is None else {"status": int(status)}),
        "detail": declared.example or declared.title,
        **({"hint": declared.hint} if declared.hint else {}),
    }
    return ProblemType(
        type=declared.type,
        title=declared.title,
        why=declared.why,
        hint=declared.hint,
        status=None if status is None else int(status),
        example=example,
    )


def shown_to(request: Request, error: GroundskeeperError) -> Response | None:
    """Returns the problem as a page for a person; None for programs."""
    if not _wants_html(request):
        return None
    page = _page(
        error.title,
        f"<p>{escape(error.detail or error.title)}</p><p>{escape(error.hint)}</p>"
        f'<p><a href="/problems/{error.type}">What this means</a></p>',
    )
    page.status_code = int(status_of(type(error)))
    return page


def _wants_html(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _page(title: str, body: str) -> HTMLResponse:
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)} - Groundskeeper</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>",
        headers={**_HEADERS, **_VARIES},
    )


def _index(types: dict[str, ProblemType]) -> str:
    rows = "".join(
        f'<dt><a href="problems/{name}">{name}</a></dt><dd>{escape(each.title)}</dd>' for name, each in types.items()
    )
    return f"<p>The page of each type says what the problem means and what to do.</p><dl>{rows}</dl>"


def _body(found: ProblemType) -> str:
    of = f"HTTP status {found.status}" if found.status else "the error of a job"
    parts = [
        f"<p><code>{escape(found.type)}</code>, {of}</p>",
        f"<h2>Why</h2><p>{escape(found.why)}</p>",
        f"<h2>What to do</h2><p>{escape(found.hint)}</p>" if found.hint else "",
        f'<h2>Example</h2><pre tabindex="0">{escape(json.dumps(found.example, indent=2))}</pre>',
        '<p><a href="../problems">All types of problems</a></p>',
    ]
    return "".join(parts)


def _with_subclasses(kind: type[_Error]) -> Iterator[type[_Error]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _with_subclasses(below)
