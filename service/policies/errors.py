"""Errors of freezes and of shadows of policies."""

from __future__ import annotations

from service.model.errors import ConflictError, NotFoundError


class FreezeNotFoundError(NotFoundError):
    type = "freeze-not-found"
    title = "No freeze has this name"
    hint = "GET /v1/freezes, or `groundskeeper freezes list`, lists the freezes."
    why = "No freeze has this name. Perhaps it was mistyped, or the freeze has been deleted."
    example = "There is no freeze black-friday."


class TooManyFreezesError(ConflictError):
    type = "too-many-freezes"
    title = "There are too many freezes"
    hint = "Delete those that have ended, or name several patterns in one freeze."
    why = (
        "Each decision about a table reads the freezes, so their number is limited. Ended freezes count until they are"
        " deleted."
    )
    example = "There are 1000 freezes."


class ShadowNotFoundError(NotFoundError):
    type = "shadow-not-found"
    title = "The policy of this pattern has no shadow"
    hint = "GET /v1/policy-shadows, or `groundskeeper policy shadow`, lists the shadows."
    why = "The pattern was mistyped, or its shadow was deleted. PUT /v1/policy-shadows/{pattern} creates a shadow."
    example = "The policy of orders_* has no shadow."


class TooManyShadowsError(ConflictError):
    type = "too-many-shadows"
    title = "There are too many shadows of policies"
    hint = "Delete those that have been compared."
    why = "Each comparison of a shadow replays the commits of its tables, so the number of shadows is limited."
    example = "There are 100 shadows."
