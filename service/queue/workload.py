"""The workload of a job of each kind, according to the last poll of its table."""

from __future__ import annotations

from typing import assert_never

from jobs.contract import JobKind
from jobs.kinds.kind import WorksOn
from jobs.kinds.registry import KINDS
from jobs.kinds.results import Work
from service.lake.snapshot import Totals


def work_of(kind: JobKind, totals: Totals) -> Work:
    """Returns an estimate of the work of a job without limits. The job itself finds out the real amount."""
    match works_on := KINDS[kind].works_on:
        case WorksOn.EVERYTHING:
            return Work(totals.base_bytes + totals.log_bytes, totals.base_files + totals.log_files)
        case WorksOn.LOGGED:
            return Work(totals.logged_bytes, totals.log_files + min(totals.log_files, totals.base_files))
        case WorksOn.OUT_OF_USE:
            return Work(totals.freed_bytes, totals.freed_files)
        case WorksOn.TIMELINE:
            return Work()
        case _:
            assert_never(works_on)
