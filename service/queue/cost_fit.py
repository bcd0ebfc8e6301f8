"""The fit of what jobs take, such as seconds. A job takes a constant amount, plus an amount for each GiB and an amount
for each file that it works on. The sum is multiplied by a factor of the job's circumstances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from jobs.kinds.results import Work
from service.queue.circumstances import UNKNOWN, Circumstances, Slowness, slowness

if TYPE_CHECKING:
    from numpy.typing import NDArray


_GIB = 2.0**30
_STEPS = 10
# A fit with one more coefficient is used only if its error is smaller by this share.
_WORTH = 0.03
# The amounts and the factors of circumstances are fitted in turn, this many times.
_TURNS = 2
# Sums of errors that differ by less count as equal.
_LEAST_GAIN = 0.01
# A usual error, as a logarithm. A job with a larger error is an outlier.
_USUAL = 0.15
_LEAST = 0.001
# While the solution is improved, no expected amount is less than this share of the actual one.
_LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Observation:
    work: Work
    amount: float
    circumstances: Circumstances = UNKNOWN


@dataclass(frozen=True, slots=True)
class Fit:
    """The amounts per job, per GiB of its files, and per file, in a warm worker that runs no other job. `most_bytes` is
    the size of the largest known job."""

    per_job: float = 0.0
    per_gib: float = 0.0
    per_file: float = 0.0
    most_bytes: float = 0.0
    slowness: Slowness = field(default_factory=Slowness)

    def of(self, work: Work, circumstances: Circumstances = UNKNOWN) -> float:
        """Returns the expected amount. Unknown circumstances count as the usual ones."""
        found = self.per_job + self.per_gib * work.bytes / _GIB + self.per_file * work.files
        return max(found, _LEAST) * self.slowness.of(circumstances)

    def error(self, observation: Observation, *, as_usual: bool = False) -> float:
        """Returns the logarithm of the actual amount divided by the expected one. If `as_usual`, the expected amount
        does not depend on the circumstances."""
        circumstances = UNKNOWN if as_usual else observation.circumstances
        return math.log(observation.amount / self.of(observation.work, circumstances))


def fitted_with_circumstances(known: Sequence[Observation]) -> Fit:
    """Returns a fit with factors of circumstances if these make the sum of errors clearly smaller, else one without.
    `known` must not be empty."""
    plain = found = fitted(known)
    for _ in range(_TURNS):
        by_work = replace(found, slowness=Slowness())
        slow = slowness([(each.circumstances, by_work.error(each)) for each in known])
        if slow == Slowness():
            return plain
        found = fitted_as(known, slow)
    is_better = _sum_of(found, known) < _sum_of(plain, known) * (1 - _WORTH) - _LEAST_GAIN
    return found if is_better else plain


def fitted_as(known: Sequence[Observation], slow: Slowness) -> Fit:
    """Returns the fit with these factors of circumstances."""
    as_alone = [replace(each, amount=each.amount / slow.of(each.circumstances)) for each in known]
    return replace(fitted(as_alone), slowness=slow)


def _sum_of(fit: Fit, known: Sequence[Observation]) -> float:
    return sum(math.log1p((fit.error(each) / _USUAL) ** 2) for each in known)


def fitted(known: Sequence[Observation]) -> Fit:
    """Returns the fit with the least sum of errors. No coefficient is negative, and a coefficient that does not make
    the sum clearly smaller is 0. `known` must not be empty.

    An error is the logarithm of the actual amount divided by the expected one. So half the expected amount counts as
    much as twice that amount; if errors were relative, twice the amount would count more. Outliers have little
    influence.
    """
    rows = np.array([(1.0, each.work.bytes / _GIB, each.work.files) for each in known])
    amounts = np.array([each.amount for each in known])
    best, least = np.zeros(3), np.inf
    for size in (1, 2, 3):
        for columns in combinations(range(3), size):
            coefficients = _solved(rows, amounts, columns)
            error = _errors(amounts, rows @ coefficients).sum()
            if (coefficients >= 0).all() and error < least * (1 - _WORTH) - _LEAST_GAIN:
                best, least = coefficients, error
    # Further digits would depend on the number of steps.
    per_job, per_gib, per_file = (float(f"{each:.9g}") for each in best)
    return Fit(per_job, per_gib, per_file, float(rows[:, 1].max() * _GIB))


def _solved(rows: NDArray[Any], amounts: NDArray[Any], columns: tuple[int, ...]) -> NDArray[Any]:
    """Returns the coefficients with the least sum of errors; those of other columns are 0.

    Least squares are solved several times. Each time, the logarithm is replaced by its tangent at the previous
    solution, and jobs that this solution fits badly get less weight. The first solution starts from the actual amounts.
    """
    found = np.zeros(3)
    expected, weights = amounts, np.ones(len(amounts))
    for _ in range(_STEPS):
        weighted = rows[:, columns] * (weights / expected)[:, None]
        found[list(columns)] = np.linalg.lstsq(weighted, (1 + np.log(amounts / expected)) * weights, rcond=None)[0]
        expected = np.maximum(rows @ found, _LEAST_SHARE * amounts)
        weights = 1 / np.hypot(_USUAL, np.log(amounts / expected))
    return found


def _errors(amounts: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
    """Returns the error of each job by Cauchy's loss: nearly the square of the logarithm for errors up to `_USUAL`, and
    less than the square for larger ones."""
    logarithms = np.log(np.maximum(expected, _LEAST) / amounts)
    found: NDArray[Any] = np.log1p((logarithms / _USUAL) ** 2)
    return found
