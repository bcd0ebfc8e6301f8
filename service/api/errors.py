"""Errors of the HTTP interface itself."""

from __future__ import annotations

from service.model.errors import GroundskeeperError


class MediaTypeError(GroundskeeperError):
    type = "json-required"
    title = "Without a bearer token, a call that changes something must be JSON"
    hint = "Send the header `Content-Type: application/json`, also without a body; web pages can not forge it."


class ChangedMeanwhileError(GroundskeeperError):
    """`extensions["etag"]` is that of the present state."""

    type = "changed-meanwhile"
    title = "This has changed since you have seen it"
    hint = "Get it again, see whether your change still makes sense, and send it with the new `ETag`."


class TooManyWaitsError(GroundskeeperError):
    type = "too-many-waits"
    title = "Too many calls wait for the end of jobs"
    hint = "Ask for several jobs in one call, GET /v1/jobs, or leave `wait_seconds` out."


class ServiceBusyError(GroundskeeperError):
    type = "service-busy"
    title = "The service has more to do than it can take"
    hint = "Try again in a moment."
