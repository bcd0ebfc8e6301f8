"""A rollback that has been pending for more than an hour is one that nobody finishes."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from jobs.contract import JobKind
from jobs.format.instants import instant_of
from jobs.services.checks import remains
from jobs.services.checks.finding import Finding

NOW = datetime(2026, 1, 2, 12)


def found(*minutes: int, action: str = "rollback") -> list[Finding]:
    """Returns what is found of rollbacks that have been pending for these minutes."""
    pending = {instant_of(NOW - timedelta(minutes=age)): f"2026010100000{age:04d}" for age in minutes}
    instants = [SimpleNamespace(action=action, requested=instant) for instant in pending]
    table = SimpleNamespace(pending=lambda: instants, now=lambda: NOW)
    client = SimpleNamespace(pending_rollbacks=lambda: pending, empty_rollbacks=frozenset)
    return list(remains.rollbacks(cast("Any", SimpleNamespace(table=table, client=client))))


def test_a_rollback_that_may_still_run_is_left_out() -> None:
    assert found() == found(0, 59) == []
    (finding,) = found(59, 61)
    assert finding.items == {instant_of(NOW - timedelta(minutes=61)): "20260102105900000 of 20260101000000061"}


def test_the_cure_finishes_the_earliest_of_several() -> None:
    (finding,) = found(300, 70)
    assert len(finding.items) == 2
    assert finding.cure
    assert (finding.cure.kind, finding.cure.params) == (JobKind.ROLLBACK, {"instant": "20260101000000070"})


def test_without_pending_rollbacks_hudi_is_not_asked_for_their_plans() -> None:
    assert found(300, action="commit") == []
