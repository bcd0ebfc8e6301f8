"""The only mapping from errors and successes to HTTP status codes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from service.api.errors import MediaTypeError, ServiceBusyError
from service.model import errors
from service.model.errors import GroundskeeperError

CREATED: Final = HTTPStatus.CREATED
ACCEPTED: Final = HTTPStatus.ACCEPTED
REPEATED: Final = HTTPStatus.OK
NOTHING: Final = HTTPStatus.NO_CONTENT

_STATUS: Final[dict[type[GroundskeeperError], HTTPStatus]] = {
    GroundskeeperError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.NotFoundError: HTTPStatus.NOT_FOUND,
    errors.InvalidError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.ConflictError: HTTPStatus.CONFLICT,
    errors.UnauthenticatedError: HTTPStatus.UNAUTHORIZED,
    errors.ForbiddenError: HTTPStatus.FORBIDDEN,
    errors.PathForbiddenError: HTTPStatus.FORBIDDEN,
    errors.MethodNotAllowedError: HTTPStatus.METHOD_NOT_ALLOWED,
    errors.RequestTooLargeError: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.TooManyStreamsError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.StorageError: HTTPStatus.BAD_GATEWAY,
    errors.FlinkError: HTTPStatus.BAD_GATEWAY,
    errors.ReadersBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.DatabaseUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.NotReadyError: HTTPStatus.SERVICE_UNAVAILABLE,
    MediaTypeError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    ServiceBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
}

_OF_FRAMEWORK: Final[dict[int, type[GroundskeeperError]]] = {
    HTTPStatus.NOT_FOUND: errors.RouteNotFoundError,
    HTTPStatus.METHOD_NOT_ALLOWED: errors.MethodNotAllowedError,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: errors.RequestTooLargeError,
}


def status_of(error: type[GroundskeeperError]) -> HTTPStatus:
    """Returns the status of the class, or else of its nearest base class with one."""
    return next(_STATUS[base] for base in error.__mro__ if base in _STATUS)


def raised_by_framework(status: int) -> type[GroundskeeperError]:
    """Returns the error type for a bare status that the web framework raises."""
    known = _OF_FRAMEWORK.get(status)
    if known is not None:
        return known
    return errors.ParamsInvalidError if status < HTTPStatus.INTERNAL_SERVER_ERROR else GroundskeeperError


def documented(*kinds: type[GroundskeeperError]) -> dict[int | str, dict[str, Any]]:
    """Returns the `responses` of a route in OpenAPI: its possible problems, grouped by status."""
    grouped: dict[int | str, list[type[GroundskeeperError]]] = {}
    for kind in (*kinds, errors.UnauthenticatedError, errors.ForbiddenError):
        grouped.setdefault(int(status_of(kind)), []).append(kind)
    return {
        status: {
            "description": "; ".join(f"`{kind.type}`: {kind.title}" for kind in of_status),
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
        }
        for status, of_status in grouped.items()
    }
