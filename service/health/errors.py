"""Errors of calls about problems."""

from __future__ import annotations

from service.model.errors import NotFoundError


class ProblemNotStandingError(NotFoundError):
    type = "problem-not-standing"
    title = "No problem with this id exists now"
    hint = "GET /v1/problems, or `groundskeeper problems`, lists the problems with their ids."
    why = (
        "Only a problem that exists now can be acknowledged. The id was mistyped, or the problem has ended "
        "meanwhile, so that an acknowledgement is no longer needed."
    )
    example = "No problem has the id prb_8c1d0e5f2a7b4963 now."
