"""The service finds stale commits by their file ids, publishes events, stores incidents and closes them."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import JobKind
from jobs.format.stale_writes import KNOWN_KEY, REPAIRED_KEY, Doubt
from service.catalog import commit_store
from service.db import schema
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.incidents import store
from service.incidents.incident import Incident
from service.scheduling.decision import Verdict
from tests.integration.control_plane.stories import (
    CLEARED,
    NEW_A,
    NEW_B,
    OLD,
    OPEN,
    REPAIRED,
    STALE,
    SUSPECTED,
    Story,
    Upkeep,
)
from tests.integration.control_plane.watching import A, B, Watched

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.mostly_sqlite


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


def test_a_stale_write_is_found_however_late_it_comes(story: Story) -> None:
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


def test_a_write_that_was_archived_before_a_replacement_is_not_stale_although_that_has_not_recorded_it(
    either: Story,
) -> None:
    """The write, its archival and the replacement happen between two polls."""
    story = either
    first = next(path.name[:17] for path in story.table.timeline.glob("2*"))
    story.register()
    before, last = story.commit({A: 7}), story.commit({B: 1})
    story.table.archive(first, before)
    story.replace((A,), (NEW_A,), extra={KNOWN_KEY: last})
    stale = story.commit({A: 5})
    story.poll()
    assert story.found == [(STALE, OPEN, stale)]


def test_the_record_of_an_archived_replacement_proves_a_stale_write(either: Story) -> None:
    story = either
    before = story.commit({A: 7, B: 1})
    story.register()
    replacing = story.replace((A,), (NEW_A,), extra={KNOWN_KEY: before})
    story.poll()
    story.table.archive(before, replacing)
    stale = story.commit({A: 5})
    story.poll()
    assert story.found == [(STALE, OPEN, stale)]
    assert story.incidents[0].doubt is None


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
