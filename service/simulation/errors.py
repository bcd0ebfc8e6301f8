"""Errors of simulations."""

from __future__ import annotations

from service.model.errors import InvalidError


class SimulationTooLargeError(InvalidError):
    type = "simulation-too-large"
    title = "This simulation would take too long"
    hint = "Ask for a shorter period, or for fewer tables."
    why = (
        "A simulation replays every commit of its tables. The numbers of tables, days and commits are limited, and "
        "so is the time of each simulation, because a simulation occupies a processor core."
    )
    example = "1200 tables for 14 days are 16800 table days; 14000 are allowed."
