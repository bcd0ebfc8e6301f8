"""Tests the decision table of compaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.contract import JobKind
from service.lake.snapshot import PartitionState, TableSnapshot
from service.lake.table import TableType
from service.policies.settings import CompactionSettings, Trigger
from service.scheduling.compaction import decide
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import MIB, NOW, a_snapshot, ago, plan, since

LOGS = PartitionState("dt=1", base_bytes=100 * MIB, log_bytes=30 * MIB)
PLAIN = TriggerContext(NOW)
COMMITS, SECONDS, BOTH, EITHER = Trigger.COMMITS, Trigger.SECONDS, Trigger.BOTH, Trigger.EITHER


def settings(trigger: Trigger = COMMITS, commits: int = 5, seconds: int = 7200, **more: object) -> CompactionSettings:
    return CompactionSettings(trigger=trigger, commits=commits, seconds=seconds, **more)


RUNS = [
    ("enough commits", settings(), a_snapshot(LOGS, since_compaction=since(5, hours=1)), PLAIN,
     "5 commits since the last compaction, threshold 5"),
    ("enough commits, first time", settings(), a_snapshot(LOGS, since_compaction=since(7)), PLAIN,
     "7 commits and no compaction yet, threshold 5"),
    ("long enough ago", settings(SECONDS), a_snapshot(LOGS, since_compaction=since(1, hours=2)), PLAIN,
     "2 h since the last compaction, threshold 2 h"),
    ("long enough since the first commit", settings(SECONDS), a_snapshot(LOGS, since_compaction=since(1)), PLAIN,
     "10 days since the first commit, threshold 2 h"),
    ("both", settings(BOTH), a_snapshot(LOGS, since_compaction=since(5, hours=2)), PLAIN,
     "5 commits since the last compaction, threshold 5; 2 h since the last compaction, threshold 2 h"),
    ("either by commits", settings(EITHER), a_snapshot(LOGS, since_compaction=since(5, hours=0)), PLAIN,
     "5 commits since the last compaction, threshold 5"),
    ("either by time", settings(EITHER), a_snapshot(LOGS, since_compaction=since(0, hours=3)), PLAIN,
     "3 h since the last compaction, threshold 2 h"),
    ("ratio", settings(log_ratio=0.3), a_snapshot(LOGS, since_compaction=since(1)), PLAIN,
     "30.0 MiB of logs are 0.30 of the base files' 100.0 MiB, threshold 0.3"),
    ("ratio without base files", settings(log_ratio=9.0), a_snapshot(PartitionState("", log_bytes=2048)), PLAIN,
     "there are 2.0 KiB of logs and no base files, threshold 9"),
    ("calendar", settings(), a_snapshot(LOGS), TriggerContext(NOW, Calendar(is_due=True)),
     "its scheduled time has come"),
    ("a plan of a writer", settings(), a_snapshot(LOGS, pending=(plan(),)), PLAIN,
     "1 compaction plan left on the timeline to be executed (001)"),
    ("a plan, whatever the calendar says", settings(), a_snapshot(LOGS, pending=(plan(), plan(at="002"))),
     TriggerContext(NOW, Calendar(is_due=False)), "2 compaction plans left on the timeline to be executed (001, 002)"),
    ("a plan that our own dead job began", settings(), a_snapshot(LOGS, pending=(plan(state="inflight"),)),
     TriggerContext(NOW, own_instants=frozenset({"001"})),
     "1 compaction plan left on the timeline to be executed (001)"),
]  # fmt: skip


def test_a_withheld_plan_starts_no_job_by_itself() -> None:
    context = TriggerContext(NOW, withheld=frozenset({"001"}))
    quiet = a_snapshot(LOGS, since_compaction=since(1, hours=1), pending=(plan(),))
    found = decide(settings(), quiet, context)
    assert isinstance(found, Skip)
    assert found.code == "not-yet"
    assert found.warning
    assert found.warning.startswith("1 compaction plan withheld, since it would harm the table (001).")

    due = decide(settings(), replace(quiet, since_compaction=since(5, hours=1)), context)
    assert isinstance(due, Run)
    assert due.warning == found.warning
    other = decide(settings(), replace(quiet, pending=(plan(), plan(at="002"))), context)
    assert isinstance(other, Run)
    assert other.because == "1 compaction plan left on the timeline to be executed (002)"


@pytest.mark.parametrize(("given", "snapshot", "context", "because"), [pytest.param(*c, id=i) for i, *c in RUNS])
def test_the_policy_starts_a_compaction(
    given: CompactionSettings, snapshot: TableSnapshot, context: TriggerContext, because: str
) -> None:
    assert decide(given, snapshot, context) == Run(JobKind.COMPACTION, {}, because)


NEXT = NOW + timedelta(hours=5)
TAKE_OVER = (
    "; if it is dead, `groundskeeper jobs run compaction tbl_1 --param 'plans=[\"001\"]' --param take_over=true` takes "
    "the plan over"
)
SKIPS = [
    ("copy on write", settings(), a_snapshot(LOGS, table_type=TableType.COPY_ON_WRITE), PLAIN,
     Skip("not-merge-on-read", "only merge-on-read tables have log files to compact")),
    ("off", settings(enabled=False), a_snapshot(LOGS, since_compaction=since(9)), PLAIN,
     Skip("off", "compaction is switched off")),
    ("off, though there is a plan", settings(enabled=False), a_snapshot(LOGS, pending=(plan(),)), PLAIN,
     Skip("off", "compaction is switched off")),
    ("no logs", settings(), a_snapshot(since_compaction=since(9)), PLAIN,
     Skip("no-logs", "there are no log files to compact")),
    ("too few commits", settings(), a_snapshot(LOGS, since_compaction=since(4, hours=9)), PLAIN,
     Skip("not-yet", "4 commits since the last compaction, threshold 5")),
    ("too early", settings(SECONDS), a_snapshot(LOGS, since_compaction=since(99, hours=1.5)), PLAIN,
     Skip("not-yet", "90 min since the last compaction, threshold 2 h", NOW + timedelta(minutes=30))),
    ("both, one missing", settings(BOTH), a_snapshot(LOGS, since_compaction=since(5, hours=1)), PLAIN,
     Skip("not-yet", "5 commits since the last compaction, threshold 5; 1 h since the last compaction, "
          "threshold 2 h", NOW + timedelta(hours=1))),
    ("either, none there", settings(EITHER), a_snapshot(LOGS, since_compaction=since(1, hours=1)), PLAIN,
     Skip("not-yet", "1 commit since the last compaction, threshold 5; 1 h since the last compaction, "
          "threshold 2 h", NOW + timedelta(hours=1))),
    ("ratio too low", settings(log_ratio=0.31), a_snapshot(LOGS, since_compaction=since(1)), PLAIN,
     Skip("not-yet", "1 commit and no compaction yet, threshold 5; 30.0 MiB of logs are 0.30 of the base files' "
          "100.0 MiB, threshold 0.31")),
    ("calendar says later, thresholds do not count", settings(), a_snapshot(LOGS, since_compaction=since(99)),
     TriggerContext(NOW, Calendar(is_due=False, next_at=NEXT)),
     Skip("not-yet", "its next scheduled time is 2026-01-01 17:00 UTC", NEXT)),
    ("calendar, but no logs", settings(), a_snapshot(), TriggerContext(NOW, Calendar(is_due=True)),
     Skip("no-logs", "there are no log files to compact")),
    ("nothing new since a job that found nothing", settings(), a_snapshot(LOGS, since_compaction=since(9)),
     TriggerContext(NOW, last_run_at=ago(seconds=30)),
     Skip("nothing-new", "nothing was committed since the last compaction job")),
    ("somebody executes a plan", settings(), a_snapshot(LOGS, pending=(plan(state="inflight", hours=1),)), PLAIN,
     Skip("plan-running", "another process is executing 001 (compaction, inflight, 1 h old, probably made by a writer)"
          + TAKE_OVER, NOW + timedelta(hours=5))),
    ("probably Flink executes a plan", settings(), a_snapshot(LOGS, pending=(plan(state="inflight", hours=1),)),
     TriggerContext(NOW, has_flink=True),
     Skip("plan-running", "another process is executing 001 (compaction, inflight, 1 h old, probably made by a Flink "
          "job)" + TAKE_OVER, NOW + timedelta(hours=5))),
    ("one plan runs, another waits", settings(), a_snapshot(LOGS, pending=(plan(state="inflight", hours=None), plan())),
     PLAIN, Skip("plan-running", "another process is executing 001 (compaction, inflight, probably made by a writer)"
                 + TAKE_OVER)),
    ("a write in flight is no plan", settings(),
     a_snapshot(LOGS, pending=(plan("deltacommit", "inflight"),)), PLAIN,
     Skip("not-yet", "0 commits and no compaction yet, threshold 5")),
]  # fmt: skip


@pytest.mark.parametrize(("given", "snapshot", "context", "skip"), [pytest.param(*c, id=i) for i, *c in SKIPS])
def test_the_policy_does_not_start_a_compaction(
    given: CompactionSettings, snapshot: TableSnapshot, context: TriggerContext, skip: Skip
) -> None:
    assert decide(given, snapshot, context) == skip


@pytest.mark.parametrize("state", ["requested", "inflight"])
def test_an_old_plan_is_taken_over_with_a_warning(state: str) -> None:
    answer = decide(settings(), a_snapshot(LOGS, pending=(plan(state=state, hours=7),)), PLAIN)
    assert isinstance(answer, Run)
    assert answer.warning == "1 compaction plan has been pending for up to 7 h (001)."


def test_an_old_plan_is_warned_of_even_if_compaction_is_off() -> None:
    many = tuple(plan(hours=50 + number, at=f"00{number}") for number in range(5))
    answer = decide(settings(enabled=False), a_snapshot(LOGS, pending=many), PLAIN)
    assert answer.warning == "5 compaction plans have been pending for up to 2 days (000, 001, 002 ...)."


def test_the_interval_also_begins_with_a_job_that_found_nothing_to_do() -> None:
    snapshot = a_snapshot(LOGS, since_compaction=since(1, hours=9))
    context = TriggerContext(NOW, last_run_at=ago(hours=1))
    answer = decide(settings(SECONDS), snapshot, context)
    assert isinstance(answer, Skip)
    assert answer.until == NOW + timedelta(hours=1)


def test_work_that_a_limit_has_left_is_compacted_at_once_with_the_present_limit() -> None:
    snapshot = a_snapshot(LOGS, since_compaction=since(0, hours=0))
    context = TriggerContext(NOW, last_run_at=ago(seconds=30), is_unfinished=True)
    because = "the last compaction has reached its limit and left work for the next one"
    assert decide(settings(limit_bytes=9), snapshot, context) == Run(JobKind.COMPACTION, {"limit_bytes": 9}, because)
    assert decide(settings(), snapshot, context) == Run(JobKind.COMPACTION, {}, because)
    by_calendar = TriggerContext(NOW, Calendar(is_due=False, next_at=NEXT), is_unfinished=True)
    assert isinstance(decide(settings(limit_bytes=9), snapshot, by_calendar), Run)
    assert decide(settings(limit_bytes=9), a_snapshot(), context) == Skip(
        "no-logs", "there are no log files to compact"
    )
