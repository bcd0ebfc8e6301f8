"""Routers whose operations are declared by what differs between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter, Depends

from service.access.token import Role
from service.api.answers import written
from service.api.dependencies import needs
from service.api.statuses import documented
from service.model.errors import GroundskeeperError

_Operation = TypeVar("_Operation", bound=Callable[..., Any])


class Routes(APIRouter):
    def on(
        self,
        call: str,
        summary: str,
        *errors: type[GroundskeeperError],
        role: Role | None = None,
        operation_id: str | None = None,
        responses: dict[int | str, dict[str, Any]] | None = None,
        **more: Any,
    ) -> Callable[[_Operation], _Operation]:
        """Adds the operation of a `call`, such as `GET /jobs`, for callers with this role. `errors` are its own
        problems. The `operation_id` is by default the name of the function, as JavaScript would write it."""
        method, path = call.split(" ")
        if role is not None:
            more["dependencies"] = [Depends(needs(role))]

        def add(function: _Operation) -> _Operation:
            self.add_api_route(
                path,
                written(function, status=more.get("status_code") or 200, model=more.get("response_model")),
                methods=[method],
                summary=summary,
                operation_id=operation_id or _camel(function.__name__),
                responses={**(responses or {}), **documented(*errors)},
                **more,
            )
            return function

        return add


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)
