"""Tests the decision table of the deletion of old file versions."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.contract import JobKind
from jobs.job_params import CleaningPolicy
from service.incidents.incident import IncidentKind
from service.lake.snapshot import PartitionState, TableSnapshot
from service.policies.settings import CleaningSettings, Trigger
from service.scheduling.cleaning import decide
from service.scheduling.decision import Run, Skip
from service.scheduling.first_freed import FirstFreed
from service.scheduling.rollback import Silent
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import MIB, NOW, a_snapshot, ago, an_incident, since

OLD = PartitionState("dt=1", freed_files=3, freed_bytes=30 * MIB)
TAIL = "; 3 files out of use, at most 30.0 MiB can be freed"
PLAIN = TriggerContext(NOW)
BY_HOURS = CleaningSettings(
    trigger=Trigger.SECONDS, seconds=3600, policy=CleaningPolicy.KEEP_LATEST_BY_HOURS, retain=24
)

RUNS = [
    ("enough commits", CleaningSettings(), a_snapshot(OLD, since_cleaning=since(10, hours=1)), PLAIN,
     {"policy": "KEEP_LATEST_COMMITS", "retain": 10}, "10 commits since the last cleaning, threshold 10"),
    ("time", CleaningSettings(trigger=Trigger.SECONDS, seconds=60), a_snapshot(OLD, since_cleaning=since(1, hours=1)),
     PLAIN, {"policy": "KEEP_LATEST_COMMITS", "retain": 10}, "1 h since the last cleaning, threshold 1 min"),
    ("calendar", CleaningSettings(policy=CleaningPolicy.KEEP_LATEST_FILE_VERSIONS, retain=2), a_snapshot(OLD),
     TriggerContext(NOW, Calendar(is_due=True)), {"policy": "KEEP_LATEST_FILE_VERSIONS", "retain": 2},
     "its scheduled time has come"),
    ("hours pass, though nobody writes", BY_HOURS, a_snapshot(OLD, since_cleaning=since(0, hours=5)),
     TriggerContext(NOW, last_run_at=ago(seconds=3600)), {"policy": "KEEP_LATEST_BY_HOURS", "retain": 24},
     "1 h since the last cleaning, threshold 1 h"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "snapshot", "context", "params", "because"), [pytest.param(*c, id=i) for i, *c in RUNS]
)
def test_the_policy_starts_a_cleaning(
    given: CleaningSettings,
    snapshot: TableSnapshot,
    context: TriggerContext,
    params: dict[str, object],
    because: str,
) -> None:
    assert decide(given, snapshot, context) == Run(JobKind.CLEANING, params, because + TAIL)


SKIPS = [
    ("off", CleaningSettings(enabled=False), a_snapshot(OLD, since_cleaning=since(99)), PLAIN,
     Skip("off", "cleaning is switched off")),
    ("nothing to free", CleaningSettings(), a_snapshot(PartitionState("dt=1"), since_cleaning=since(99)), PLAIN,
     Skip("nothing-to-free", "no file is out of use")),
    ("nothing to free, whatever the calendar says", CleaningSettings(), a_snapshot(),
     TriggerContext(NOW, Calendar(is_due=True)), Skip("nothing-to-free", "no file is out of use")),
    ("too few commits", CleaningSettings(), a_snapshot(OLD, since_cleaning=since(9)), PLAIN,
     Skip("not-yet", "9 commits and no cleaning yet, threshold 10")),
    ("the last job could free nothing, and nothing came since", CleaningSettings(),
     a_snapshot(OLD, since_cleaning=since(99)), TriggerContext(NOW, last_run_at=ago(seconds=30)),
     Skip("nothing-new", "nothing was committed since the last cleaning job")),
    ("hours have not passed", BY_HOURS, a_snapshot(OLD, since_cleaning=since(0, hours=5)),
     TriggerContext(NOW, last_run_at=ago(seconds=600)),
     Skip("not-yet", "10 min since the last cleaning, threshold 1 h", NOW + timedelta(minutes=50))),
]  # fmt: skip


@pytest.mark.parametrize(("given", "snapshot", "context", "skip"), [pytest.param(*c, id=i) for i, *c in SKIPS])
def test_the_policy_does_not_start_a_cleaning(
    given: CleaningSettings, snapshot: TableSnapshot, context: TriggerContext, skip: Skip
) -> None:
    assert decide(given, snapshot, context) == skip


def test_the_policy_waits_while_all_old_versions_are_kept() -> None:
    settings, snapshot = CleaningSettings(), a_snapshot(OLD, since_cleaning=since(12))
    found = decide(settings, snapshot, PLAIN, first=FirstFreed(9))
    because = "12 commits and no cleaning yet, threshold 10; but all 3 files out of use are kept: the first went"
    assert found == Skip("all-kept", f"{because} out of use 9 commits ago, and the policy retains 10")
    assert isinstance(decide(settings, snapshot, PLAIN, first=FirstFreed(10)), Run)
    assert isinstance(decide(settings, snapshot, PLAIN, first=None), Run)


def test_the_policy_waits_for_no_commits_if_only_a_cleaning_rolls_back_a_dead_writer() -> None:
    snapshot = a_snapshot(OLD, since_cleaning=since(12))
    found = decide(CleaningSettings(), snapshot, PLAIN, first=FirstFreed(0), silent=Silent([("1", ago(hours=1))]))
    assert isinstance(found, Run)
    assert found.because.endswith("can be freed; 1 write of dead writers will be rolled back")
    waiting = decide(CleaningSettings(), snapshot, PLAIN, first=FirstFreed(0), silent=Silent((), ago(seconds=-60)))
    assert isinstance(waiting, Skip)
    assert (waiting.code, waiting.until) == ("all-kept", ago(seconds=-60))


@pytest.mark.parametrize(
    "settings", [BY_HOURS, CleaningSettings(policy=CleaningPolicy.KEEP_LATEST_FILE_VERSIONS, retain=2)]
)
def test_the_number_of_commits_matters_only_if_commits_are_retained(settings: CleaningSettings) -> None:
    snapshot = a_snapshot(OLD, since_cleaning=since(12, hours=5))
    assert isinstance(decide(settings, snapshot, PLAIN, first=FirstFreed(0)), Run)


def test_the_policy_waits_while_all_old_versions_are_younger_than_the_hours_retained() -> None:
    snapshot = a_snapshot(OLD, since_cleaning=since(12, hours=5))
    found = decide(BY_HOURS, snapshot, PLAIN, first=FirstFreed(at=ago(hours=23)))
    assert isinstance(found, Skip)
    assert (found.code, found.until) == ("all-kept", ago(hours=-1))
    assert found.because.endswith("kept: the first went out of use 23 h ago, and the policy retains 24 hours")
    assert isinstance(decide(BY_HOURS, snapshot, PLAIN, first=FirstFreed(at=ago(hours=24))), Run)


@pytest.mark.parametrize(
    "settings", [CleaningSettings(), BY_HOURS, CleaningSettings(policy=CleaningPolicy.KEEP_LATEST_FILE_VERSIONS)]
)
def test_the_policy_waits_while_somebody_needs_all_old_versions(settings: CleaningSettings) -> None:
    snapshot = a_snapshot(OLD, since_cleaning=since(12, hours=50))
    found = decide(settings, snapshot, PLAIN, first=FirstFreed(99, ago(hours=99), "consumer 'copy' needs them"))
    assert isinstance(found, Skip)
    assert found.code == "all-kept"
    assert found.because.endswith("but all 3 files out of use are kept: consumer 'copy' needs them")


def test_late_files_do_not_wait_for_old_versions() -> None:
    found = decide(
        CleaningSettings(), a_snapshot(OLD), PLAIN, [an_incident(IncidentKind.LATE_FILES)], first=FirstFreed(0)
    )
    assert isinstance(found, Run)
