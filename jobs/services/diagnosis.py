"""Diagnosis: examines a table for the damages that users of Hudi meet, and names the job that cures each. Writes
nothing."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.contract import BucketIndex, Outcome, Result
from jobs.errors import CancelledError, JobError, LeaseLostError, TimedOutError
from jobs.hudi.table import HudiTable
from jobs.services.checks import buckets, metadata_table, plans, remains, timeline
from jobs.services.checks.finding import Examined, Finding, confirmed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jobs.contract import Json, WorkOrder
    from jobs.job_context import JobContext

    Check = Callable[[Examined], Iterator[Finding]]

CHECKS: dict[str, Check] = {
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

_ENDS = (CancelledError, LeaseLostError, TimedOutError)


def run(table: HudiTable, order: WorkOrder, context: JobContext) -> Result:
    """Examines the table by its bucket index, or by `index` if it was registered without one.

    Returns `findings`, the names of the checks that were made, and those that could not be made with the reason.

    `rows: false` leaves out the check that reads the key of every row. `healthy`: all checks were made, none found
    anything. Writers may be at work meanwhile.
    """
    if (claimed := order.params.get("index")) and table.declared.index is None:
        table = HudiTable(table.jvm, replace(table.declared, index=BucketIndex.from_json(claimed)))
    checks = {name: check for name, check in CHECKS.items() if name != "rows" or order.params.get("rows", True)}
    findings: list[Json] = []
    with ExitStack() as clients:
        examination = _Examination(table, clients, context)
        first = examination.look(checks, "checking")
        # A writer may have been in the midst of something: by now it has gone on, and what is damaged still is.
        table.reload()
        doubtful = {name: checks[name] for name, found in first.items() if found}
        for name, found in examination.look(doubtful, "checking again").items():
            findings += [{**each.to_json(), "check": name} for each in confirmed(first[name], found)]
    unchecked = [{"check": name, "reason": error.problem().to_json()} for name, error in examination.failed.items()]
    return Result(
        Outcome.SUCCEEDED,
        details={
            "findings": findings,
            "checked": [name for name in checks if name not in {each["check"] for each in unchecked}],
            "unchecked": unchecked,
            "healthy": not findings and not unchecked,
        },
    )


class _Examination:
    """Makes checks of one table. `failed` are those that could not be made, with the reason: what one check meets must
    not hide what the others find."""

    def __init__(self, table: HudiTable, clients: ExitStack, context: JobContext) -> None:
        self.failed: dict[str, JobError] = {}
        self._table = table
        self._clients = clients
        self._context = context

    def look(self, checks: Mapping[str, Check], step: str) -> dict[str, list[Finding]]:
        """Returns what each check finds. What the checks read is read once, and anew for each call."""
        examined = Examined(self._table, self._clients)
        looks: dict[str, list[Finding]] = {}
        for number, (name, check) in enumerate(checks.items(), 1):
            self._context.step(f"{step} {name} ({number} of {len(checks)})")
            try:
                looks[name] = self._made(check, examined)
            except _ENDS:
                raise
            except JobError as error:
                self.failed[name] = error
        return looks

    def _made(self, check: Check, examined: Examined) -> list[Finding]:
        try:
            return list(check(examined))
        except _ENDS:
            raise
        except JobError:
            # A service may have deleted a file that was about to be read.
            self._table.reload()
            return list(check(Examined(self._table, self._clients)))
