"""The fit of what jobs take, such as seconds: an amount for each job, plus one for each GiB and one for each file that
it works on, and by which factor circumstances change that."""

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
# A fit with one more coefficient is taken only if its error is smaller by this share.
_WORTH = 0.03
# Fit and factors of circumstances are fitted in turn, this number of times.
_TURNS = 2
# Sums of errors that differ by less count as equal.
_LEAST_GAIN = 0.01
# A usual error, as a logarithm; a larger one tells of an outlier.
_USUAL = 0.15
_LEAST = 0.001
# A solution that expects less than this share of an amount is on its way to a better one.
_LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Observation:
    work: Work
    amount: float
    circumstances: Circumstances = UNKNOWN


@dataclass(frozen=True, slots=True)
class Fit:
    """What each job takes, each GiB of its files, and each file, in a worker that is warm and runs no other job.
    `most_bytes` is the size of the largest known job."""

    per_job: float = 0.0
    per_gib: float = 0.0
    per_file: float = 0.0
    most_bytes: float = 0.0
    slowness: Slowness = field(default_factory=Slowness)

    def of(self, work: Work, circumstances: Circumstances = UNKNOWN) -> float:
        """Returns the amount; without circumstances that under the usual ones."""
        found = self.per_job + self.per_gib * work.bytes / _GIB + self.per_file * work.files
        return max(found, _LEAST) * self.slowness.of(circumstances)

    def error(self, observation: Observation, *, as_usual: bool = False) -> float:
        """Returns the logarithm of the actual amount divided by the expected one; `as_usual` if the circumstances were
        not known."""
        circumstances = UNKNOWN if as_usual else observation.circumstances
        return math.log(observation.amount / self.of(observation.work, circumstances))


def fitted_with_circumstances(known: Sequence[Observation]) -> Fit:
    """Returns the fit with factors of circumstances, as far as these make the sum of errors clearly smaller. `known`
    must not be empty."""
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
    """Returns the fit with the least sum of errors. No coefficient is negative, and one is 0 unless it makes the sum
    clearly smaller. `known` must not be empty.

    An error is the logarithm of actual divided by expected. A half counts as much as the double then; among relative
    errors the double counts more, so expectations would be too low. Outliers have little influence.
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
    # The last digits depend on the number of steps.
    per_job, per_gib, per_file = (float(f"{each:.9g}") for each in best)
    return Fit(per_job, per_gib, per_file, float(rows[:, 1].max() * _GIB))


def _solved(rows: NDArray[Any], amounts: NDArray[Any], columns: tuple[int, ...]) -> NDArray[Any]:
    """Returns the coefficients with the least sum of errors; those of other columns are 0.

    Least squares are repeated. Each time the logarithm is replaced by its tangent at the previous solution, and
    outliers of that get less weight. The first time all jobs are assumed to have taken what is expected.
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
    """Returns the error of each job: nearly the square of the logarithm up to `_USUAL`, and ever less beyond it
    (Cauchy's loss)."""
    logarithms = np.log(np.maximum(expected, _LEAST) / amounts)
    found: NDArray[Any] = np.log1p((logarithms / _USUAL) ** 2)
    return found
