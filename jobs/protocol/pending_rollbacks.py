"""Rollbacks that stay pending, and that nobody works on any more. Hudi's rollbacks have no heartbeat (1.2.0)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from jobs.contract import Problem
from jobs.format.instants import wall_clock
from jobs.hudi.client import WriteClient
from jobs.hudi.records import Instant
from jobs.hudi.table import HudiTable
from jobs.problems.undoing import ROLLBACK_PENDING

# A rollback deletes the files of one write, which takes minutes at most.
ROLLED_BACK_BY = timedelta(hours=1)
# If the instant had completed, the rollback first makes it pending again, right after the plan of the rollback is on
# the timeline (`BaseRollbackActionExecutor.executeRollback` of both table types). Until then nothing has changed.
BEGUN_BY = timedelta(minutes=2)


def unfinished(table: HudiTable, client: WriteClient) -> dict[str, str]:
    """Returns the rollbacks that nobody works on, each with the instant that it rolls back. These have been pending for
    `ROLLED_BACK_BY`, or for `BEGUN_BY` with an instant that is still completed.

    Hudi leaves the second kind if a client that cleans eagerly, such as `rollback_to_instant` without options, has to
    roll back a commit that is older than an instant in flight: the client writes its plan, and only then refuses
    (`validateRollbackCommitSequence`).
    """
    if all(item.action != "rollback" for item in table.pending()):
        return {}
    pending, now = client.pending_rollbacks(), table.now()

    def is_left(rollback: str, instant: str) -> bool:
        if _is_before(rollback, now - ROLLED_BACK_BY):
            return True
        return table.state_of(instant) == "COMPLETED" and _is_before(rollback, now - BEGUN_BY)

    return {each: pending[each] for each in sorted(pending) if is_left(each, pending[each])}


def old(table: HudiTable, rollbacks: Iterable[str]) -> list[str]:
    """Returns which of these rollbacks have been pending for `ROLLED_BACK_BY`."""
    latest = table.now() - ROLLED_BACK_BY
    return sorted(rollback for rollback in rollbacks if _is_before(rollback, latest))


def refusals(table: HudiTable, client: WriteClient, in_flight: Iterable[Instant]) -> list[Problem]:
    """Returns the refusal of a job that would wait for one of these instants in vain. Writers may execute the plan with
    their next commit (`rollbackFailedWrites`), so the job must not commit before that."""
    if all(item.action != "rollback" for item in in_flight):
        return []
    found = unfinished(table, client)
    return [ROLLBACK_PENDING.because(", ".join(f"{each} of {found[each]}" for each in found))] if found else []


def _is_before(instant: str, moment: datetime) -> bool:
    """Returns False also for a name that is no instant."""
    with suppress(ValueError):
        return wall_clock(instant) < moment
    return False
