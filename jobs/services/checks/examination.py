"""An examination: runs checks on one table, and repeats those that find something. Writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from jobs.errors import CancelledError, JobError, LeaseLostError, TimedOutError
from jobs.kinds.results import CheckNotMade, DamageFound, Examination
from jobs.problems.tables import NO_META_FIELDS, TYPES_NOT_READABLE
from jobs.services.checks.finding import Examined, Finding, confirmed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.hudi.table import HudiTable
    from jobs.job_context import JobContext

Check = Callable[[Examined], Iterator[Finding]]

_ENDS = (CancelledError, LeaseLostError, TimedOutError)


def examine(table: HudiTable, checks: Mapping[str, Check], context: JobContext) -> Examination:
    """Runs these checks (functions by name). Writers may be active meanwhile."""
    return concluded(of_table(table, checks, context))


def of_table(table: HudiTable, checks: Mapping[str, Check], context: JobContext) -> Examination:
    """Like `examine`, but without a finding about the checks that could not be made."""
    findings: list[DamageFound] = []
    examination = _Examination(table, context)
    first = examination.run(checks, "checking")
    doubtful = {name: checks[name] for name, found in first.items() if found}
    for name, found in examination.run(doubtful, "checking again").items():
        findings += [each.result(name) for each in confirmed(first[name], found)]
    return _made(checks, findings, examination.failed)


def of_counted(examined: Examined, checks: Mapping[str, Check]) -> Examination:
    """Returns the result of checks that need no second look, because all of them judge the same count of the rows."""
    findings: list[DamageFound] = []
    failed: dict[str, JobError] = {}
    for name, check in checks.items():
        try:
            findings += [each.result(name) for each in check(examined)]
        except _ENDS:
            raise
        except JobError as error:
            failed[name] = error
    return _made(checks, findings, failed)


def not_made(checks: Iterable[str], error: JobError) -> Examination:
    return _made(checks, [], dict.fromkeys(checks, error))


def joined(one: Examination, other: Examination) -> Examination:
    return Examination(
        findings=(*one.findings, *other.findings),
        checked=(*one.checked, *other.checked),
        unchecked=(*one.unchecked, *other.unchecked),
    )


def _made(checks: Iterable[str], findings: Iterable[DamageFound], failed: Mapping[str, JobError]) -> Examination:
    """Returns each check as made or not made: an incident of a check that is neither would never close."""
    return Examination(
        findings=tuple(findings),
        checked=tuple(name for name in checks if name not in failed),
        unchecked=tuple(CheckNotMade(check=name, reason=error.problem()) for name, error in failed.items()),
    )


def concluded(examination: Examination) -> Examination:
    """Returns the examination with a finding of the checks that have failed, because an incident comes from a finding,
    and nothing else shows that a damage may have been missed. A table without meta fields, or with types that Spark
    does not know, has not failed: a check that needs them can never be made."""
    impossible = {NO_META_FIELDS.type, TYPES_NOT_READABLE.type}
    unchecked = [each for each in examination.unchecked if each.reason.type not in impossible]
    if not unchecked:
        return examination
    finding = Finding(
        "checks-not-made",
        "Checks of the table could not be made",
        {each.check: f"{each.check} ({each.reason.title}: {each.reason.detail})" for each in unchecked},
        "A damage that only these checks find stays unseen.",
        "`unchecked` in the job's result has the reason of each check, and what to do. If another finding names damaged"
        " or missing files, deal with that first. Then run the job again.",
    )
    # The last check is one that a daily audit may leave out. The finding names it, so that the incident stays until
    # this check is made again.
    return examination.having(findings=(*examination.findings, finding.result(unchecked[-1].check)))


class _Examination:
    """Runs checks on one table. `failed` are the checks that could not be made, with the reason, so that the error of
    one check does not hide the findings of others."""

    def __init__(self, table: HudiTable, context: JobContext) -> None:
        self.failed: dict[str, JobError] = {}
        self._table = table
        self._context = context

    def run(self, checks: Mapping[str, Check], step: str) -> dict[str, list[Finding]]:
        """Returns the findings of each check. All checks of one call share what they have read of the table."""
        found: dict[str, list[Finding]] = {}
        # A writer may be in the middle of a change. So a doubtful check is made again, with the table as it is then.
        with ExitStack() as opened, self._table.unchanged():
            examined = Examined(self._table, opened, self._context)
            for number, (name, check) in enumerate(checks.items(), 1):
                self._context.step(f"{step} {name} ({number} of {len(checks)})")
                try:
                    found[name] = self._made(check, examined, opened)
                except _ENDS:
                    raise
                except JobError as error:
                    self.failed[name] = error
        return found

    def _made(self, check: Check, examined: Examined, opened: ExitStack) -> list[Finding]:
        try:
            return list(check(examined))
        except _ENDS:
            raise
        except JobError:
            # A table service may have deleted a file before the check could read it.
            examined.stop_reading()
            self._table.reload()
            return list(check(Examined(self._table, opened, self._context)))
