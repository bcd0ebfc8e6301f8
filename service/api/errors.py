"""Errors of the HTTP interface itself."""

from __future__ import annotations

from service.model.errors import GroundskeeperError


class MediaTypeError(GroundskeeperError):
    type = "json-required"
    title = "Without a bearer token, a call that changes something must be JSON"
    hint = "Send the header `Content-Type: application/json`, also without a body; web pages can not forge it."


class ServiceBusyError(GroundskeeperError):
    type = "service-busy"
    title = "The service has more to do than it can take"
    hint = "Try again in a moment."
