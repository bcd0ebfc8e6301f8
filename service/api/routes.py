"""Routers whose operations are declared by what differs between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import APIRouter, Depends
from starlette.routing import Match

from service.access.token import Role
from service.api.answers import written
from service.api.dependencies import needs
from service.api.statuses import documented
from service.model import errors as problems
from service.model import job_errors, table_errors

if TYPE_CHECKING:
    from starlette.types import Scope

_Operation = TypeVar("_Operation", bound=Callable[..., Any])


_OF_IDS = {
    "/tables/{table_id}": table_errors.TableNotFoundError,
    "/jobs/{job_id}": job_errors.JobNotFoundError,
    "/incidents/{incident_id}": job_errors.IncidentNotFoundError,
    "/webhooks/{webhook_id}": problems.WebhookNotFoundError,
    "/deliveries/{delivery_id}": problems.DeliveryNotFoundError,
}
"""The problem of an id in a path that names nothing."""


class Routes(APIRouter):
    _starts: tuple[str, ...] = ()

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Spares most calls the look at every route: the paths of a router begin in few ways."""
        if not scope.get("root_path") and not scope["path"].startswith(self._starts):
            return Match.NONE, {}
        return super().matches(scope)

    def on(
        self,
        call: str,
        summary: str,
        *errors: type[problems.GroundskeeperError],
        role: Role | None = None,
        operation_id: str | None = None,
        responses: dict[int | str, dict[str, Any]] | None = None,
        **more: Any,
    ) -> Callable[[_Operation], _Operation]:
        """Adds the operation of a `call`, such as `GET /jobs`, for callers with this role. `errors` are its own
        problems, beside those of every call and of the ids in its path. The `operation_id` is by default the name of
        the function, as JavaScript would write it."""
        method, path = call.split(" ")
        self._starts = (*self._starts, f"{self.prefix}{path}".partition("{")[0])
        of_ids = [error for part, error in _OF_IDS.items() if part in self.prefix + path]
        if role is not None:
            more["dependencies"] = [Depends(needs(role))]

        def add(function: _Operation) -> _Operation:
            self.add_api_route(
                path,
                written(function, status=more.get("status_code") or 200, model=more.get("response_model")),
                methods=[method],
                summary=summary,
                operation_id=operation_id or _camel(function.__name__),
                responses={**(responses or {}), **documented(*of_ids, *errors)},
                **more,
            )
            return function

        return add


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)
