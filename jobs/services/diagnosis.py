"""Diagnosis: examines a table for the damages that users of Hudi meet, and names the job that cures each. Writes
nothing."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jobs.contract import BucketIndex, Outcome, Result
from jobs.errors import CancelledError, JobError, LeaseLostError, TimedOutError
from jobs.hudi.table import HudiTable
from jobs.services.checks import buckets, metadata_table, plans, remains, timeline
from jobs.services.checks.finding import Examined, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jobs.contract import WorkOrder
    from jobs.job_context import JobContext

CHECKS: dict[str, Callable[[Examined], Iterator[Finding]]] = {
    "timeline files": timeline.files,
    "files of unknown instants": timeline.unknown_files,
    "files without a commit": timeline.strays,
    "archival": timeline.archival,
    "pending plans": plans.unusable,
    "dead writes": remains.writes,
    "markers": remains.markers,
    "lock": remains.lock,
    "hashing configs": remains.configs,
    "metadata table": metadata_table.listing,
    "file groups of buckets": buckets.file_groups,
    "rows": buckets.rows,
}


def run(table: HudiTable, order: WorkOrder, context: JobContext) -> Result:
    """Examines the table by its bucket index, or by `index` if it was registered without one.

    Returns `findings`, the names of the checks that were made, and those that could not be made with the reason.

    `rows: false` leaves out the check that reads the key of every row. `healthy`: all checks were made, none found
    anything. Writers may be at work meanwhile.
    """
    if (claimed := order.params.get("index")) and table.declared.index is None:
        table = HudiTable(table.jvm, replace(table.declared, index=BucketIndex.from_json(claimed)))
    checks = {name: check for name, check in CHECKS.items() if name != "rows" or order.params.get("rows", True)}
    findings: list[dict[str, Any]] = []
    unchecked: list[dict[str, Any]] = []
    with ExitStack() as clients:
        examined = Examined(table, clients)
        for number, (name, check) in enumerate(checks.items(), 1):
            context.step(f"checking {name} ({number} of {len(checks)})")
            try:
                found = list(check(examined))
                if found:
                    # A writer may have been in the midst of something; what is damaged still is.
                    again = {finding.type for finding in check(Examined(table, clients))}
                    findings += [{**each.to_json(), "check": name} for each in found if each.type in again]
            except (CancelledError, LeaseLostError, TimedOutError):
                raise
            except JobError as error:
                # What one check meets must not hide what the others find.
                unchecked.append({"check": name, "reason": error.problem().to_json()})
    return Result(
        Outcome.SUCCEEDED,
        details={
            "findings": findings,
            "checked": [name for name in checks if name not in {each["check"] for each in unchecked}],
            "unchecked": unchecked,
            "healthy": not findings and not unchecked,
        },
    )
