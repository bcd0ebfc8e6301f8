"""Errors of freezes."""

from __future__ import annotations

from service.model.errors import ConflictError, NotFoundError


class FreezeNotFoundError(NotFoundError):
    type = "freeze-not-found"
    title = "No freeze has this name"
    hint = "GET /v1/freezes lists the freezes."
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
