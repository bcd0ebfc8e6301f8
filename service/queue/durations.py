"""The durations of jobs, learned from those that have ended."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEFAULT_SECONDS = 30.0
# Weight of a table's last job in the mean of its jobs. The last four jobs have three quarters of the weight.
_LAST = 0.3
# Number of older jobs that count.
_MOST = 4
# Tables are comparable if their sizes differ by at most this number of doublings.
_DOUBLINGS = 3


class Basis(StrEnum):
    """The source of an expected duration. All but the first are guesses."""

    TABLE = "table"
    SIZE = "size"
    KIND = "kind"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Duration:
    """Seconds from the lease of a job to its end."""

    seconds: float
    basis: Basis


@dataclass
class _Mean:
    total: float = 0.0
    number: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.number += 1

    @property
    def value(self) -> float:
        return self.total / self.number


class Durations:
    """Mean durations for each kind of job: by table, by size of the tables, and of all tables. Dry runs have separate
    means.

    `sizes` are bytes, by table id. A table that is not among them has no known size.
    """

    def __init__(self, sizes: Mapping[str, int] | None = None) -> None:
        self.sizes = sizes or {}
        self._of_tables: defaultdict[tuple[str, bool], dict[str, tuple[float, int]]] = defaultdict(dict)
        self._of_sizes: defaultdict[tuple[str, bool], defaultdict[int, _Mean]] = defaultdict(lambda: defaultdict(_Mean))
        self._of_kinds: defaultdict[tuple[str, bool], _Mean] = defaultdict(_Mean)

    def learn(self, table_id: str, kind: str, *, dry_run: bool, seconds: float) -> None:
        """Adds a job that has ended after all others."""
        of_table = self._of_tables[kind, dry_run]
        mean, number = of_table.get(table_id, (seconds, 0))
        of_table[table_id] = mean + _LAST * (seconds - mean), number + 1
        self._learn_at_large(table_id, kind, dry_run=dry_run, seconds=seconds)

    def learn_older(self, table_id: str, kind: str, *, dry_run: bool, seconds: float) -> None:
        """Adds a job that has ended before all others."""
        of_table = self._of_tables[kind, dry_run]
        mean, number = of_table.get(table_id, (0.0, 0))
        if number < _MOST:
            of_table[table_id] = (mean * number + seconds) / (number + 1), number + 1
        self._learn_at_large(table_id, kind, dry_run=dry_run, seconds=seconds)

    def _learn_at_large(self, table_id: str, kind: str, *, dry_run: bool, seconds: float) -> None:
        key = (kind, dry_run)
        self._of_kinds[key].add(seconds)
        if (size := self.sizes.get(table_id)) is not None:
            self._of_sizes[key][size.bit_length()].add(seconds)

    def expected(self, table_id: str, kind: str, *, dry_run: bool) -> Duration:
        key = (kind, dry_run)
        if (of_table := self._of_tables[key].get(table_id)) is not None:
            return Duration(of_table[0], Basis.TABLE)
        size, known = self.sizes.get(table_id), self._of_sizes[key]
        if size is not None and known:
            nearest = min(known, key=lambda each: abs(each - size.bit_length()))
            if abs(nearest - size.bit_length()) <= _DOUBLINGS:
                return Duration(known[nearest].value, Basis.SIZE)
        if (of_kind := self._of_kinds[key]).number:
            return Duration(of_kind.value, Basis.KIND)
        return Duration(_DEFAULT_SECONDS, Basis.DEFAULT)
