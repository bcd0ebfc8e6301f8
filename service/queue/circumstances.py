"""The circumstances of an attempt: how many jobs its worker has run before (a warm worker has run many), and how many
it runs at the same time. The same work takes longer in a worker that has just started, and beside other jobs."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_BEFORE = (1, 2, 4, 8, 16, 32)
"""Attempts are classified by the jobs that their worker has run before. These are the lower bounds of all classes but
the first one. Workers of the last class are warm."""

_BESIDE = (0.25, 1.0, 2.0, 4.0)
"""The lower bounds of classes by the number of jobs beside an attempt. An attempt of the first class runs alone."""

_MOST = math.log(8)
"""The logarithm of the largest factor, because a job that is even slower has another cause."""

# Each factor is moved towards 1, as if this many further jobs had taken exactly the expected amount.
_DOUBT = 3.0
# The factor by earlier jobs and the factor by jobs beside overlap. So they are fitted in turn, this many times, each to
# the errors that remain with the other one.
_ROUNDS = 3


class Circumstances(NamedTuple):
    """How many jobs the worker had leased before this one, and how many others it ran meanwhile on average. None means
    unknown."""

    jobs_before: int | None = None
    jobs_beside: float | None = None


UNKNOWN = Circumstances()


@dataclass(frozen=True, slots=True)
class Slowness:
    """The factors by which circumstances make jobs slower, as logarithms: `cold` for each class of jobs before, `busy`
    for each class of jobs beside. `usual` is the median over the known attempts. It is taken if circumstances are
    unknown."""

    cold: tuple[float, ...] = (0.0,) * (len(_BEFORE) + 1)
    busy: tuple[float, ...] = (0.0,) * (len(_BESIDE) + 1)
    usual: float = 0.0

    def of(self, given: Circumstances) -> float:
        """Returns the factor of an attempt."""
        return math.exp(self._logarithm(given))

    @property
    def first_job(self) -> float:
        """The factor of a worker's first job."""
        return math.exp(self.cold[0])

    @property
    def beside_another(self) -> float:
        """The factor of a job that runs beside another one."""
        return math.exp(self.busy[bisect_right(_BESIDE, 1.0)])

    def _logarithm(self, given: Circumstances) -> float:
        if given.jobs_before is None or given.jobs_beside is None:
            return self.usual
        return self.cold[bisect_right(_BEFORE, given.jobs_before)] + self.busy[bisect_right(_BESIDE, given.jobs_beside)]


def slowness(known: Sequence[tuple[Circumstances, float]]) -> Slowness:
    """Returns the part of the errors that circumstances explain. An error is the logarithm of an attempt's actual
    amount divided by the expected one. Medians count, so single slow jobs change little. A colder or busier worker is
    never faster."""
    usable = [
        (bisect_right(_BEFORE, given.jobs_before), bisect_right(_BESIDE, given.jobs_beside), error)
        for given, error in known
        if given.jobs_before is not None and given.jobs_beside is not None
    ]
    cold, busy = Slowness().cold, Slowness().busy
    for _ in range(_ROUNDS):
        cold = _factors([(before, error - busy[beside]) for before, beside, error in usable], len(cold), warmest=-1)
        busy = _factors([(beside, error - cold[before]) for before, beside, error in usable], len(busy), warmest=0)
    usual = median(cold[before] + busy[beside] for before, beside, _ in usable) if usable else 0.0
    return Slowness(cold, busy, usual)


def _factors(errors: Sequence[tuple[int, float]], number: int, *, warmest: int) -> tuple[float, ...]:
    """Returns the logarithm of the factor of each class. Errors are compared with those of the class at the index
    `warmest` (0 or -1), or else with those of the nearest class for which errors are known."""
    of_class: defaultdict[int, list[float]] = defaultdict(list)
    for place, error in errors:
        of_class[place].append(error)
    order = range(number) if warmest == 0 else range(number - 1, -1, -1)
    found, least = [0.0] * number, 0.0
    base: float | None = None
    for place in order:
        if known := of_class.get(place):
            middle, weight = median(known), len(known) / (len(known) + _DOUBT)
            base = middle if base is None else base
            least = min(_MOST, max(least, weight * (middle - base)))
        found[place] = least
    return tuple(found)
