"""Errors of simulations and of advice."""

from __future__ import annotations

from service.model.errors import ConflictError, InvalidError


class SimulationTooLargeError(InvalidError):
    type = "simulation-too-large"
    title = "This simulation would take too long"
    hint = "Ask for a shorter period, or for fewer tables."
    why = (
        "A simulation replays every commit of its tables. The numbers of tables, days and commits are limited, and "
        "so is the time of each simulation, because a simulation occupies a processor core."
    )
    example = "1200 tables for 14 days are 16800 table days; 14000 are allowed."


class AdviceOutdatedError(ConflictError):
    type = "advice-outdated"
    title = "There is no open advice that fits the policy"
    hint = "GET /v1/tables/{id}/advice shows the advice and what has become of it."
    why = "The advice was applied or dismissed already, or the setting that it is about has been changed since."
    example = "compaction.commits is 8 now; the advice is about 5."
