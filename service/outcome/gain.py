"""The gain of a job: what it saves readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from jobs.contract import JobKind
from service.model.formatting import duration
from service.model.record import Record
from service.outcome.read_cost import ReadCost, ReadRates
from service.outcome.reads import Reads


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain of a job: the processor seconds that the job saves in each read of the whole table."""

    seconds_per_read: float
    reads_per_day: float

    @property
    def seconds_per_hour(self) -> float:
        """The seconds that the job saves in all reads of an hour together."""
        return self.seconds_per_read * self.reads_per_day / 24

    def text(self, work_seconds: float | None) -> str:
        """Returns words such as "saves 3.1 reader-minutes an hour for 8 s of work"."""
        saved = f"saves {self.seconds_per_hour / 60:.2g} reader-minutes an hour"
        return f"{saved} for {duration(work_seconds)} of work" if work_seconds else saved

    def paid_per_second(self, age: float, work_seconds: float) -> float:
        """Returns the seconds that readers have paid since the last job, for each second of the job's work. `age` is
        the time since the last job in seconds; the gain has grown from 0 in this time.

        The job with the largest value starts first (Whittle's index of a table whose reads become more expensive with
        time). If the gain alone counted, tables with short jobs would always go first. They would get a job after every
        few commits, while readers of other tables would pay for many hours.
        """
        return self.seconds_per_hour * max(age, 1.0) / 3600 / 2 / max(work_seconds, 0.001)


def gain_of(kind: JobKind, cost: ReadCost, reads: Reads) -> Gain | None:
    """Returns the expected gain; None for kinds that do not make reads cheaper."""
    match kind:
        case JobKind.COMPACTION:
            saved = cost.now - cost.compacted
        case JobKind.CLUSTERING:
            saved = cost.compacted - cost.merged
        case _:
            return None
    return Gain(saved, reads.per_day)


def saved_by(amounts: Mapping[str, float], rates: ReadRates) -> float:
    """Returns the seconds that a job has saved in each read. `amounts` are figures of the job's result
    (`KindResult.amounts`)."""
    files = amounts.get("log_files", 0) + max(0, amounts.get("files_before", 0) - amounts.get("files_after", 0))
    return rates.open_seconds * files + rates.merge_seconds_per_gib * amounts.get("log_bytes", 0) / 2**30


@dataclass(frozen=True)
class MeasuredGain(Record):
    """The expected and the actual gain of a job, in processor seconds of one read. `overhead_after` is the overhead at
    the first poll after the job."""

    job_id: str
    kind: JobKind
    created_at: datetime
    expected_seconds: float
    overhead_before: float
    saved_seconds: float | None = None
    overhead_after: float | None = None
