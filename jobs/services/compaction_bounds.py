"""Chooses the planner's options for compactions of some partitions, or with a maximum of bytes or file groups. Hudi's
own planner makes the plan, with a chain of strategies of Hudi 1.2.0 (`CompositeCompactionStrategy`).
`PartitionRegexBasedCompactionStrategy` takes the newest partitions as long as they fit. If not even the first one fits,
`LogFileSizeBasedCompactionStrategy` takes its file groups with the most bytes of logs. `BoundedIOCompactionStrategy`
alone would not keep the limit, because it rounds each file group down to whole megabytes. No strategy counts file
groups, so several file groups with logs of equal size that round down to zero are taken together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from jobs.format import plan_files
from jobs.format.bucket_rules import Selection, exactly
from jobs.format.plan_files import Group
from jobs.hudi.plans import Plan
from jobs.hudi.records import FileSlice
from jobs.kinds.compaction import CompactionParams
from jobs.kinds.results import WorkLeft

_MIB = 1024 * 1024
_STRATEGIES = "org.apache.hudi.table.action.compact.strategy"


@dataclass(frozen=True)
class PendingPlan:
    """A pending compaction with the file groups that it compacts. `bytes` is the size of the files to read by the plan,
    which has the sizes of base files in whole megabytes."""

    instant: str
    groups: frozenset[Group]
    bytes: int

    @classmethod
    def of(cls, plan: Plan) -> PendingPlan:
        metrics = [each.get("metrics") or {} for each in plan.content.get("operations") or ()]
        to_read = sum(
            max(int(each.get("TOTAL_LOG_FILES_SIZE") or 0), int(each.get("TOTAL_IO_READ_MB") or 0) * _MIB)
            for each in metrics
        )
        return cls(plan.instant, frozenset(plan_files.read_by(plan.content)), to_read)


@dataclass(frozen=True)
class Choice:
    """The file slices that the next plan should have, and those left to later plans. `options` make the planner choose
    them."""

    slices: tuple[FileSlice, ...]
    left: tuple[FileSlice, ...]
    options: Mapping[str, str]


@dataclass(frozen=True)
class Bounds:
    """The limits of one job; None means no limit."""

    limit_bytes: int | None = None
    limit_file_groups: int | None = None
    selection: Selection | None = None

    @classmethod
    def of(cls, params: CompactionParams) -> Bounds:
        selection = None if params.partitions is None else Selection.of(params.partitions)
        return cls(params.limit_bytes, params.limit_file_groups, selection)

    @property
    def is_unlimited(self) -> bool:
        return self._has_no_limit and self.selection is None

    @property
    def _has_no_limit(self) -> bool:
        return self.limit_bytes is None and self.limit_file_groups is None

    def takes(self, plan: PendingPlan, taken: Sequence[PendingPlan], begun: Collection[str]) -> bool:
        """Returns whether to execute this pending plan after the plans `taken`. The first plan is executed whatever its
        size, and so are those that earlier attempts have `begun`."""
        if plan.instant in begun:
            return True
        return (not taken or not self._exceeded_by([*taken, plan])) and self._concerns(plan)

    def plans(self, pending: Sequence[PendingPlan], begun: Collection[str]) -> list[PendingPlan]:
        """Returns the pending plans that a job executes if it withholds none."""
        taken: list[PendingPlan] = []
        for plan in pending:
            if self.takes(plan, taken, begun):
                taken.append(plan)
        return taken

    def choose(self, due: Sequence[FileSlice], executed: Sequence[PendingPlan] = ()) -> Choice:
        """Returns the choice among the slices that are `due`: those with logs that are in no pending plan.

        The choice has at least one slice, unless the `executed` plans have used up the limit.
        """
        wanted = [item for item in due if self.selection is None or item.partition in self.selection]
        if self._has_no_limit:
            return self._whole(wanted, wanted)
        # The newest partitions are those with the last paths, as in Hudi's `DayBasedCompactionStrategy`.
        in_order = sorted(wanted, key=lambda item: item.partition, reverse=True)
        partitions = [list(group) for _, group in groupby(in_order, key=lambda item: item.partition)]
        if number := self._fitting(partitions, executed):
            return self._whole([item for each in partitions[:number] for item in each], wanted)
        most_logs = sorted(partitions[0] if partitions else (), key=lambda item: item.log_bytes, reverse=True)
        number = self._fitting([[item] for item in most_logs], executed)
        number = number if executed else min(max(number, 1), len(most_logs))
        chosen = most_logs[: _as_hudi_counts(most_logs, number)] if number else ()
        return _part(chosen, wanted, number) if chosen else Choice((), tuple(wanted), {})

    def _fitting(self, parts: Sequence[Sequence[FileSlice]], executed: Sequence[PendingPlan]) -> int:
        """Returns how many of the first parts fit together into the limits that the executed plans leave."""
        sizes = accumulate(sum(item.bytes for item in part) for part in parts)
        counts = accumulate(len(part) for part in parts)
        before, groups = sum(plan.bytes for plan in executed), sum(len(plan.groups) for plan in executed)
        return sum(self._allows(before + size, groups + number) for size, number in zip(sizes, counts, strict=True))

    def _exceeded_by(self, plans: Sequence[PendingPlan]) -> bool:
        return not self._allows(sum(plan.bytes for plan in plans), sum(len(plan.groups) for plan in plans))

    def _allows(self, size: int, file_groups: int) -> bool:
        return (self.limit_bytes is None or size <= self.limit_bytes) and (
            self.limit_file_groups is None or file_groups <= self.limit_file_groups
        )

    def _concerns(self, plan: PendingPlan) -> bool:
        return self.selection is None or any(partition in self.selection for partition, _ in plan.groups)

    def _whole(self, chosen: Sequence[FileSlice], wanted: Sequence[FileSlice]) -> Choice:
        left = _without(wanted, chosen)
        if self.selection is None and not left:
            return Choice(tuple(chosen), (), {})
        return Choice(tuple(chosen), left, _regex(sorted({item.partition for item in chosen})))


def _as_hudi_counts(most_logs: Sequence[FileSlice], number: int) -> int:
    """Returns how many slices Hudi takes when it should take `number`. Hudi takes more if the last ones have logs of
    equal size that round down to zero."""
    target, io = _target(most_logs, number), sum(_hudis_io(item) for item in most_logs[:number])
    least = most_logs[number - 1].log_bytes
    for item in most_logs[number:]:
        if item.log_bytes < least or io >= target:
            break
        number += 1
        io += _hudis_io(item)
    return number


def _part(chosen: Sequence[FileSlice], wanted: Sequence[FileSlice], number: int) -> Choice:
    options = {
        **_regex([chosen[0].partition]),
        "hoodie.compaction.logfile.size.threshold": str(chosen[-1].log_bytes),
        # Hudi takes file groups until the target is reached.
        "hoodie.compaction.target.io": str(_target(chosen, number)),
        # The size that Hudi assumes for the output of a slice without a base file.
        "hoodie.parquet.max.file.size": "1",
    }
    options["hoodie.compaction.strategy"] += f",{_STRATEGIES}.LogFileSizeBasedCompactionStrategy"
    return Choice(tuple(chosen), _without(wanted, chosen), options)


def _target(slices: Sequence[FileSlice], number: int) -> int:
    return sum(_hudis_io(item) for item in slices[: number - 1]) + 1


def left_of(slices: Sequence[FileSlice], plans: Sequence[PendingPlan]) -> WorkLeft:
    """Returns the work that a job leaves to the next one, as its result shows it."""
    return WorkLeft(
        file_groups=len(slices) + sum(len(plan.groups) for plan in plans),
        bytes=sum(item.bytes for item in slices) + sum(plan.bytes for plan in plans),
        plans=tuple(plan.instant for plan in plans),
    )


def _regex(partitions: Sequence[str]) -> dict[str, str]:
    return {
        "hoodie.compaction.strategy": f"{_STRATEGIES}.PartitionRegexBasedCompactionStrategy",
        "hoodie.compaction.partition.path.regex": "|".join(exactly(partition) for partition in partitions),
    }


def _without(slices: Sequence[FileSlice], others: Sequence[FileSlice]) -> tuple[FileSlice, ...]:
    keys = {item.key for item in others}
    return tuple(item for item in slices if item.key not in keys)


def _hudis_io(item: FileSlice) -> int:
    """Returns the megabytes to read and to write, each rounded down, as `FileSliceMetricUtils` (1.2.0) computes
    them."""
    return item.bytes // _MIB + item.base_bytes // _MIB
