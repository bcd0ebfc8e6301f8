"""The service finds stale commits by their file ids, publishes events, stores incidents and closes them."""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import JobKind, Outcome, Result
from jobs.format.markers import KEPT
from jobs.format.stale_writes import KNOWN_KEY, REPAIRED_KEY, REPAIRS_KEY, Doubt
from jobs.storage.permissions import Permissions
from service.access.secret_cipher import SecretCipher
from service.catalog import commit_store
from service.db import schema
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.events.database import Database
from service.events.event import EventType
from service.incidents import store
from service.incidents.incident import Incident, IncidentKind, IncidentState
from service.model.backoff import BackOff
from service.model.job_errors import IncidentOpenError
from service.queue import job_store, leases, submission
from service.queue.job import Job, JobState
from service.queue.leases import LeaseConfig
from service.queue.submission import JobRequest
from service.scheduling import decision_store, scheduler
from service.scheduling.decision import Verdict
from tests.integration.control_plane.watching import A, B, Watched
from tests.support.small_table import SmallTable, base_file, bucket_id, instant_at, log_file

if TYPE_CHECKING:
    from pathlib import Path

STALE, OLD, LATE = IncidentKind.STALE_WRITE, IncidentKind.OLD_NUMBER, IncidentKind.LATE_FILES
OPEN, SUSPECTED = IncidentState.OPEN, IncidentState.SUSPECTED
REPAIRED, CLEARED = IncidentState.REPAIRED, IncidentState.CLEARED
NEW_A, NEW_B = bucket_id(0, tail=2), bucket_id(1, tail=2)
pytestmark = pytest.mark.mostly_sqlite

HOUR = 3600.0


class Story:
    """A table of version 6 or 9 with two buckets, whose instants are a second apart."""

    def __init__(self, watched: Watched, base: Path, version: int = 9) -> None:
        self.watched = watched
        self.table = SmallTable(base / "t", version=version)
        self.at = watched.clock()
        self.commit({A: 10, B: 10}, in_base=True)
        self.id = ""

    def instant(self, *, hours: float = 0) -> str:
        self.at += timedelta(seconds=1, hours=hours)
        return instant_at(self.at)

    def commit(self, buckets: dict[str, int], *, hours: float = 0, in_base: bool = False, **more: Any) -> str:
        """Commits logs or base files with this total number of rows."""
        instant = self.instant(hours=hours)
        write = base_file if in_base else log_file
        files = {more.pop("partition", "p"): {write(file_id, instant): 10 for file_id in buckets}}
        self._complete(instant, files, rows=max(buckets.values(), default=0), **more)
        return instant

    def _complete(self, instant: str, files: dict[str, dict[str, int]], **more: Any) -> None:
        # The time is long before the clock of the tests, because times order the timeline before version 8.
        modified = self.at.timestamp()
        self.at += timedelta(seconds=1)
        self.table.commit(instant, files, completed=instant_at(self.at), modified=modified, **more)

    def replace(self, old: tuple[str, ...], new: tuple[str, ...], operation: str = "CLUSTER", **more: Any) -> str:
        return self.commit(
            dict.fromkeys(new, 10),
            in_base=True,
            action="replacecommit",
            operation=operation,
            replaced={"p": list(old)},
            **more,
        )

    def expand(self, *, hours: float = 0) -> str:
        """Expands from two to four buckets."""
        new = tuple(bucket_id(number, tail=2) for number in range(4))
        instant = self.replace((A, B), new, "BUCKET_RESCALE", hours=hours)
        self.table.hashing_config("00000000000000", 2)
        self.table.hashing_config(instant, 4)
        return instant

    def contract(self) -> str:
        """Contracts from two buckets to one."""
        instant = self.replace((A, B), (NEW_A,), "BUCKET_RESCALE")
        self.table.hashing_config("00000000000000", 2)
        self.table.hashing_config(instant, 1)
        return instant

    def register(self) -> None:
        self.id = self.watched.register(self.table, buckets=2)
        self.poll()

    def poll(self) -> None:
        self.watched.poll()

    @property
    def incidents(self) -> list[Incident]:
        return self.watched.incidents(self.id)

    @property
    def found(self) -> list[tuple[IncidentKind, IncidentState, str]]:
        return [(each.kind, each.state, each.instant) for each in self.incidents]

    @property
    def published(self) -> list[str]:
        """Returns the types of the events about the table's health."""
        kinds = (EventType.TABLE_UNHEALTHY, EventType.TABLE_RECOVERED)
        kinds += (EventType.TABLE_INCIDENT_OPENED, EventType.TABLE_INCIDENT_CLOSED)
        return [event.type.removeprefix("table.") for event in self.watched.events() if event.type in kinds]


@pytest.fixture
def story(watched: Watched, tmp_path: Path) -> Story:
    return Story(watched, tmp_path)


@pytest.fixture(params=[9, 6], ids=["v9", "v6"])
def either(watched: Watched, tmp_path: Path, request: pytest.FixtureRequest) -> Story:
    return Story(watched, tmp_path, request.param)


def test_a_write_to_a_replaced_file_group_becomes_an_incident_with_an_event(either: Story) -> None:
    story = either
    story.register()
    replacing = story.replace((A,), (NEW_A,))
    story.poll()
    assert story.found == []
    stale = story.commit({A: 7, B: 7}, operation="UPSERT_PREPPED")
    story.poll()
    assert story.found == [(STALE, OPEN, stale)]
    [incident] = story.incidents
    assert incident.operation == "UPSERT_PREPPED"
    assert incident.details == {
        "rows": 7,
        "file_groups": 1,
        "partitions": 1,
        "groups": [{"partition": "p", "file_id": A, "replaced_by": replacing}],
        # Version 6 has no completion times in its file names, and the files might be copies.
        **({"doubt": "order"} if story.table.version < 8 else {}),
    }
    assert story.published == ["incident_opened", "unhealthy"]
    story.poll()
    story.commit({B: 1})
    story.poll()
    assert story.found == [(STALE, OPEN, stale)]


def test_it_does_not_matter_how_late_a_write_comes(story: Story) -> None:
    """The test covers a replacement that has been archived, and whose old files were cleaned."""
    story.register()
    replacing = story.replace((A,), (NEW_A,))
    story.poll()
    for path in (story.table.base / "p").glob(f"*{A}*"):
        path.unlink()
    for _ in range(5):
        story.commit({NEW_A: 3})
        story.poll()
    story.table.archive(replacing)
    story.table.clean(story.instant(), ("p",))
    story.poll()
    stale = story.commit({A: 7}, hours=24 * 40)
    story.poll()
    assert story.found == [(STALE, OPEN, stale)]


def test_several_stale_writes_are_found_at_once_after_the_service_was_down(either: Story) -> None:
    story = either
    story.register()
    story.commit({A: 5})
    story.replace((A,), (NEW_A,))
    first = story.commit({A: 7}, operation="DELETE_PREPPED")
    story.commit({NEW_A: 7})
    second = story.commit({A: 7, NEW_B: 1})
    story.poll()
    assert {*story.found} == {(STALE, OPEN, first), (STALE, OPEN, second)}
    assert Counter(story.published) == {"incident_opened": 2, "unhealthy": 1}


def test_stale_writes_from_before_the_registration_are_found(either: Story) -> None:
    story = either
    story.replace((A,), (NEW_A,))
    stale = story.commit({A: 7})
    story.register()
    assert story.found == [(STALE, OPEN, stale)]


def test_file_groups_that_an_earlier_version_of_the_service_stored_count(story: Story) -> None:
    """The earlier version stored only the ids of replaced file groups and the last hashing config."""
    story.register()
    story.expand()
    story.poll()
    with writing(story.watched.engine) as connection:
        [summary] = connection.execute(sa.select(schema.snapshots.c.summary)).scalars()
        del summary["hashing_config"]["earlier"]
        connection.execute(schema.snapshots.update().values(summary=summary))
        connection.execute(schema.partitions.update().values(replaced=[A, B]))
    stale, late = story.commit({A: 7}), story.commit({NEW_A: 30})
    story.poll()
    assert {*story.found} == {(STALE, OPEN, stale), (OLD, SUSPECTED, late)}
    [of_stale] = [each.details["groups"] for each in story.incidents if each.kind is STALE]
    assert of_stale == [{"partition": "p", "file_id": A, "replaced_by": ""}]


def test_table_services_bring_no_rows(story: Story) -> None:
    story.register()
    story.replace((A,), (NEW_A,))
    story.commit({A: 7}, action="commit", operation="COMPACT", in_base=True)
    story.commit({A: 7}, operation="LOG_COMPACT")
    story.replace((A, B), (NEW_B,))
    story.poll()
    assert story.found == []


def test_file_groups_are_in_use_again_after_their_replacement_was_rolled_back(story: Story) -> None:
    story.register()
    replacing = story.replace((A,), (NEW_A,))
    story.poll()
    story.table.restore(story.instant(), replacing)
    story.poll()
    story.commit({A: 7})
    story.poll()
    assert story.found == []


@pytest.mark.parametrize("is_seen_at_once", [True, False])
def test_a_replacement_that_was_rolled_back_before_its_commit_replaces_nothing(
    story: Story, is_seen_at_once: bool
) -> None:
    story.register()
    replacing = story.replace((A,), (NEW_A,))
    story.poll()
    story.table.rollback(story.instant(), replacing, ("p",))
    if not is_seen_at_once:
        story.poll()
    story.commit({A: 7})
    story.poll()
    assert story.found == []


def test_the_incident_of_a_stale_write_ends_when_the_write_is_rolled_back(story: Story) -> None:
    story.register()
    story.replace((A,), (NEW_A,))
    stale = story.commit({A: 7})
    story.poll()
    story.table.restore(story.instant(), stale, partitions=("p",))
    story.poll()
    assert story.found == [(STALE, CLEARED, stale)]
    assert story.published == ["incident_opened", "unhealthy", "incident_closed", "recovered"]


def test_a_repair_closes_the_incidents_that_its_commit_names(either: Story) -> None:
    story = either
    story.register()
    story.replace((A,), (NEW_A,))
    first, second = story.commit({A: 7}), story.commit({A: 7})
    story.poll()
    repair = story.commit({NEW_A: 7}, extra={REPAIRED_KEY: first})
    story.poll()
    assert {each.instant: (each.state, each.because) for each in story.incidents} == {
        first: (REPAIRED, f"{repair} moved its rows to where they belong"),
        second: (OPEN, None),
    }
    assert Counter(story.published) == {"incident_opened": 2, "unhealthy": 1, "incident_closed": 1}
    story.commit({NEW_A: 7}, extra={REPAIRED_KEY: f"{first},{second}"})
    story.poll()
    assert {each.state for each in story.incidents} == {REPAIRED}
    assert story.published[-2:] == ["incident_closed", "recovered"]


def test_a_stale_write_that_was_repaired_before_the_first_poll_is_not_an_incident(story: Story) -> None:
    story.replace((A,), (NEW_A,))
    stale = story.commit({A: 7})
    story.commit({NEW_A: 7}, extra={REPAIRED_KEY: stale})
    story.register()
    assert story.found == []


# Without proof


@pytest.mark.parametrize("operation", ["INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"])
def test_in_a_copied_table_commits_before_an_overwrite_do_not_count_as_stale(
    watched: Watched, tmp_path: Path, operation: str
) -> None:
    """The files have the times of the copy, in any order. In version 6 these times are the completion times."""
    story = Story(watched, tmp_path, 6)
    for rows in range(5):
        story.commit({A: rows + 1})
    story.replace((A,), (NEW_A,), operation)
    later = story.commit({NEW_A: 7})
    names = sorted((path for path in story.table.timeline.glob("2*")), reverse=True)
    for number, path in enumerate(names):
        os.utime(path, (story.at.timestamp() + number, story.at.timestamp() + number))
    story.register()
    assert story.found == []
    assert JobKind.REPAIR not in {job.kind for job in Upkeep(story).plan()}
    with reading(watched.engine) as connection:
        newest = commit_store.page(connection, PageRequest(1), table_id=story.id).items[0]
    assert newest.requested_time == later


def test_a_write_to_file_groups_of_an_overwrite_is_reported_but_repaired_only_on_request(
    story: Story, upkeep: Upkeep
) -> None:
    overwrite = story.replace((A,), (NEW_A,), "INSERT_OVERWRITE")
    story.poll()
    stale = story.commit({A: 7})
    story.poll()
    assert story.found == [(STALE, OPEN, stale)]
    [incident] = story.incidents
    assert (incident.doubt, incident.details["groups"][0]["replaced_by"]) == (Doubt.OVERWRITTEN, overwrite)
    assert "removed on purpose" in incident.problem().hint
    assert upkeep.plan() == []
    assert upkeep.verdict(JobKind.REPAIR)[0] is Verdict.SUGGEST


def test_the_instants_that_our_replacement_recorded_outweigh_all_times(either: Story) -> None:
    story = either
    first = next(path.name[:17] for path in story.table.timeline.glob("2*"))
    carried_over, slipped_in = story.commit({A: 5}), story.commit({A: 7})
    story.replace((A,), (NEW_A,), extra={KNOWN_KEY: f"{first},{carried_over}"})
    story.register()
    assert story.found == [(STALE, OPEN, slipped_in)]
    assert story.incidents[0].doubt is None


# Writers with an old number


def test_after_an_expansion_a_write_by_the_new_number_is_right(either: Story) -> None:
    story = either
    story.register()
    story.expand()
    story.commit({NEW_A: 30, bucket_id(3, tail=2): 30})
    story.poll()
    assert story.found == []


def test_a_write_by_the_old_number_to_a_new_partition_is_suspected(either: Story) -> None:
    story = either
    story.register()
    expansion = story.expand()
    late = story.commit({A: 30, B: 30}, partition="q", in_base=True)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]
    assert story.incidents[0].details == {
        "rows": 60,
        "partitions": 1,
        "by_partition": [{"partition": "q", "rows": 60, "buckets": [2, 4], "since": expansion}],
    }
    # There is no event for a mere suspicion.
    assert story.published == []


def test_a_write_before_the_registration_of_its_table_is_suspected_as_well(story: Story) -> None:
    story.expand()
    late = story.commit({A: 30}, partition="q", in_base=True)
    story.register()
    assert story.found == [(OLD, SUSPECTED, late)]


def test_a_few_rows_are_suspected_on_the_day_of_the_expansion_only(story: Story) -> None:
    story.register()
    story.expand()
    story.poll()
    soon = story.commit({NEW_A: 3}, hours=1)
    story.commit({NEW_A: 3}, hours=30)
    many = story.commit({NEW_A: 20}, hours=1)
    story.poll()
    assert sorted(each.instant for each in story.incidents) == [soon, many]


def test_a_write_before_the_expansion_and_an_empty_one_are_not_suspected(story: Story) -> None:
    story.register()
    story.commit({A: 30}, partition="q", in_base=True)
    story.expand()
    story.commit({})
    story.commit({NEW_A: 0})
    story.poll()
    assert story.found == []


def test_a_single_row_in_a_bucket_that_a_contraction_took_away_is_suspected_however_late(either: Story) -> None:
    story = either
    story.register()
    contraction = story.contract()
    story.commit({NEW_A: 500})
    late = story.commit({NEW_A: 1, NEW_B: 1}, hours=100, in_base=True)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]
    assert story.incidents[0].details["by_partition"] == [
        {"partition": "p", "rows": 1, "buckets": [2, 1], "since": contraction}
    ]


PLAIN = "c0ffee00-0000-4000-8000-000000000001-0"
"""The id of a file group without a bucket."""


def test_a_writer_that_keeps_its_index_after_an_adoption_is_suspected_by_a_file_id_without_a_bucket(
    either: Story,
) -> None:
    story = either
    story.commit({PLAIN: 30}, in_base=True)
    adoption = story.replace((PLAIN,), (A, B))
    story.register()
    assert story.found == []
    story.commit({A: 30, B: 30})
    late = story.commit({PLAIN.replace("1-0", "2-0"): 4}, hours=100, in_base=True)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]
    assert story.incidents[0].details["by_partition"] == [
        {"partition": "p", "rows": 4, "buckets": [2], "since": adoption}
    ]


@pytest.mark.parametrize("polled", [True, False])
def test_a_repair_that_takes_file_groups_without_a_bucket_out_of_use_is_no_adoption(
    story: Story, *, polled: bool
) -> None:
    story.register()
    story.commit({A: 30, B: 30})
    stray = story.commit({PLAIN: 4}, in_base=True)
    story.replace((PLAIN,), (), extra={REPAIRS_KEY: stray})
    if polled:
        story.poll()
    late = story.commit({PLAIN.replace("1-0", "2-0"): 4}, in_base=True)
    story.poll()
    of = {each.instant: each for each in story.incidents}
    assert of[late].details["by_partition"] == [{"partition": "p", "rows": 4, "buckets": [2]}]


def test_a_writer_without_the_bucket_index_is_suspected_in_a_new_partition_too(story: Story) -> None:
    story.register()
    late = story.commit({PLAIN: 4}, partition="q", in_base=True)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]
    assert story.incidents[0].details["by_partition"] == [{"partition": "q", "rows": 4, "buckets": [2]}]


def test_a_proved_stale_write_is_not_also_a_suspicion(story: Story) -> None:
    story.register()
    story.expand()
    story.poll()
    late = story.commit({A: 30})
    story.poll()
    assert story.found == [(STALE, OPEN, late)]


def test_only_partitions_whose_number_has_changed_count(story: Story) -> None:
    story.register()
    instant = story.replace((A, B), (NEW_A, NEW_B, bucket_id(2), bucket_id(3)), "BUCKET_RESCALE")
    story.table.hashing_config("00000000000000", 2)
    story.table.hashing_config(instant, 2, rules="^p$,4")
    story.commit({A: 30}, partition="q", in_base=True)
    story.poll()
    assert story.found == []
    late = story.commit({NEW_A: 30})
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]


def test_the_last_change_of_each_partition_counts_however_long_ago(story: Story) -> None:
    story.register()
    instant = story.replace((A, B), (NEW_A, NEW_B, bucket_id(2), bucket_id(3)), "BUCKET_RESCALE")
    story.table.hashing_config("00000000000000", 2)
    story.table.hashing_config(instant, 2, rules="^p$,4")
    story.poll()
    other = story.replace((), (bucket_id(5, tail=3),), "BUCKET_RESCALE")
    story.table.hashing_config(other, 2, rules="^p$,4;^other$,8")
    story.poll()
    late = story.commit({NEW_A: 30}, hours=100)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]


def test_an_event_reports_a_suspicion_that_a_repair_has_confirmed(story: Story) -> None:
    story.register()
    story.expand()
    late = story.commit({NEW_A: 30})
    story.poll()
    # A repair's own rows may lie in low buckets.
    story.commit({NEW_A: 30}, extra={REPAIRED_KEY: late})
    story.poll()
    assert story.found == [(OLD, REPAIRED, late)]
    assert story.published == ["incident_opened", "incident_closed"]


# -- the repairs that the service starts


class Upkeep:
    """The jobs of a table; the test says what their worker reports."""

    def __init__(self, story: Story) -> None:
        self.story, self.engine, self.clock = story, story.watched.engine, story.watched.clock
        self.config = LeaseConfig(timedelta(seconds=30), 60.0, BackOff())
        self.cipher = SecretCipher.fresh()

    def plan(self) -> list[Job]:
        planned = scheduler.run_once(Database(self.engine, self.clock, cipher=self.cipher), scheduler.SchedulerConfig())
        return [self.job(job_id) for job_id in planned.jobs]

    def ask(self, kind: JobKind, *, dry_run: bool = False) -> Job:
        return submission.submit(
            Database(self.engine, self.clock, cipher=self.cipher),
            Permissions(),
            JobRequest(
                table_id=self.story.id,
                kind=kind,
                params={"sort_by": ["id"]} if kind is JobKind.CLUSTERING else {},
                dry_run=dry_run,
                max_attempts=1,
            ),
        ).job

    def run(self, job: Job, **details: Any) -> None:
        leased = leases.lease(
            Database(self.engine, self.clock, cipher=self.cipher),
            self.config,
            worker_id="w",
            group="default",
            permissions=Permissions(),
        )
        assert leased is not None
        assert leased.job_id == job.id
        result = Result(Outcome.SUCCEEDED, details=details)
        leases.report(
            Database(self.engine, self.clock), Random(1), self.config, job_id=job.id, attempt=1, result=result
        )

    def job(self, job_id: str) -> Job:
        with reading(self.engine) as connection:
            return job_store.get(connection, job_id)

    def verdict(self, kind: JobKind) -> tuple[Verdict, str]:
        with reading(self.engine) as connection:
            found = decision_store.latest(connection, self.story.id)[kind]
        return found.verdict, found.code


@pytest.fixture
def upkeep(story: Story) -> Upkeep:
    story.register()
    return Upkeep(story)


def test_the_policy_starts_a_repair_and_holds_cleaning_back(story: Story, upkeep: Upkeep) -> None:
    for number in range(12):
        story.commit({A: number + 1}, in_base=True)
    story.replace((A,), (NEW_A,))
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


def test_two_concurrent_closings_of_an_incident_publish_one_event(story: Story) -> None:
    story.replace((A,), (NEW_A,))
    story.commit({A: 7})
    story.register()
    [incident] = story.incidents
    closed = incident.closed(CLEARED, "because", story.watched.clock())
    with writing(story.watched.engine) as connection:
        assert store.close(connection, closed)
        assert not store.close(connection, closed)


def test_resolved_incidents_are_not_read_to_count_the_others(watched: Watched, tmp_path: Path) -> None:
    story = Story(watched, tmp_path)
    story.register()
    table, at = story.id, watched.clock()
    resolved = [Incident(f"inc_{n}", table, STALE, f"{n:017}", CLEARED, at, closed_at=at) for n in range(3000)]
    plans: list[str] = []

    def explain(connection: sa.Connection, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        how = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
        plans.append("\n".join(str(row[-1]) for row in cursor.execute(f"{how} {statement}", parameters).fetchall()))

    with writing(watched.engine) as connection:
        store.add(connection, resolved)
        connection.exec_driver_sql("ANALYZE incidents")
    with reading(watched.engine) as connection:
        sa.event.listen(watched.engine, "before_cursor_execute", explain)
        assert store.count_open(connection, table) == 0
        assert store.counts(connection, [table]) == {}
        assert store.count_unresolved(connection) == {}
        assert store.unresolved(connection, table) == []
        assert store.every_standing(connection) == {}
        sa.event.remove(watched.engine, "before_cursor_execute", explain)
    assert len(plans) == 5
    assert [each for each in plans if "ix_incidents_standing" not in each] == []
