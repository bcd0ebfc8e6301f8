"""A diagnosis reports a rollback that nobody finishes: it has been pending for more than an hour, or for more than two
minutes while the commit to roll back is still completed."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

from jobs.contract import JobKind
from jobs.format.instants import instant_of
from jobs.hudi.client import WriteClient
from jobs.hudi.file_listing import ListedFile
from jobs.services.checks import remains
from jobs.services.checks.finding import Finding

NOW = datetime(2026, 1, 2, 12)


def found(
    *minutes: int, action: str = "rollback", empty: tuple[int, ...] = (), state: str | None = "INFLIGHT"
) -> list[Finding]:
    """Returns what is found of rollbacks that have been pending for these minutes, and of those with an empty plan."""
    without = frozenset(instant_of(NOW - timedelta(minutes=age)) for age in empty)
    pending = {instant_of(NOW - timedelta(minutes=age)): f"2026010100000{age:04d}" for age in minutes}
    instants = [SimpleNamespace(action=action, requested=instant) for instant in (*pending, *without)]
    instants.append(SimpleNamespace(action="compaction", requested="1"))
    table = SimpleNamespace(pending=lambda: instants, now=lambda: NOW, state_of=lambda _: state)
    client = SimpleNamespace(pending_rollbacks=lambda: pending, empty_rollbacks=lambda: without)
    return list(remains.rollbacks(cast("Any", SimpleNamespace(table=table, client=client))))


def test_a_rollback_that_may_still_run_is_left_out() -> None:
    assert found() == found(0, 59) == []
    (finding,) = found(59, 61)
    assert finding.items == {instant_of(NOW - timedelta(minutes=61)): "20260102105900000 of 20260101000000061"}


def test_a_rollback_whose_commit_is_still_completed_soon_is_one_that_has_failed() -> None:
    assert found(0, 1, state="COMPLETED") == found(59, state=None) == []
    (finding,) = found(0, 3, state="COMPLETED")
    assert list(finding.items) == [instant_of(NOW - timedelta(minutes=3))]


def test_the_cure_finishes_the_earliest_of_several() -> None:
    (finding,) = found(300, 70)
    assert len(finding.items) == 2
    assert finding.cure
    assert (finding.cure.kind, finding.cure.params) == (JobKind.ROLLBACK, {"instant": "20260101000000070"})


def test_without_pending_rollbacks_hudi_is_not_asked_for_their_plans() -> None:
    assert found(300, action="commit") == []


def test_an_empty_plan_is_found_when_nobody_can_be_writing_it_any_more() -> None:
    assert found(empty=(0, 59)) == []
    (finding,) = found(59, empty=(61, 300))
    earlier, later = (instant_of(NOW - timedelta(minutes=age)) for age in (300, 61))
    assert (finding.type, list(finding.items)) == ("rollback-plan-empty", [earlier, later])
    assert [each.type for each in found(61, empty=(61,))] == ["rollback-unfinished", "rollback-plan-empty"]


def test_only_plans_of_rollbacks_without_a_byte_are_empty() -> None:
    sizes = {"1.rollback.requested": 0, "2.rollback.requested": 9, "3.rollback.inflight": 0, "4.clean.requested": 0}
    files = {name: ListedFile(size, 0, is_folder=False) for name, size in sizes.items()}
    pending = [SimpleNamespace(action="rollback", requested=each) for each in ("1", "2")]
    pending.append(SimpleNamespace(action="clean", requested="4"))
    client = SimpleNamespace(_table=SimpleNamespace(pending=lambda: pending, timeline_files=lambda: files))
    assert WriteClient.empty_rollbacks(cast("Any", client)) == {"1"}
    del pending[0]
    assert WriteClient.empty_rollbacks(cast("Any", client)) == frozenset()
