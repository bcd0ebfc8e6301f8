"""The fit of what jobs take, such as seconds: an amount for each job, plus one for each GiB and one for each file that
it works on."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from jobs.kinds.results import Work

_GIB = 2.0**30
_STEPS = 6
# A fit with one more coefficient is taken only if its error is smaller by this share.
_WORTH = 0.03
# Errors below this share of a job's time count as equal.
_LEAST_ERROR = 0.01
_LEAST = 0.001


@dataclass(frozen=True, slots=True)
class Observation:
    work: Work
    amount: float


@dataclass(frozen=True, slots=True)
class Fit:
    """What each job takes, each GiB of its files, and each file. `most_bytes` is the size of the largest known job."""

    per_job: float = 0.0
    per_gib: float = 0.0
    per_file: float = 0.0
    most_bytes: float = 0.0

    def of(self, work: Work) -> float:
        found = self.per_job + self.per_gib * work.bytes / _GIB + self.per_file * work.files
        return max(found, _LEAST)


def fitted(known: Sequence[Observation]) -> Fit:
    """Returns the fit with the least sum of relative errors. Errors are not squared, so that outliers have little
    influence. No coefficient is negative, and one is 0 unless it makes the sum clearly smaller. `known` must not be
    empty."""
    rows = np.array([(1.0, each.work.bytes / _GIB, each.work.files) for each in known])
    amounts = np.array([each.amount for each in known])
    best, least = np.zeros(3), np.inf
    for size in (1, 2, 3):
        solved = [_solved(rows, amounts, columns) for columns in combinations(range(3), size)]
        for coefficients in solved:
            error = np.abs(1 - rows @ coefficients / amounts).sum()
            if (coefficients >= 0).all() and error < least * (1 - _WORTH) - _LEAST_ERROR:
                best, least = coefficients, error
    per_job, per_gib, per_file = map(float, best)
    return Fit(per_job, per_gib, per_file, float(rows[:, 1].max() * _GIB))


def _solved(rows: NDArray[Any], amounts: NDArray[Any], columns: tuple[int, ...]) -> NDArray[Any]:
    """Returns the coefficients with the least absolute errors; those of other columns are 0.

    Least squares are repeated, each time with weights from the errors of the previous solution.
    """
    relative = rows[:, columns] / amounts[:, None]
    found = np.zeros(3)
    weights = np.ones(len(amounts))
    for _ in range(_STEPS):
        found[list(columns)] = np.linalg.lstsq(relative * weights[:, None], weights, rcond=None)[0]
        errors = np.abs(1 - rows @ found / amounts)
        weights = 1 / np.sqrt(np.maximum(errors, _LEAST_ERROR))
    return found
