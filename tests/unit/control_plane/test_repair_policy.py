"""Tests when the policy itself starts repairs of stale rows, and how the incidents affect cleaning."""

from __future__ import annotations

import pytest

from jobs.contract import JobKind
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.policies.settings import CleaningSettings, Mode, RepairSettings
from service.scheduling import cleaning
from service.scheduling.decision import Run, Skip, Suggest
from service.scheduling.repair import decide
from service.scheduling.trigger_context import TriggerContext
from tests.unit.control_plane.snapshots import NOW, a_snapshot, ago, an_incident

STALE, OLD, LATE = IncidentKind.STALE_WRITE, IncidentKind.OLD_NUMBER, IncidentKind.LATE_FILES
SUSPECTED, REPAIRED, CLEARED = IncidentState.SUSPECTED, IncidentState.REPAIRED, IncidentState.CLEARED
NO_OCCASION = TriggerContext(NOW)
BOTH = [an_incident(OLD, SUSPECTED, instant="002"), an_incident(STALE, instant="001")]


def test_open_and_suspected_incidents_are_repaired_at_once() -> None:
    because = "1 commit wrote to file groups that had been replaced and 1 commit may have used an old number of buckets"
    params = {"instants": ["001", "002"], "wait_seconds": 300, "hand_over_seconds": 3600}
    assert decide(RepairSettings(), BOTH, NO_OCCASION) == Run(JobKind.REPAIR, params, because)


@pytest.mark.parametrize(
    "incidents",
    [[], [an_incident(state=REPAIRED)], [an_incident(OLD, CLEARED)], [an_incident(LATE)]],
    ids=["none", "repaired", "cleared", "late files"],
)
def test_without_such_incidents_there_is_nothing_to_repair(incidents: list[Incident]) -> None:
    answer = decide(RepairSettings(), incidents, NO_OCCASION)
    assert isinstance(answer, Skip)
    assert (answer.code, answer.warning) == ("nothing-astray", None)


def test_the_owner_may_have_repairs_suggested_or_switched_off() -> None:
    suggested = decide(RepairSettings(Mode.SUGGEST), BOTH, NO_OCCASION)
    assert isinstance(suggested, Suggest)
    assert suggested.params["instants"] == ["001", "002"]
    off = decide(RepairSettings(Mode.OFF), BOTH, NO_OCCASION)
    assert isinstance(off, Skip)
    assert off.code == "off"
    assert "001, 002" in (off.warning or "")


def test_incidents_that_the_last_repair_left_are_tried_again_after_an_hour_and_new_ones_at_once() -> None:
    tried = ["001", "002"]
    recently = TriggerContext(NOW, last_run_at=ago(minutes=10))
    left = decide(RepairSettings(), BOTH, recently, tried)
    assert isinstance(left, Skip)
    assert (left.code, left.until) == ("just-repaired", ago(minutes=-50))
    assert isinstance(decide(RepairSettings(), [*BOTH, an_incident(instant="003")], recently, tried), Run)
    assert isinstance(decide(RepairSettings(), BOTH, TriggerContext(NOW, last_run_at=ago(hours=1)), tried), Run)


def test_only_a_person_may_request_the_repair_of_unproved_incidents() -> None:
    doubtful = an_incident(STALE, instant="003", details={"doubt": "overwritten"})
    # Without the doubtful incident this suspicion alone would lead to a repair.
    same = an_incident(OLD, SUSPECTED, instant="003")
    proposed = decide(RepairSettings(), [*BOTH, doubtful, same], NO_OCCASION)
    assert isinstance(proposed, Run)
    assert proposed.params["instants"] == ["001", "002"]
    suggested = decide(RepairSettings(), [doubtful], NO_OCCASION)
    assert isinstance(suggested, Suggest)
    assert suggested.params["instants"] == ["003"]
    assert "removed on purpose" in suggested.because


def test_late_files_want_a_cleaning_before_it_is_time_for_one() -> None:
    """There are no old file versions, and no commits since the last cleaning."""
    idle = TriggerContext(NOW, last_run_at=ago(seconds=5))
    assert isinstance(cleaning.decide(CleaningSettings(), a_snapshot(), idle), Skip)
    wanted = cleaning.decide(CleaningSettings(), a_snapshot(), idle, [an_incident(LATE)])
    assert wanted == Run(
        JobKind.CLEANING,
        {"policy": "KEEP_LATEST_COMMITS", "retain": 10},
        "1 fenced write may have left late files, which must be removed before the timeline is archived",
    )
    assert isinstance(cleaning.decide(CleaningSettings(), a_snapshot(), idle, [an_incident(LATE, CLEARED)]), Skip)


def test_a_cleaning_that_is_switched_off_stays_so_but_says_what_that_means() -> None:
    off = cleaning.decide(CleaningSettings(enabled=False), a_snapshot(), NO_OCCASION, [an_incident(LATE)])
    assert isinstance(off, Skip)
    assert off.warning == "Cleaning is off, but 1 fenced write may have left late files."
