"""Error responses: problem documents (RFC 9457)."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPMethod, HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match

from jobs.logs import request_id
from service.api.health import Checks
from service.api.request_ids import HEADER
from service.api.requests import OTHERWISE
from service.api.statuses import RETRY_AFTER, raised_by_framework, status_of
from service.model.errors import (
    BodyNotJsonError,
    GroundskeeperError,
    InvalidError,
    MethodNotAllowedError,
    ParamsInvalidError,
    RouteNotFoundError,
    UnauthenticatedError,
)


class FieldError(BaseModel):
    field: str = Field(description="Name of the member or parameter, as a path", examples=["params.num_buckets"])
    message: str = Field(description="What is wrong with the value", examples=["must be greater than 0"])


class ProblemDocument(BaseModel):
    """A problem document of RFC 9457. Some types have further members, such as `errors`, `job_id` or `table_id`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="The type of the problem", examples=["/problems/job-conflict"])
    title: str
    status: int = Field(description="HTTP status", examples=[409])
    detail: str
    hint: str | None = None
    instance: str | None = Field(
        None, description="Address of the call", examples=["/v1/tables/tbl_0f3c2a9d5e7b1c44/jobs"]
    )
    request_id: str | None = Field(
        None,
        description="Id of the request, as in the header `X-Request-Id` and in the service's log",
        examples=["req_5f0c6be1d2a84397"],
    )
    errors: list[FieldError] | None = Field(None, description="Each value that is wrong")
    checks: Checks | None = Field(None, description="What `/readyz` has checked")


log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"

_ABOUT_ADDRESS = (RouteNotFoundError, MethodNotAllowedError)


def problem_uri(kind: str) -> str:
    """Returns the URI reference of the explanation of a problem type."""
    return f"/problems/{kind}"


class _ProblemResponse(JSONResponse):
    """An answer whose body is ASCII with escapes, because a text from a caller or a table may have characters that
    UTF-8 cannot encode."""

    media_type = MEDIA_TYPE

    def render(self, content: Any) -> bytes:
        return json.dumps(content, separators=(",", ":")).encode()


def answer(
    error: GroundskeeperError, *, instance: str | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    status = status_of(type(error))
    body: dict[str, Any] = {
        "type": problem_uri(error.type),
        "title": error.title,
        "status": int(status),
        "detail": error.detail or error.title,
    }
    if error.hint:
        body["hint"] = error.hint
    if instance is not None:
        body["instance"] = instance
    headers = dict(headers or {})
    if (seconds := RETRY_AFTER.get(status)) is not None:
        headers.setdefault("Retry-After", seconds)
    if (of_request := request_id()) is not None:
        body["request_id"] = headers[HEADER] = of_request
    # An extension cannot replace the standard's members.
    body = {**error.extensions, **body}
    if isinstance(error, UnauthenticatedError):
        headers.setdefault("WWW-Authenticate", "Bearer")
    return _ProblemResponse(body, status_code=status, headers=headers)


def install(app: FastAPI) -> None:
    """Registers handlers that answer every error with a problem document."""

    async def typed(request: Request, error: GroundskeeperError) -> JSONResponse:
        return answer(error, instance=request.url.path)

    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        return answer(invalid_request(error.errors(), error.body), instance=request.url.path)

    async def bare(request: Request, error: HTTPException) -> JSONResponse:
        # FastAPI raises this error if it cannot read a body, and the error's cause has the reason.
        if error.status_code == HTTPStatus.BAD_REQUEST and (fault := _unreadable(error.__cause__)):
            errors = [{"field": "", "message": fault}]
            unread = BodyNotJsonError(_named("", fault), hint=_READABLE, extensions={"errors": errors})
            return answer(unread, instance=request.url.path)
        kind = raised_by_framework(error.status_code)
        detail = f"{request.method} {request.url.path}" if issubclass(kind, _ABOUT_ADDRESS) else str(error.detail)
        headers = _allow(request) if kind is MethodNotAllowedError else None
        return answer(kind(detail), instance=request.url.path, headers=headers or error.headers)

    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        # The server logs the stack trace; the caller gets none.
        log.error("%s %s failed: %s", request.method, request.url.path, type(error).__name__)
        return answer(GroundskeeperError(), instance=request.url.path)

    app.exception_handler(GroundskeeperError)(typed)
    app.exception_handler(RequestValidationError)(invalid)
    app.exception_handler(HTTPException)(bare)
    app.exception_handler(Exception)(unexpected)


def _allow(request: Request) -> dict[str, str] | None:
    """Returns the header `Allow` with all methods of the address; the framework would name only the methods of the
    first route that matches. Returns None for static files, whose routes accept every method."""
    routes = request.app.router.routes

    def takes(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    return None if takes(request.method) else {"Allow": ", ".join(each for each in HTTPMethod if takes(each))}


def invalid_request(errors: Sequence[Mapping[str, Any]], body: Any = None) -> InvalidError:
    """Converts the errors of pydantic. Each `field` is a path in the body or in the parameters, as the caller sent
    it."""
    found = [{"field": _field(error, body), "message": _message(error)} for error in errors]
    named = [_named(each["field"], each["message"]) for each in found]
    is_json = all(error["type"] != "json_invalid" for error in errors)
    kind = ParamsInvalidError if is_json else BodyNotJsonError
    return kind("; ".join(named), extensions={"errors": found})


def _named(field: str, message: str) -> str:
    if field:
        return f"{field}: {message}"
    return f"{_OF_BODY} {message}" if _VERB.match(message) else f"{_OF_BODY}: {message}"


# FastAPI begins the path with the part of the request, which must be left out.
_PLACES = {"body", "query", "path", "header"}


def _field(error: Mapping[str, Any], body: Any) -> str:
    """Returns the path of a member or parameter as the caller would write it; empty for the whole body."""
    if error["type"] == "json_invalid":
        return ""
    place, *way = error["loc"] or ("",)
    if place not in _PLACES:
        way = [place, *way]
    elif place == "body":
        way = list(_sent(way, body, ends_with_member=error["type"] == "missing"))
    if error["type"].startswith("union_tag"):
        way.append(error["ctx"]["discriminator"].strip("'"))
    name = ""
    for part in way:
        name += f"[{part}]" if isinstance(part, int) and name else f".{part}" if name else str(part)
    return name


def _sent(way: Sequence[Any], body: Any, *, ends_with_member: bool) -> Iterator[Any]:
    """Yields the parts of the path that are in the request. Pydantic's path also has the chosen types of unions."""
    for index, part in enumerate(way):
        try:
            body = body[part]
        except (LookupError, TypeError):
            if not (ends_with_member and index == len(way) - 1):
                continue
        yield part


_TIME = "must be a time, such as 2026-01-31T08:00:00Z"
_PLAIN = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "datetime_from_date_parsing": _TIME,
    "datetime_parsing": _TIME,
    "datetime_type": _TIME,
    "dict_type": "must be an object",
    "extra_forbidden": "is not known here",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "missing": "is missing",
    "model_attributes_type": "must be an object",
    "string_type": "must be a text",
    "union_tag_not_found": "is missing",
}
_OF_BODY = "the body of the request"
_READABLE = "Send one JSON document in UTF-8, as the API documentation at /docs of the service describes it."
_VERB = re.compile(r"(has|is|must|needs) ")
# Pydantic's messages begin with such words: "Input should be", "String should have", "List should have".
_SUBJECT = re.compile(r"^[A-Z]\w+ should ")
_MEMBER = re.compile(r"<\w+\.\w+: ('[^']*')>")
"""A member of an enumeration, as Python represents it."""


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] in _PLAIN:
        return _PLAIN[error["type"]]
    if error["type"] == "json_invalid":
        # The location is the position in the text up to which the text is JSON.
        return f"is not JSON: {error['ctx']['error']}, at character {int(error['loc'][-1]) + 1}"
    if error["type"] == "string_pattern_mismatch" and error["ctx"]["pattern"] in OTHERWISE:
        return OTHERWISE[error["ctx"]["pattern"]]
    if error["type"] == "union_tag_invalid":
        tags = _MEMBER.sub(r"\1", error["ctx"]["expected_tags"])
        return f"must be one of {tags}"
    message = str(error["msg"]).removeprefix("Value error, ").replace(" after validation", "")
    return _SUBJECT.sub("must ", message)


def _unreadable(cause: BaseException | None) -> str | None:
    """Returns why a body cannot be read as JSON if the framework only says that it has failed."""
    match cause:
        case UnicodeDecodeError():
            return f"is not UTF-8, at byte {cause.start + 1}"
        case RecursionError():
            return "is nested too deeply"
        case ValueError():
            return "has a number with too many digits"
    return None
