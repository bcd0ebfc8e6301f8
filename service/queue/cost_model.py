"""The cost of jobs, learned from ended attempts. What an attempt takes depends on the files that it works on."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from jobs.kinds.results import Work
from service.queue.circumstances import UNKNOWN, Circumstances
from service.queue.cost import DEFAULT_SECONDS, Basis, Cost, CostPart, Ended, Range
from service.queue.cost_fit import Fit, Observation, fitted, fitted_as, fitted_with_circumstances

# How many latest jobs are used for the fit of a kind, the factor of a shape, and the factor of a table.
_MOST_OF_KIND, _MOST_OF_SHAPE, _MOST_OF_TABLE = 300, 40, 5
# The factor of a shape is moved towards 1, as if this many further jobs had taken exactly the expected amount.
_DOUBT = 3.0
# The fit is computed again once this share of its jobs is new.
_NEW_SHARE = 0.05
# Share of the jobs that take less than the lower end of an interval, and more than the upper end.
_OUTSIDE = 0.1
# The factor between the expected amount and the ends of its interval while no error is known.
_UNKNOWN = 3.0
# How many numbers are kept about each job of a table: bytes, files, circumstances, and the amount of each part.
_FIRST = 2 + len(UNKNOWN)
_STRIDE = _FIRST + len(CostPart)
_PLACES = {part: place for place, part in enumerate(CostPart, _FIRST)}


@dataclass(frozen=True)
class Accuracy:
    """The errors of the expectations of one part, over the latest jobs from which these are learned. Errors are shares
    of what a job took under its circumstances. An error is None if too few jobs are known.

    `of_other_tables` is the median error for tables that the model does not know. `of_known_tables` is the median error
    for tables whose previous job the model knows.
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
    parts: Mapping[CostPart, tuple[Fit, Accuracy]]


class _Spread(NamedTuple):
    """The spread of errors as factors, for given circumstances and for unknown ones."""

    given: tuple[float, float] = (1 / _UNKNOWN, _UNKNOWN)
    as_usual: tuple[float, float] = (1 / _UNKNOWN, _UNKNOWN)


_UNKNOWN_SPREAD = _Spread()


@dataclass
class _OfPart:
    """The fit of one part, and the spread of its errors: `of_others` for tables that the fit does not know, `of_known`
    for tables whose previous job it knows."""

    fit: Fit = field(default_factory=Fit)
    of_others: _Spread = _UNKNOWN_SPREAD
    of_known: _Spread = _UNKNOWN_SPREAD


@dataclass
class _OfKind:
    """What is known about the jobs of one kind, or about its dry runs."""

    latest: deque[Ended] = field(default_factory=lambda: deque(maxlen=_MOST_OF_KIND))
    of_shapes: defaultdict[str, deque[Ended]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_MOST_OF_SHAPE))
    )
    # The numbers of each job, one job after the other. An unknown number is NaN, and amounts of a failed attempt are
    # negative.
    of_tables: defaultdict[str, array[float]] = field(default_factory=lambda: defaultdict(lambda: array("f")))
    parts: dict[CostPart, _OfPart] = field(default_factory=dict)
    # A cache of results since the fit was computed, by table id, because the outlook asks for the same jobs again and
    # again.
    answers: dict[str, tuple[Work, Cost]] = field(default_factory=dict)
    gib: float = 0.0
    new: int = 0

    @property
    def is_stale(self) -> bool:
        return self.new > _NEW_SHARE * len(self.latest) or not self.parts

    def observed(self, part: CostPart) -> list[tuple[str, Observation]]:
        """Returns the latest jobs whose amount is known, each with the id of its table."""
        return [(each.table_id, found) for each in self.latest if (found := _observation(each, part))]


class CostModel:
    """Expects the cost of jobs in three steps: a fit over all jobs of the kind (`cost_fit`) and the circumstances of
    each (`circumstances`), a factor of the table's shape, and a factor of the table itself. Factors are medians, so a
    single job that was slow changes little. Each part has fits and factors of its own.

    `shapes` are words for what tables have in common, such as their storage, by table id.
    """

    def __init__(self, shapes: Mapping[str, str] | None = None) -> None:
        self.shapes = shapes or {}
        self._kinds: defaultdict[tuple[str, bool], _OfKind] = defaultdict(_OfKind)

    def learn(self, ended: Ended) -> None:
        """Adds an attempt that has ended after all known ones."""
        known = self._kinds[ended.kind, ended.dry_run]
        known.answers.pop(ended.table_id, None)
        of_table = known.of_tables[ended.table_id]
        of_table.extend(_numbers(ended))
        del of_table[: -_STRIDE * _MOST_OF_TABLE]
        known.gib = ended.gib or known.gib
        if ended.is_good:
            known.latest.append(ended)
            known.of_shapes[self.shapes.get(ended.table_id, "")].append(ended)
            known.new += 1

    def learn_older(self, ended: Ended) -> None:
        """Adds an attempt that has ended before all known ones."""
        known = self._kinds[ended.kind, ended.dry_run]
        known.answers.pop(ended.table_id, None)
        of_table = known.of_tables[ended.table_id]
        if len(of_table) < _STRIDE * _MOST_OF_TABLE:
            of_table[:0] = array("f", _numbers(ended))
        known.gib = known.gib or ended.gib
        if ended.is_good:
            for many in (known.latest, known.of_shapes[self.shapes.get(ended.table_id, "")]):
                if len(many) < (many.maxlen or 0):
                    many.appendleft(ended)
                    known.new += 1

    def expected(
        self, table_id: str, kind: str, work: Work, *, dry_run: bool, circumstances: Circumstances = UNKNOWN
    ) -> Cost:
        """Returns the expected cost, under the usual circumstances unless others are given."""
        known = self._kinds.get((kind, dry_run))
        if known is None or not (known.latest or known.of_tables.get(table_id)):
            return Cost(DEFAULT_SECONDS, DEFAULT_SECONDS / _UNKNOWN, DEFAULT_SECONDS * _UNKNOWN, Basis.DEFAULT)
        if known.is_stale:
            _renew(known)
        if circumstances != UNKNOWN:
            return self._computed(known, table_id, work, circumstances)
        asked, cost = known.answers.get(table_id, (None, None))
        if cost is None or asked != work:
            cost = self._computed(known, table_id, work, UNKNOWN)
            known.answers[table_id] = work, cost
        return cost

    def _computed(self, known: _OfKind, table_id: str, work: Work, circumstances: Circumstances) -> Cost:
        found = {part: self._of_part(known, part, table_id, (work, circumstances)) for part in known.parts}
        basis, seconds = found.pop(CostPart.SECONDS)
        return Cost(*seconds, basis, known.gib, {part: each for part, (_, each) in found.items()})

    def _of_part(
        self, known: _OfKind, part: CostPart, table_id: str, job: tuple[Work, Circumstances]
    ) -> tuple[Basis, Range]:
        learned = known.parts[part]
        fit = learned.fit
        of_table, of_shape = known.of_tables.get(table_id), known.of_shapes.get(self.shapes.get(table_id, ""))
        if of_table and (read := _read(of_table, part)):
            basis, factor, spread = Basis.TABLE, _factor(fit, read), learned.of_known
        elif len(known.of_shapes) > 1 and of_shape:
            alike = [(found, True) for each in of_shape if (found := _observation(each, part))]
            basis, factor, spread = Basis.SHAPE, _factor(fit, alike, _DOUBT), learned.of_others
        else:
            basis, factor, spread = Basis.KIND, 1.0, learned.of_others
        low, high = spread.as_usual if job[1] == UNKNOWN else spread.given
        amount = factor * fit.of(*job)
        # Beyond the largest known job, the growth is uncertain, so the interval widens.
        beyond = max(1.0, job[0].bytes / fit.most_bytes) if fit.most_bytes else 1.0
        return basis, Range(amount, amount * low, amount * high * beyond)

    def learned(self) -> list[Learned]:
        found = []
        for (kind, dry_run), known in sorted(self._kinds.items()):
            if known.latest:
                _renew(known)
                parts = {part: (each.fit, _accuracy(known, part)) for part, each in known.parts.items()}
                found.append(Learned(kind, dry_run, parts))
        return found


def _renew(known: _OfKind) -> None:
    known.answers.clear()
    if not known.latest:
        # All attempts have failed so far.
        known.parts = {CostPart.SECONDS: _OfPart(Fit(DEFAULT_SECONDS))}
        return
    known.parts = {}
    for part in CostPart:
        if observed := known.observed(part):
            known_jobs = [each for _, each in observed]
            fit = fitted_with_circumstances(known_jobs) if part.depends_on_circumstances else fitted(known_jobs)
            known.parts[part] = _OfPart(fit, *map(_spread, _errors(observed, fit)))
    known.new = 0


def _accuracy(known: _OfKind, part: CostPart) -> Accuracy:
    observed = known.observed(part)
    errors = _errors(observed, known.parts[part].fit)
    others, own = (_median([abs(math.exp(-each) - 1) for each, _ in found]) for found in errors)
    tables = {table_id for table_id, _ in observed}
    return Accuracy(len(observed), len(tables), of_other_tables=others, of_known_tables=own)


def _errors(
    observed: Sequence[tuple[str, Observation]], whole: Fit
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Returns two lists of errors: for tables that the fit does not know, and for jobs whose previous job on the same
    table it knows. Each error is computed twice: for the attempt's circumstances, and for unknown ones.

    An error is the logarithm of the actual amount divided by the expected one. `whole` is the fit over all tables; it
    also has the factors of circumstances.
    """
    halves: tuple[list[tuple[str, Observation]], list[tuple[str, Observation]]] = ([], [])
    numbers = {table_id: number for number, table_id in enumerate(dict.fromkeys(each for each, _ in observed))}
    of_tables: defaultdict[str, list[Observation]] = defaultdict(list)
    for table_id, each in observed:
        halves[numbers[table_id] % 2].append((table_id, each))
        of_tables[table_id].append(each)
    others: list[tuple[float, float]] = []
    if all(halves):
        for these, those in (halves, halves[::-1]):
            fit = fitted_as([each for _, each in those], whole.slowness)
            others += [(fit.error(each), fit.error(each, as_usual=True)) for _, each in these]
    own = [
        (whole.error(after) - whole.error(before), whole.error(after, as_usual=True) - whole.error(before))
        for each in of_tables.values()
        for before, after in pairwise(each)
    ]
    return others, own


def _spread(errors: Sequence[tuple[float, float]]) -> _Spread:
    return _Spread(_interval([each for each, _ in errors]), _interval([each for _, each in errors]))


def _interval(errors: Sequence[float]) -> tuple[float, float]:
    """Returns the factors between which eight of ten jobs lie. If few errors are known, the interval is wider."""
    ordered = sorted(errors)
    if len(ordered) < 3:
        return 1 / _UNKNOWN, _UNKNOWN
    cut = int(_OUTSIDE * len(ordered))
    return min(1.0, math.exp(ordered[cut])), max(1.0, math.exp(ordered[-1 - cut]))


def _factor(fit: Fit, known: Sequence[tuple[Observation, bool]], doubt: float = 0.0) -> float:
    """Returns the median of the actual amounts of attempts divided by the expected ones. The flag of each observation
    says whether the attempt succeeded."""
    good: list[float] = []
    failed: list[float] = []
    for each, is_good in known:
        (good if is_good else failed).append(fit.error(each))
    middle = _median(good)
    # A failed attempt says nothing if it ended sooner than the median of the successful ones.
    ratios = good + [each for each in failed if middle is None or each > middle]
    return math.exp((_median(ratios) or 0.0) * len(ratios) / (len(ratios) + doubt)) if ratios else 1.0


def _median(values: Sequence[float]) -> float | None:
    if not values:
        return None
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(values) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _observation(ended: Ended, part: CostPart) -> Observation | None:
    amount = ended.took(part)
    return None if amount is None else Observation(ended.work, amount, ended.circumstances)


def _numbers(ended: Ended) -> Iterator[float]:
    yield float(ended.work.bytes)
    yield float(ended.work.files)
    for number in ended.circumstances:
        yield math.nan if number is None else float(number)
    for part in CostPart:
        amount = ended.took(part)
        yield math.nan if amount is None else amount if ended.is_good else -amount


def _read(numbers: Sequence[float], part: CostPart) -> list[tuple[Observation, bool]]:
    found = []
    for at in range(0, len(numbers), _STRIDE):
        amount, before, beside = (numbers[at + place] for place in (_PLACES[part], 2, 3))
        if not math.isnan(amount):
            circumstances = UNKNOWN if math.isnan(before + beside) else Circumstances(int(before), beside)
            work = Work(int(numbers[at]), int(numbers[at + 1]))
            found.append((Observation(work, abs(amount), circumstances), amount > 0))
    return found
