"""Errors about what is registered with a table."""

from __future__ import annotations

from service.model.errors import NotFoundError


class ConsumerNotFoundError(NotFoundError):
    type = "consumer-not-found"
    title = "The table has no consumer of this name"
    hint = "GET /v1/tables/{id}/consumers lists them; PUT registers one."
