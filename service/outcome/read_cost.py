"""The cost of a read, and the parts of it that come from log files and small files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median
from typing import Any

from service.lake.snapshot import TableSnapshot

_GIB = 2.0**30


class RatesBasis(StrEnum):
    """Where the rates come from: workers have measured them, or they are assumed."""

    PROBE = "probe"
    DEFAULT = "default"


_BOUNDS = {
    "open_seconds": (1e-6, 60.0),
    "scan_seconds_per_gib": (0.01, 10_000.0),
    "merge_seconds_per_gib": (0.01, 100_000.0),
}


@dataclass(frozen=True, slots=True)
class ReadRates:
    """The processor seconds that a reader takes to open one file, to scan a GiB of base files, to merge a GiB of log
    files, and to plan and start a query. Only their ratios matter for an overhead."""

    open_seconds: float = 0.02
    scan_seconds_per_gib: float = 4.0
    merge_seconds_per_gib: float = 40.0
    basis: RatesBasis = RatesBasis.DEFAULT
    # A query of Spark 3.5 on 10 MB without logs takes 0.5 s, but reading its files takes only 0.1 s of these.
    start_seconds: float = 0.4

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ReadRates | None:
        """Returns the rates that a worker has measured; None if they are impossible. Missing rates are assumed,
        such as the time to open a file, which depends on the storage, and the time to start a query, which depends on
        the reader."""
        try:
            values = {name: float(given[name]) for name in _BOUNDS if name in given}
        except (TypeError, ValueError):
            return None
        is_possible = all(_BOUNDS[name][0] <= value <= _BOUNDS[name][1] for name, value in values.items())
        return cls(**values, basis=RatesBasis.PROBE) if values and is_possible else None

    @classmethod
    def middle(cls, probed: Sequence[ReadRates]) -> ReadRates:
        """Returns the medians of measured rates, so that a single busy worker changes little. If nothing was measured,
        returns the assumed rates."""
        if not probed:
            return cls()
        return cls(**{name: median(getattr(each, name) for each in probed) for name in _BOUNDS}, basis=RatesBasis.PROBE)


@dataclass(frozen=True, slots=True)
class ReadWork:
    """The files that a read of all current rows opens. A clustering would replace `mergeable_files` small files by
    `merged_files` files. Both are 0 if a clustering cannot merge files, as in a table with buckets."""

    base_bytes: int = 0
    base_files: int = 0
    log_bytes: int = 0
    log_files: int = 0
    file_groups: int = 0
    mergeable_files: int = 0
    merged_files: int = 0

    def merging(self, small_files: int, small_file_bytes: int) -> ReadWork:
        """Returns the work if a clustering can merge this number of small files. Their sizes are unknown, so each
        counts with the average size of a base file, but at most with the size below which a file is small."""
        if small_files < 2:
            return self
        average = min(self.base_bytes / max(1, self.base_files), small_file_bytes)
        merged = max(1, math.ceil(small_files * average / max(1, small_file_bytes)))
        return replace(self, mergeable_files=small_files, merged_files=merged)

    @classmethod
    def of(cls, snapshot: TableSnapshot) -> ReadWork:
        """Returns the work, computed from the partitions of the snapshot."""
        partitions = snapshot.partitions
        mergeable = [] if snapshot.num_buckets else [each for each in partitions if each.small_files > 1]
        return cls(
            base_bytes=sum(each.base_bytes for each in partitions),
            base_files=sum(each.base_files for each in partitions),
            log_bytes=sum(each.log_bytes for each in partitions),
            log_files=sum(each.log_files for each in partitions),
            file_groups=sum(each.file_groups for each in partitions),
            mergeable_files=sum(each.small_files for each in mergeable),
            merged_files=sum(
                max(1, math.ceil(each.small_bytes / max(1, snapshot.small_file_bytes))) for each in mergeable
            ),
        )


@dataclass(frozen=True, slots=True)
class ReadCost:
    """Seconds of one read of the whole table: now, after a compaction, and after a compaction and a merge of small
    files."""

    now: float
    compacted: float
    merged: float

    @property
    def of_logs(self) -> float:
        """The cost of a read, divided by its cost right after a compaction."""
        return self.now / self.compacted if self.compacted else 1.0

    @property
    def of_small_files(self) -> float:
        return self.compacted / self.merged if self.merged else 1.0

    def overhead(self, *, merges_files: bool) -> float:
        """Returns the cost of a read, divided by its cost after the table services that are switched on."""
        return self.of_logs * (self.of_small_files if merges_files else 1.0)


def read_cost(work: ReadWork, rates: ReadRates) -> ReadCost:
    """Returns the cost of a read. The estimate assumes that a compaction does not enlarge base files, because these
    already have the rows that log files update."""
    files = max(work.base_files, work.file_groups)
    base_bytes = work.base_bytes or work.log_bytes
    compacted = rates.start_seconds + rates.open_seconds * files + rates.scan_seconds_per_gib * base_bytes / _GIB
    now = (
        rates.start_seconds
        + rates.open_seconds * (work.base_files + work.log_files)
        + rates.scan_seconds_per_gib * work.base_bytes / _GIB
        + rates.merge_seconds_per_gib * work.log_bytes / _GIB
    )
    merged = compacted - rates.open_seconds * max(0, work.mergeable_files - work.merged_files)
    return ReadCost(max(now, compacted), compacted, merged)
