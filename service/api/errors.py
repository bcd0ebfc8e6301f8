"""Errors of the HTTP interface itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from service.model.errors import GroundskeeperError


class MediaTypeError(GroundskeeperError):
    type = "json-required"
    title = "Without a bearer token, a POST must be JSON"
    hint = "Send the header `Content-Type: application/json`, which web pages cannot forge."
    why = (
        "A web page on another site could make your browser send calls, with the cookie of your session or, while no"
        " token exists, without any token. Such a page can make the browser POST a form or a text, but not JSON. So a"
        " POST of anything but JSON is refused. Programs may leave the header out of a call without a body."
    )
    example = "This call was sent as text/plain."


class ChangedMeanwhileError(GroundskeeperError):
    """An update's condition is not met. `extensions["etag"]` is the tag of the present state."""

    type = "changed-meanwhile"
    title = "The object has changed since you read it"
    hint = "Read the object again, check whether your change still makes sense, and send it with the new `ETag`."
    why = (
        "The header If-Match names a state that is not the present one, or If-None-Match expects that the object does"
        " not exist. Another caller has changed, deleted or created the object after you read it, and your update would"
        " undo that change without notice. Nothing was changed."
    )
    example = 'The object\'s state is "3fa1b2c4d5e60718" now.'
    example_members: ClassVar[Mapping[str, Any]] = {"etag": '"3fa1b2c4d5e60718"'}


class TooManyWaitsError(GroundskeeperError):
    type = "too-many-waits"
    title = "Too many calls wait for the end of jobs"
    hint = "Read several jobs with one call, GET /v1/jobs, or leave out `wait_seconds`."
    why = (
        "Each call with `wait_seconds` holds a connection until its job ends. The number of such calls is limited for"
        " the service and for each token."
    )
    example = "100 calls of this token wait for jobs."


class ServiceBusyError(GroundskeeperError):
    type = "service-busy"
    title = "The service has more to do than it can take"
    hint = "Try again in a moment."
    why = "The bodies of requests in memory have reached their limit, so the body of this request was not read."
    example = "Too many large requests have arrived at once."
