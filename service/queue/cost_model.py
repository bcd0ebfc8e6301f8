"""The cost of jobs, learned from ended ones: the duration of an attempt depends on the files that it works on."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict, deque
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from jobs.kinds.results import NO_WORK, Work
from service.model.formatting import duration
from service.queue.cost_fit import Fit, Observation, fitted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_SECONDS = 30.0
# The numbers of latest jobs from which the fit of a kind, the factor of a shape and the factor of a table are made.
_MOST_OF_KIND, _MOST_OF_SHAPE, _MOST_OF_TABLE = 300, 40, 5
# The factor of a shape is drawn towards 1, as if this number of further jobs had taken exactly the expected time.
_DOUBT = 3.0
# The fit is made again once this share of its jobs is new.
_NEW_SHARE = 0.05
# Share of the jobs that take less than the lower end of an interval, and more than the upper end.
_OUTSIDE = 0.1
# The factor between the expected time and the ends of its interval while no error is known.
_UNKNOWN = 3.0


class Basis(StrEnum):
    """The source of an expected cost. All sources but `TABLE` make it a guess."""

    TABLE = "table"
    SHAPE = "shape"
    KIND = "kind"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Cost:
    """Expected cost of an attempt, from its lease to its end. Eight of ten attempts take from `low` to `high` seconds.
    `gib` is the memory of the slot, 0 if workers do not report it."""

    seconds: float
    low: float
    high: float
    basis: Basis
    gib: float = 0.0

    @property
    def is_guess(self) -> bool:
        return self.basis is not Basis.TABLE

    @property
    def gb_hours(self) -> float:
        """GiB of memory times hours."""
        return self.seconds * self.gib / 3600

    @property
    def text(self) -> str:
        """Returns words such as "about 40 s (35 s to 48 s), 0.022 GB-hours"."""
        memory = f", {self.gb_hours:.2g} GB-hours" if self.gib else ""
        return f"about {duration(self.seconds)} ({duration(self.low)} to {duration(self.high)}){memory}"


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that has ended. `is_good` says that it succeeded. The duration of a failed attempt is only a lower
    bound for the job."""

    table_id: str
    kind: str
    dry_run: bool
    seconds: float
    work: Work = NO_WORK
    gib: float = 0.0
    is_good: bool = True


@dataclass(frozen=True)
class Accuracy:
    """The error of the expectations about one kind, over the latest jobs from which they are learned. Errors are
    shares of the seconds that a job took; None if too few jobs are known.

    `of_other_tables` is the median error for tables that the model does not know, `of_known_tables` the one for tables
    of which it knows the previous job.
    """

    jobs: int
    tables: int
    of_other_tables: float | None
    of_known_tables: float | None


@dataclass(frozen=True)
class Learned:
    """The learned cost of one kind of job, or of its dry runs."""

    kind: str
    dry_run: bool
    fit: Fit
    accuracy: Accuracy


@dataclass
class _OfKind:
    """What is known about the jobs of one kind, or about its dry runs."""

    latest: deque[tuple[str, Observation]] = field(default_factory=lambda: deque(maxlen=_MOST_OF_KIND))
    of_shapes: defaultdict[str, deque[Observation]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_MOST_OF_SHAPE))
    )
    # Bytes, files and seconds of each job; the seconds of an attempt that failed are negative.
    of_tables: defaultdict[str, array[float]] = field(default_factory=lambda: defaultdict(lambda: array("f")))
    fit: Fit = field(default_factory=Fit)
    of_others: tuple[float, float] = (1 / _UNKNOWN, _UNKNOWN)
    of_known: tuple[float, float] = (1 / _UNKNOWN, _UNKNOWN)
    # A cache of answers since the fit was made, by table id, because the outlook asks for the same jobs again and
    # again.
    answers: dict[str, tuple[Work, Cost]] = field(default_factory=dict)
    gib: float = 0.0
    new: int = 0

    @property
    def is_stale(self) -> bool:
        return self.new > _NEW_SHARE * len(self.latest) or self.fit == Fit()


class CostModel:
    """Expects the cost of jobs in three steps: a fit over all jobs of the kind (`cost_fit`), a factor of the table's
    shape, and a factor of the table itself. Factors are medians, so a single job that was slow changes little.

    `shapes` are words for what tables have in common, such as their storage, by table id.
    """

    def __init__(self, shapes: Mapping[str, str] | None = None) -> None:
        self.shapes = shapes or {}
        self._kinds: defaultdict[tuple[str, bool], _OfKind] = defaultdict(_OfKind)

    def learn(self, ended: Ended) -> None:
        """Adds an attempt that has ended after all others."""
        known = self._kinds[ended.kind, ended.dry_run]
        known.answers.pop(ended.table_id, None)
        of_table = known.of_tables[ended.table_id]
        of_table.extend(_numbers(ended))
        del of_table[: -3 * _MOST_OF_TABLE]
        known.gib = ended.gib or known.gib
        if ended.is_good:
            known.latest.append((ended.table_id, _observation(ended)))
            known.of_shapes[self.shapes.get(ended.table_id, "")].append(_observation(ended))
            known.new += 1

    def learn_older(self, ended: Ended) -> None:
        """Adds an attempt that has ended before all others."""
        known = self._kinds[ended.kind, ended.dry_run]
        known.answers.pop(ended.table_id, None)
        of_table = known.of_tables[ended.table_id]
        if len(of_table) < 3 * _MOST_OF_TABLE:
            of_table[:0] = array("f", _numbers(ended))
        known.gib = known.gib or ended.gib
        if ended.is_good:
            for many, each in (
                (known.latest, (ended.table_id, _observation(ended))),
                (known.of_shapes[self.shapes.get(ended.table_id, "")], _observation(ended)),
            ):
                if len(many) < (many.maxlen or 0):
                    many.appendleft(each)  # type: ignore[arg-type]
                    known.new += 1

    def expected(self, table_id: str, kind: str, work: Work, *, dry_run: bool) -> Cost:
        known = self._kinds.get((kind, dry_run))
        if known is None or not (known.latest or known.of_tables.get(table_id)):
            return Cost(DEFAULT_SECONDS, DEFAULT_SECONDS / _UNKNOWN, DEFAULT_SECONDS * _UNKNOWN, Basis.DEFAULT)
        if known.is_stale:
            _renew(known)
        asked, cost = known.answers.get(table_id, (None, None))
        if cost is None or asked != work:
            cost = self._computed(known, table_id, work)
            known.answers[table_id] = work, cost
        return cost

    def _computed(self, known: _OfKind, table_id: str, work: Work) -> Cost:
        of_table, of_shape = known.of_tables.get(table_id), known.of_shapes.get(self.shapes.get(table_id, ""))
        if of_table:
            basis, factor, spread = Basis.TABLE, _factor(known.fit, _read(of_table)), known.of_known
        elif len(known.of_shapes) > 1 and of_shape:
            factor = _factor(known.fit, [(each, True) for each in of_shape], _DOUBT)
            basis, spread = Basis.SHAPE, known.of_others
        else:
            basis, factor, spread = Basis.KIND, 1.0, known.of_others
        seconds = factor * known.fit.of(work)
        # Beyond the largest known job, the growth of the duration is uncertain, so the interval widens.
        beyond = max(1.0, work.bytes / known.fit.most_bytes) if known.fit.most_bytes else 1.0
        return Cost(seconds, seconds * spread[0], seconds * spread[1] * beyond, basis, known.gib)

    def learned(self) -> list[Learned]:
        found = []
        for (kind, dry_run), known in sorted(self._kinds.items()):
            if known.latest:
                _renew(known)
                others, own = (_median([abs(math.exp(-each) - 1) for each in errors]) for errors in _errors(known))
                tables = {table_id for table_id, _ in known.latest}
                accuracy = Accuracy(len(known.latest), len(tables), of_other_tables=others, of_known_tables=own)
                found.append(Learned(kind, dry_run, known.fit, accuracy))
        return found


def _renew(known: _OfKind) -> None:
    known.answers.clear()
    if not known.latest:
        # All attempts have failed so far.
        known.fit = Fit(DEFAULT_SECONDS)
        return
    known.fit = fitted([each for _, each in known.latest])
    others, own = _errors(known)
    known.of_others, known.of_known = _interval(others), _interval(own)
    known.new = 0


def _errors(known: _OfKind) -> tuple[list[float], list[float]]:
    """Returns the errors for tables that the fit does not know, and for jobs whose predecessor on the table it knows.
    An error is the logarithm of actual divided by expected seconds."""
    halves: tuple[list[tuple[str, Observation]], list[tuple[str, Observation]]] = ([], [])
    numbers = {table_id: number for number, table_id in enumerate(dict.fromkeys(each for each, _ in known.latest))}
    of_tables: defaultdict[str, list[Observation]] = defaultdict(list)
    for table_id, each in known.latest:
        halves[numbers[table_id] % 2].append((table_id, each))
        of_tables[table_id].append(each)
    others: list[float] = []
    if all(halves):
        for these, those in (halves, halves[::-1]):
            fit = fitted([each for _, each in those])
            others += [_error(each, fit.of(each.work)) for _, each in these]
    own = [
        _error(after, before.seconds / known.fit.of(before.work) * known.fit.of(after.work))
        for each in of_tables.values()
        for before, after in pairwise(each)
    ]
    return others, own


def _error(observation: Observation, expected: float) -> float:
    return math.log(observation.seconds / expected)


def _interval(errors: Sequence[float]) -> tuple[float, float]:
    """Returns the factors between which eight of ten jobs lie. If few errors are known, the interval is wider."""
    ordered = sorted(errors)
    if len(ordered) < 3:
        return 1 / _UNKNOWN, _UNKNOWN
    cut = int(_OUTSIDE * len(ordered))
    return min(1.0, math.exp(ordered[cut])), max(1.0, math.exp(ordered[-1 - cut]))


def _factor(fit: Fit, known: Sequence[tuple[Observation, bool]], doubt: float = 0.0) -> float:
    """Returns the median of the actual duration of attempts divided by the expected one. The second member of each
    observation says whether the attempt succeeded."""
    good: list[float] = []
    failed: list[float] = []
    for each, is_good in known:
        (good if is_good else failed).append(_error(each, fit.of(each.work)))
    middle = _median(good)
    # A failed attempt says nothing if it ended sooner than the median of the successful ones.
    ratios = good + [each for each in failed if middle is None or each > middle]
    return math.exp((_median(ratios) or 0.0) * len(ratios) / (len(ratios) + doubt))


def _median(values: Sequence[float]) -> float | None:
    if not values:
        return None
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _observation(ended: Ended) -> Observation:
    return Observation(ended.work, max(ended.seconds, 0.001))


def _numbers(ended: Ended) -> tuple[float, float, float]:
    seconds = max(ended.seconds, 0.001)
    return float(ended.work.bytes), float(ended.work.files), seconds if ended.is_good else -seconds


def _read(numbers: Sequence[float]) -> list[tuple[Observation, bool]]:
    return [
        (Observation(Work(int(numbers[at]), int(numbers[at + 1])), abs(numbers[at + 2])), numbers[at + 2] > 0)
        for at in range(0, len(numbers), 3)
    ]
