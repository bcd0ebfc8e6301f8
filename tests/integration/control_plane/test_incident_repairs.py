"""For incidents the service starts repairs, which other jobs wait for, and it watches for files of fenced writers."""

from __future__ import annotations

import os

import pytest

from jobs.contract import JobKind
from jobs.format.markers import KEPT
from service.model.job_errors import IncidentOpenError
from service.queue.job import JobState
from service.scheduling.decision import Verdict
from tests.integration.control_plane.stories import (
    CLEARED,
    LATE,
    NEW_A,
    OLD,
    OPEN,
    SUSPECTED,
    Story,
    Upkeep,
)
from tests.integration.control_plane.watching import A
from tests.support.small_table import base_file

pytestmark = pytest.mark.mostly_sqlite

HOUR = 3600.0


def test_the_policy_starts_a_repair_and_holds_cleaning_back(story: Story, upkeep: Upkeep) -> None:
    story.commit({A: 1}, in_base=True)
    story.replace((A,), (NEW_A,))
    # Until then the files of the replaced file group are retained.
    for number in range(10):
        story.commit({NEW_A: number + 1}, in_base=True)
    story.poll()
    [cleaning] = upkeep.plan()
    assert cleaning.kind is JobKind.CLEANING
    stale = story.commit({A: 7})
    story.poll()
    # The queued cleaning must no longer start.
    withdrawn = upkeep.job(cleaning.id)
    assert (withdrawn.state, withdrawn.error and withdrawn.error.type) == (JobState.CANCELLED, "withdrawn")
    [repair] = upkeep.plan()
    assert (repair.kind, repair.params) == (
        JobKind.REPAIR,
        {"instants": [stale], "wait_seconds": 300, "hand_over_seconds": 3600},
    )
    upkeep.run(repair, repaired=[], cleared=[])
    story.commit({NEW_A: 1})
    story.poll()
    assert [job.kind for job in upkeep.plan()] == [JobKind.COMPACTION]
    assert upkeep.verdict(JobKind.CLEANING) == (Verdict.WAIT, "incident-open")
    assert upkeep.verdict(JobKind.REPAIR) == (Verdict.SKIP, "just-repaired")


def test_a_requested_cleaning_is_refused_until_the_repair(story: Story, upkeep: Upkeep) -> None:
    story.replace((A,), (NEW_A,))
    stale = story.commit({A: 7})
    story.poll()
    for kind in (JobKind.CLEANING, JobKind.CLUSTERING, JobKind.BUCKET_EXPANSION):
        with pytest.raises(IncidentOpenError, match=stale) as refused:
            upkeep.ask(kind)
        assert refused.value.extensions == {"incident_ids": [each.id for each in story.incidents]}
        assert upkeep.ask(kind, dry_run=True).dry_run
    assert upkeep.ask(JobKind.COMPACTION).state is JobState.QUEUED


def test_a_suspicion_that_a_repair_refutes_is_closed_without_an_event(story: Story, upkeep: Upkeep) -> None:
    story.expand()
    late = story.commit({NEW_A: 3})
    story.poll()
    [repair] = upkeep.plan()
    assert repair.params["instants"] == [late]
    upkeep.run(repair, repaired=[], cleared=[late])
    assert story.found == [(OLD, CLEARED, late)]
    assert story.incidents[0].because == f"repair {repair.id} found all its rows in the right place"
    assert story.published == []
    story.poll()
    upkeep.plan()
    assert upkeep.verdict(JobKind.REPAIR) == (Verdict.SKIP, "nothing-astray")


def test_only_a_repair_that_succeeded_clears_anything(story: Story, upkeep: Upkeep) -> None:
    story.expand()
    late = story.commit({NEW_A: 3})
    story.poll()
    audit = upkeep.ask(JobKind.AUDIT)
    upkeep.run(audit, cleared=[late])
    assert story.found == [(OLD, SUSPECTED, late)]


# Late files of fenced writers


def test_a_fenced_write_is_an_incident_until_its_files_are_gone_for_sure(story: Story, upkeep: Upkeep) -> None:
    table, fenced = story.table, story.instant()
    job = upkeep.ask(JobKind.BUCKET_EXPANSION)
    upkeep.run(job, fenced=[fenced])
    assert story.found == [(LATE, OPEN, fenced)]
    assert story.incidents[0].details == {"job_id": job.id, "job_kind": "bucket_expansion"}
    assert story.published == ["incident_opened", "unhealthy"]
    # Only this cleaning does not wait for its time.
    [cleaning] = upkeep.plan()
    assert cleaning.kind is JobKind.CLEANING
    upkeep.run(cleaning)

    markers = table.base / ".hoodie/.temp" / fenced / "p"
    markers.mkdir(parents=True)
    table.file("p", base_file(NEW_A, fenced), 10)
    heartbeats = table.base / ".hoodie/.heartbeat"
    heartbeats.mkdir(exist_ok=True)
    (heartbeats / fenced).touch()
    now = story.watched.clock().timestamp() + HOUR
    os.utime(heartbeats / fenced, (now, now))
    story.watched.poll(HOUR)
    assert story.found == [(LATE, OPEN, fenced)]
    story.watched.poll(HOUR)  # The heartbeat is old now, and the markers exist.
    assert story.found == [(LATE, OPEN, fenced)]
    markers.rmdir()
    # Markers that the job has kept say nothing about the writer.
    (markers.parent / KEPT).write_text(f"p/{base_file(NEW_A, fenced)}.marker.CREATE")
    story.poll()
    assert story.found == [(LATE, OPEN, fenced)]
    (table.base / "p" / base_file(NEW_A, fenced)).unlink()
    story.poll()
    assert story.found == [(LATE, CLEARED, fenced)]
    assert story.published == ["incident_opened", "unhealthy", "incident_closed", "recovered"]


def test_a_writer_is_not_taken_for_dead_because_it_is_silent_for_a_moment(story: Story, upkeep: Upkeep) -> None:
    """The rollback has removed the heartbeat, but a living writer sends the next one within a minute."""
    upkeep.run(upkeep.ask(JobKind.BUCKET_EXPANSION), fenced=[fenced := story.instant()])
    story.watched.poll(60)
    assert story.found == [(LATE, OPEN, fenced)]
    story.watched.poll(300)
    assert story.found == [(LATE, CLEARED, fenced)]


def test_late_files_hold_nothing_back(story: Story, upkeep: Upkeep) -> None:
    upkeep.run(upkeep.ask(JobKind.BUCKET_EXPANSION), fenced=[story.instant()])
    assert upkeep.ask(JobKind.BUCKET_EXPANSION).state is JobState.QUEUED
