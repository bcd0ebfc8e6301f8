"""Finds the operation of each call, and calls it. FastAPI declares, checks and documents the operations. Its own way
to an operation would compare the path with every route twice and prepare for much that no operation here uses, which
takes longer than a short operation itself."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from email.message import Message
from functools import partial
from typing import Any

from fastapi import BackgroundTasks, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.params import Form
from fastapi.routing import APIRoute
from pydantic_core import PydanticUndefined
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

_JSON = "application/json"


class Operations(BaseRoute):
    """A route to the operations of all these routes. Calls that no operation answers are left to the routes after it,
    and so are calls below a root path."""

    def __init__(self, routes: Sequence[APIRoute]) -> None:
        operations = [Operation(each) for each in routes]
        self._most = max(each.depth for each in operations) + 1
        self._found: defaultdict[tuple[str, int], list[Operation]] = defaultdict(list)
        for depth in range(self._most + 1):
            for each in operations:
                if each.depth == depth or (each.has_open_end and each.depth < depth):
                    self._found[each.method, depth].append(each)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] == "http" and not scope.get("root_path"):
            path = scope["path"]
            for each in self._found.get((scope["method"], min(path.count("/"), self._most)), ()):
                if path.startswith(each.start) and (found := each.pattern.match(path)):
                    return Match.FULL, {"route": each.route, "path_params": found.groupdict(), "operation": each}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await scope["operation"].answer(Request(scope, receive, send))
        await answer(scope, receive, send)


class Operation:
    """One operation. Its dependencies are coroutine functions, and it returns an answer, or nothing."""

    def __init__(self, route: APIRoute) -> None:
        self.route = route
        self.method = next(iter(route.methods or ()))
        self.pattern, self.start = route.path_regex, route.path.partition("{")[0]
        self.depth, self.has_open_end = route.path.count("/"), ":path}" in route.path
        self._call: Callable[..., Any] = route.endpoint
        self._is_coroutine = inspect.iscoroutinefunction(route.endpoint)
        assert not (route.body_field and isinstance(route.body_field.field_info, Form)), route.path
        _check(route.dependant)

    async def answer(self, request: Request) -> Response:
        """Raises RequestValidationError, and what the dependencies and the operation raise."""
        body = await _body(request) if self.route.body_field else PydanticUndefined
        solving = _Solving(request, body, embeds=self.route._embed_body_fields)
        values = await solving.values_of(self.route.dependant)
        if solving.errors:
            raise RequestValidationError(solving.errors, body=None if body is PydanticUndefined else body)
        if self._is_coroutine:
            found = await self._call(**values)
        else:
            # A thread of anyio would take the event loop three more rounds.
            loop, threads = asyncio.get_running_loop(), request.app.state.threads
            found = await loop.run_in_executor(threads, copy_context().run, partial(self._call, **values))
        answer: Response = found
        if found is None:
            status, headers = self.route.status_code or 204, solving.response.headers
            answer = Response(status_code=status, headers=headers, media_type=_JSON)
        answer.background = answer.background or solving.tasks
        return answer


class _Solving:
    """Reads the parameters of one call, and calls the dependencies of its operation in the order of FastAPI's
    `solve_dependencies`, with the same errors."""

    def __init__(self, request: Request, body: Any, *, embeds: bool) -> None:
        self._request, self._body, self._embeds = request, body, embeds
        self._known: dict[Callable[..., Any], Any] = {}
        self.response = _unset_response()
        self.tasks: BackgroundTasks | None = None
        self.errors: list[Any] = []

    async def values_of(self, dependant: Dependant) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for each in dependant.dependencies:
            call: Any = each.call
            if call not in self._known:
                before = len(self.errors)
                given = await self.values_of(each)
                if len(self.errors) > before:
                    continue
                self._known[call] = await call(**given)
            if each.name is not None:
                values[each.name] = self._known[call]
        request = self._request
        if dependant.path_params:
            self._read(values, request_params_to_args(dependant.path_params, request.path_params))
        if dependant.query_params:
            self._read(values, request_params_to_args(dependant.query_params, request.query_params))
        if dependant.header_params:
            self._read(values, request_params_to_args(dependant.header_params, request.headers))
        if dependant.cookie_params:
            self._read(values, request_params_to_args(dependant.cookie_params, request.cookies))
        if dependant.body_params:
            read = await request_body_to_args(dependant.body_params, self._body, embed_body_fields=self._embeds)
            self._read(values, read)
        for name in (dependant.request_param_name, dependant.http_connection_param_name):
            if name:
                values[name] = request
        if dependant.response_param_name:
            values[dependant.response_param_name] = self.response
        if dependant.background_tasks_param_name:
            self.tasks = values[dependant.background_tasks_param_name] = BackgroundTasks()
        return values

    def _read(self, values: dict[str, Any], found: tuple[Mapping[str, Any], Sequence[Any]]) -> None:
        values.update(found[0])
        self.errors += found[1]


def _unset_response() -> Response:
    """Returns an answer that has only what an operation or a dependency sets."""
    response = Response()
    del response.headers["content-length"]
    response.status_code = None  # type: ignore[assignment]  # as FastAPI does
    return response


async def _body(request: Request) -> Any:
    """Returns the body as `fastapi.routing.get_request_handler` reads it (0.165)."""
    try:
        body = await request.body()
        if not body:
            return PydanticUndefined
        return json.loads(body) if _is_json(request.headers.get("content-type")) else body
    except json.JSONDecodeError as error:
        found = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
        raise RequestValidationError([{**found, "ctx": {"error": error.msg}}], body=error.doc) from error
    except Exception as error:
        raise HTTPException(status_code=400, detail="There was an error parsing the body") from error


def _is_json(content_type: str | None) -> bool:
    if not content_type or content_type == _JSON:
        return bool(content_type)
    head = Message()
    head["content-type"] = content_type
    kind = head.get_content_subtype()
    return head.get_content_maintype() == "application" and (kind == "json" or kind.endswith("+json"))


def _check(dependant: Dependant) -> None:
    """Raises TypeError for what a call here cannot do."""
    for each in dependant.dependencies:
        call: Any = each.call
        if not (inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)):
            raise TypeError(f"{call} is not a coroutine function")
        _check(each)
    if dependant.security_scopes_param_name:
        raise TypeError(f"{dependant.path} takes scopes")
