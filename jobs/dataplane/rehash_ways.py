"""The ways to rewrite slices into buckets of another number, and what each would cost.

If neither number of buckets divides the other, the rows of a family of n old buckets go to k new ones (`BucketChange`).
A task of `ONE_REHASH` reads all n slices and writes some of the k files; several tasks read the slices again. For
`THROUGH_MULTIPLE` each slice is split into k files, and a second step puts n of these files together, mostly by copying
row groups: each row is written twice, but each slice has a task of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_OUTPUTS = 16
"""Files that a task writes at once. `split_writer.BUFFER_BYTES` gives each of them a row group of 9 MiB."""

# Times per byte, where decoding is 1, with gzip, snappy and zstd alike (tests/benchmarks/rehash.py). A copy of a row
# group decodes only its keys. Row groups below this size are not copied, but decoded and encoded.
_ENCODED, _COPIED, _COPYABLE_BYTES = 4.0, 0.5, 8 * 1024 * 1024


class Way(StrEnum):
    ONE_REHASH = "one_rehash"
    THROUGH_MULTIPLE = "through_multiple"


@dataclass(frozen=True)
class SliceSize:
    bytes: int
    is_merged: bool  # Whether base file and logs, or another schema, have to be merged before the rows can be read.


@dataclass(frozen=True)
class FamilySize:
    """A family: the slices of its old buckets, and the number of its new ones."""

    slices: tuple[SliceSize, ...]
    outputs: int

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.slices)

    @property
    def is_direct(self) -> bool:
        """Whether the family has a single slice, which one task writes into the new files, so that there is only one
        way."""
        (first, *others) = self.slices
        return not others and (not first.is_merged or self.outputs <= MOST_OUTPUTS)

    @property
    def has_two_ways(self) -> bool:
        return len(self.slices) > 1 and self.outputs > 1

    @property
    def first_merged(self) -> bool:
        """Whether its slices must become base files of their own before one task can read them all."""
        return any(item.is_merged for item in self.slices)


@dataclass(frozen=True)
class WayCost:
    """A way on which each task writes `outputs` files. `cost` is its time, as the bytes that a core decodes in that
    time."""

    way: Way
    outputs: int
    bytes_read: int
    bytes_written: int
    tasks: int
    cost: float


def costs(families: Sequence[FamilySize], cores: int) -> list[WayCost]:
    """Returns the cost of each way, the cheapest first. There is one way if no family has several old and new
    buckets."""
    most = min(MOST_OUTPUTS, max((family.outputs for family in families), default=1))
    once = min(
        (
            _cost(Way.ONE_REHASH, number, _steps(families, Way.ONE_REHASH, number), cores)
            for number in (most, 8, 4, 2, 1)
            if number <= most
        ),
        key=lambda each: (each.cost, each.bytes_read),
    )
    if not any(family.has_two_ways for family in families):
        return [once]
    twice = _steps(families, Way.THROUGH_MULTIPLE, once.outputs)
    return sorted([once, _cost(Way.THROUGH_MULTIPLE, once.outputs, twice, cores)], key=lambda each: each.cost)


class _Task(NamedTuple):
    read: float
    written: float
    cost: float


def _cost(way: Way, outputs: int, steps: Sequence[Sequence[_Task]], cores: int) -> WayCost:
    tasks = [task for step in steps for task in step]
    time = sum(max(sum(task.cost for task in step) / cores, max(task.cost for task in step)) for step in steps if step)
    read, written = sum(task.read for task in tasks), sum(task.written for task in tasks)
    return WayCost(way, outputs, round(read), round(written), len(tasks), time)


def _steps(families: Sequence[FamilySize], way: Way, outputs: int) -> list[list[_Task]]:
    """Returns the tasks of each step: merging slices, splitting slices or rehashing families, joining pieces."""
    merging: list[_Task] = []
    splitting: list[_Task] = []
    joining: list[_Task] = []
    for each in families:
        if each.is_direct:
            splitting += _passes(each.bytes, each.outputs, MOST_OUTPUTS)
            continue
        is_split = way is Way.THROUGH_MULTIPLE and each.has_two_ways
        if each.first_merged and not (is_split and each.outputs <= MOST_OUTPUTS):
            merging += [_Task(item.bytes, item.bytes, item.bytes * (1 + _ENCODED)) for item in each.slices]
        if not is_split:
            splitting += _passes(each.bytes, each.outputs, outputs)
            continue
        for item in each.slices:
            splitting += _passes(item.bytes, each.outputs, MOST_OUTPUTS)
        of_each = each.bytes / each.outputs
        is_copied = of_each / len(each.slices) >= _COPYABLE_BYTES
        joining += [_Task(of_each, of_each, of_each * (_COPIED if is_copied else 1 + _ENCODED))] * each.outputs
    return [merging, splitting, joining]


def _passes(size: int, outputs: int, of_task: int) -> list[_Task]:
    found = []
    for first in range(0, outputs, of_task):
        written = size * min(of_task, outputs - first) / outputs
        found.append(_Task(size, written, size + written * _ENCODED))
    return found
