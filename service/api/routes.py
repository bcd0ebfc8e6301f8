"""Routers, with a short form to declare operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, TypeVar, get_type_hints

from fastapi import APIRouter, Depends, params

from service.access.token import Role
from service.api.answers import written
from service.api.dependencies import needs
from service.api.query_parameters import only_known
from service.api.statuses import documented
from service.model import errors as problems
from service.model import job_errors, table_errors

_Operation = TypeVar("_Operation", bound=Callable[..., Any])


_OF_IDS = {
    "/tables/{table_id}": table_errors.TableNotFoundError,
    "/jobs/{job_id}": job_errors.JobNotFoundError,
    "/incidents/{incident_id}": job_errors.IncidentNotFoundError,
    "/webhooks/{webhook_id}": problems.WebhookNotFoundError,
    "/deliveries/{delivery_id}": problems.DeliveryNotFoundError,
}
"""The problem for an id in a path that names no object, by the name of the parameter."""


class Routes(APIRouter):
    def __init__(self, *, dependencies: Sequence[params.Depends] = (), **more: Any) -> None:
        super().__init__(dependencies=[Depends(only_known), *dependencies], **more)

    def on(
        self,
        call: str,
        summary: str,
        *errors: type[problems.GroundskeeperError],
        role: Role | None = None,
        operation_id: str | None = None,
        responses: dict[int | str, dict[str, Any]] | None = None,
        also: dict[int, str] | None = None,
        of_tables: bool = False,
        **more: Any,
    ) -> Callable[[_Operation], _Operation]:
        """Adds the operation of a `call`, such as `GET /jobs`, for callers with this role. `errors` are the problems of
        this operation, in addition to those of every call and of the ids in the path. `also` describes other statuses
        with the same answer. `of_tables` is as in `needs`. The default `operation_id` is the name of the function in
        camel case. The default status is 204 for an operation that returns nothing, and 200 for any other."""
        method, path = call.split(" ")
        of_ids = [error for part, error in _OF_IDS.items() if part in self.prefix + path]
        if role is not None:
            more["dependencies"] = [Depends(needs(role, of_tables=of_tables))]

        def add(function: _Operation) -> _Operation:
            answer = get_type_hints(function, include_extras=True)["return"]
            status = more.pop("status_code", HTTPStatus.NO_CONTENT if answer is type(None) else HTTPStatus.OK)
            others: dict[int | str, dict[str, Any]] = {
                int(other): {"model": answer, "description": text} for other, text in (also or {}).items()
            }
            self.add_api_route(
                path,
                written(function, status=status),
                methods=[method],
                status_code=status,
                summary=summary,
                operation_id=operation_id or _camel(function.__name__),
                responses={**others, **(responses or {}), **documented(*of_ids, *errors)},
                **more,
            )
            return function

        return add

    def reader(self, *call: Any, **more: Any) -> Callable[[_Operation], _Operation]:
        """Adds an operation as `on` does, for callers with the role reader. The next two methods do the same for the
        other roles."""
        return self.on(*call, role=Role.READER, **more)

    def operator(self, *call: Any, **more: Any) -> Callable[[_Operation], _Operation]:
        return self.on(*call, role=Role.OPERATOR, **more)

    def admin(self, *call: Any, **more: Any) -> Callable[[_Operation], _Operation]:
        return self.on(*call, role=Role.ADMIN, **more)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)
