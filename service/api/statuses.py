"""The only mapping from errors and successes to HTTP status codes."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from service.access.errors import ProviderUnavailableError
from service.api.errors import ChangedMeanwhileError, MediaTypeError, ServiceBusyError, TooManyWaitsError
from service.catalog.errors import MetastoreForbiddenError
from service.model import errors, storage_errors, table_errors
from service.model.errors import GroundskeeperError
from service.registration.catalogs.errors import CatalogError

CREATED: Final = HTTPStatus.CREATED
ACCEPTED: Final = HTTPStatus.ACCEPTED
REPEATED: Final = HTTPStatus.OK
NOTHING: Final = HTTPStatus.NO_CONTENT
SEE_OTHER: Final = HTTPStatus.SEE_OTHER

_STATUS: Final[dict[type[GroundskeeperError], HTTPStatus]] = {
    GroundskeeperError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.NotFoundError: HTTPStatus.NOT_FOUND,
    errors.InvalidError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.ConflictError: HTTPStatus.CONFLICT,
    errors.UnauthenticatedError: HTTPStatus.UNAUTHORIZED,
    errors.ForbiddenError: HTTPStatus.FORBIDDEN,
    storage_errors.PathForbiddenError: HTTPStatus.FORBIDDEN,
    MetastoreForbiddenError: HTTPStatus.FORBIDDEN,
    errors.MethodNotAllowedError: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.RequestTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.TooManyStreamsError: HTTPStatus.TOO_MANY_REQUESTS,
    storage_errors.StorageError: HTTPStatus.BAD_GATEWAY,
    table_errors.FlinkError: HTTPStatus.BAD_GATEWAY,
    ProviderUnavailableError: HTTPStatus.BAD_GATEWAY,
    CatalogError: HTTPStatus.BAD_GATEWAY,
    storage_errors.ReadersBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DatabaseUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.NotReadyError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.FleetUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    MediaTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    ChangedMeanwhileError: HTTPStatus.PRECONDITION_FAILED,
    TooManyWaitsError: HTTPStatus.TOO_MANY_REQUESTS,
    ServiceBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
}

_OF_FRAMEWORK: Final[dict[int, type[GroundskeeperError]]] = {
    HTTPStatus.NOT_FOUND: errors.RouteNotFoundError,
    HTTPStatus.METHOD_NOT_ALLOWED: errors.MethodNotAllowedError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: errors.RequestTooLargeError,
}


# A caller may try again after this many seconds (`Retry-After`). A database server restarts in about this time.
RETRY_AFTER: Final = {HTTPStatus.SERVICE_UNAVAILABLE: "2"}


def status_of(error: type[GroundskeeperError]) -> HTTPStatus:
    """Returns the status of the class, or else of its nearest base class that has a status."""
    return next(_STATUS[base] for base in error.__mro__ if base in _STATUS)


def raised_by_framework(status: int) -> type[GroundskeeperError]:
    """Returns the error type for a bare status that the web framework raises."""
    known = _OF_FRAMEWORK.get(status)
    if known is not None:
        return known
    return errors.ParamsInvalidError if status < HTTPStatus.INTERNAL_SERVER_ERROR else GroundskeeperError


def documented(*kinds: type[GroundskeeperError]) -> dict[int | str, dict[str, Any]]:
    """Returns the `responses` of a route in OpenAPI: the problems that only this route has, and the problem of invalid
    parameters or bodies. `document_common` adds the problems that all routes share."""
    responses: dict[int | str, dict[str, Any]] = {}
    _add(responses, int(status_of(errors.ParamsInvalidError)), errors.ParamsInvalidError)
    for kind in kinds:
        _add(responses, int(status_of(kind)), kind)
    return responses


def document_common(method: str, operation: Mapping[str, Any], *, is_conditional: bool) -> None:
    """Adds the problems that all routes share to an operation of the OpenAPI document. `is_conditional` says that the
    operation takes If-Match."""
    responses = operation["responses"]
    common: list[type[GroundskeeperError]] = []
    needs_caller, may_change = "security" in operation, method not in ("get", "head")
    if needs_caller:
        common += [errors.UnauthenticatedError, errors.ForbiddenError, errors.DatabaseUnavailableError]
    if may_change:
        common += [errors.RequestTooLargeError, ServiceBusyError]
    if "requestBody" in operation:
        common.append(errors.BodyNotJsonError)
    if needs_caller and method == "post":
        common.append(MediaTypeError)
    if is_conditional:
        common.append(ChangedMeanwhileError)
    for kind in common:
        status = str(int(status_of(kind)))
        if f"`{kind.type}`]" not in responses.get(status, {}).get("description", ""):
            _add(responses, status, kind)


def _add(responses: dict[Any, dict[str, Any]], status: int | str, kind: type[GroundskeeperError]) -> None:
    text = f"[`{kind.type}`](/problems/{kind.type}): {kind.title}"
    known = responses.get(status)
    responses[status] = {
        "description": f"{known['description']}; {text}" if known else text,
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
    }
