"""Polls record each new commit once, in the order of completion, after any changes of the timeline."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from jobs.format.index_definitions import DEFINITIONS_FILE
from service.catalog import table_store
from service.db.engine import reading, writing
from service.runtime import retention
from tests.integration.control_plane.watching import A, Watched
from tests.support.small_table import SmallTable, base_file, log_file

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.mostly_sqlite

KEEP = retention.Keep(history=timedelta(days=30), commits=timedelta(days=90), events=timedelta(days=30))


def test_new_commits_are_published_in_the_order_of_completion_and_older_ones_are_not(
    watched: Watched, tmp_path: Path
) -> None:
    table = SmallTable(tmp_path / "t", version=9)
    table.commit("001", {"p": {base_file(A, "001"): 10}}, modified=watched.clock().timestamp() - 5)
    table_id = watched.register(table)
    watched.poll(1)
    assert watched.events() == []
    table.commit("005", {"p": {log_file(A, "005"): 5}}, completed="010")
    table.commit("004", {"p": {log_file(A, "004"): 5}}, completed="012")
    watched.poll()
    watched.poll()
    assert [(event.type, event.data["commit"]["instant"]) for event in watched.events()] == [
        ("commit.published", "005"),
        ("commit.published", "004"),
    ]
    assert {event.table_id for event in watched.events()} == {table_id}


def test_commits_from_before_the_registration_are_not_published(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    registered = watched.clock().timestamp()
    table.commit("001", {"p": {base_file(A, "001"): 10}}, modified=registered - 5)
    table_id = watched.register(table)
    table.commit("003", {"p": {log_file(A, "003"): 5}}, modified=registered + 1)
    watched.poll(1)
    table.commit("005", {"p": {log_file(A, "005"): 5}})
    watched.poll()
    assert [(c.requested_time, c.is_news) for c in watched.commits(table_id)] == [
        ("001", False),
        ("003", True),
        ("005", True),
    ]


def test_commits_are_recorded_in_the_order_of_their_completion(watched: Watched, tmp_path: Path) -> None:
    """The second commit to begin is the first to end, and a poll follows in between."""
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.begin("001")
    table.commit("003", completed="004")
    watched.poll()
    table.commit("005", completed="009")
    table.commit("001", completed="006")
    watched.poll()
    assert watched.instants(table_id) == ["003", "001", "005"]


def test_before_version_8_times_that_no_requests_confirm_do_not_order_commits(watched: Watched, tmp_path: Path) -> None:
    """A copy of the table has changed the times of the files."""
    table = SmallTable(tmp_path / "t", version=6)
    table_id = watched.register(table)
    table.commit("001", modified=2000)
    table.commit("003", modified=1000)
    watched.poll()
    found = watched.commits(table_id)
    assert [c.requested_time for c in found] == ["001", "003"]
    assert [c.completion_time for c in found] == [None, None]
    assert {c.completed_at for c in found}.isdisjoint({datetime.fromtimestamp(at, UTC) for at in (1000, 2000)})


def test_a_commit_whose_file_is_still_empty_is_read_again(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table_id = watched.register(table)
    table.begin("001")
    name = "001.deltacommit" if version == 6 else "001_002.deltacommit"
    file = table.base / table.timeline / name
    created = watched.clock().timestamp() + 69
    file.touch()
    os.utime(file, (created, created))
    watched.poll()
    assert watched.commits(table_id) == []
    table.commit("001", {"p": {base_file(A, "001"): 100}}, completed="002", modified=created)
    watched.poll()
    [found] = watched.commits(table_id)
    assert found.bytes_written == 100
    # An instant that remains empty is read as Hudi reads it: as a commit without changes.
    file = file.with_name(name.replace("001", "003").replace("002", "004"))
    file.touch()
    os.utime(file, (created, created))
    watched.poll()
    assert watched.instants(table_id) == ["001", "003"]


def test_a_commit_is_recorded_with_its_figures(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table_id = watched.register(table)
    table.commit("20260101120000000", {"p": {base_file(A, "20260101120000000"): 100}}, completed="20260101120001500")
    watched.poll()
    (found,) = watched.commits(table_id)
    assert (found.action, found.operation, found.rows_written, found.bytes_written) == (
        "deltacommit",
        "UPSERT",
        10,
        100,
    )
    assert (found.partitions, found.file_groups, found.schema_changed) == (("p",), 1, False)
    assert found.seen_at == watched.clock()
    if version == 9:
        assert found.completed_at == datetime(2026, 1, 1, 12, 0, 1, 500_000, UTC)


def test_a_changed_schema_is_published_once(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    wider = '{"type":"record","name":"r","fields":[{"name":"id","type":"string"},{"name":"x","type":"int"}]}'
    table.commit("001")
    watched.poll()
    table.commit("003", schema=wider)
    table.clean("005", ())
    table.commit("007", schema=wider)
    watched.poll()
    changed = {c.requested_time: c.schema_changed for c in watched.commits(table_id)}
    assert changed == {"001": False, "003": True, "005": False, "007": False}
    # Somebody examines the columns again.
    assert watched.new_schemas == [table_id]


def test_a_profile_follows_the_properties_and_keeps_what_an_examination_found(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t", version=9)
    table_id = watched.register(table)
    found = {"table_version": 8, "columns": [{"name": "id", "type": "string"}], "warnings": ["beware"]}
    with writing(watched.engine) as connection:
        table_store.set_profile(connection, table_id, found)
    table.commit("001")
    table.schedule("002", "compaction")
    watched.poll()
    with reading(watched.engine) as connection:
        profile = table_store.get(connection, table_id).profile
    assert {name: profile[name] for name in found} == {**found, "table_version": 9}
    assert (profile["table_type"], profile["pending_instants"]) == ("MERGE_ON_READ", 1)


def test_new_indexes_become_options_of_writers_and_damaged_definitions_none(
    watched: Watched, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = SmallTable(tmp_path / "t", version=9)
    table_id = watched.register(table)
    with writing(watched.engine) as connection:
        table_store.set_profile(connection, table_id, {"table_version": 9})

    def options_with(partitions: str, definitions: str) -> object:
        file = table.base / DEFINITIONS_FILE
        file.parent.mkdir(exist_ok=True)
        file.write_text(definitions)
        with (table.base / ".hoodie/hoodie.properties").open("a") as properties:
            properties.write(f"hoodie.table.metadata.partitions={partitions}\n")
        table.commit(f"{len(list((table.base / table.timeline).iterdir())):03}")
        watched.poll()
        with reading(watched.engine) as connection:
            return table_store.get(connection, table_id).profile["index_options"]

    kept = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.level.index.enable": "true"}
    by_partition = '{"indexDefinitions": {"record_index": {"indexOptions": {"isPartitioned": "true"}}}}'
    assert options_with("files,record_index", by_partition) == kept
    # The same indexes are not read again.
    assert options_with("files,record_index", "{") == kept
    assert options_with("files,record_index,column_stats", '{"indexDefinitions": {"column_stats": 7}}') == {}
    assert "damaged" in caplog.text
    assert options_with("files", "{") == {}


def test_archived_commits_are_not_published(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    for instant in ("001", "003", "005", "007"):
        table.commit(instant)
    table.archive("001")
    table_id = watched.register(table)
    watched.poll()
    table.archive("003", "005")
    watched.poll()
    table.commit("009")
    watched.poll()
    assert watched.instants(table_id) == ["003", "005", "007", "009"]
    assert watched.watch(table_id).gap_at is None


def test_commits_that_were_archived_between_two_polls_are_read_from_the_history(
    watched: Watched, tmp_path: Path, version: int
) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table.commit("001")
    table_id = watched.register(table)
    watched.poll()
    table.commit("003", {"p": {base_file(A, "003"): 30}})
    table.commit("005")
    table.archive("001", "003")
    watched.poll()
    assert watched.instants(table_id) == ["001", "003", "005"]
    assert all(c.is_news for c in watched.commits(table_id)[1:])
    assert watched.commits(table_id)[1].bytes_written == 30
    assert [p.path for p in watched.snapshot(table_id).partitions] == ["p"]


def test_a_pending_instant_that_completed_and_was_archived_between_two_polls_is_read_too(
    watched: Watched, tmp_path: Path, version: int
) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table.begin("001")
    table.commit("003")
    table.commit("005")
    table_id = watched.register(table)
    watched.poll()
    table.commit("001", completed="008")
    table.archive("001")
    watched.poll()
    assert watched.instants(table_id) == ["003", "005", "001"]


@pytest.mark.parametrize("fault", ["damaged", "gone", "damaged manifest", "gone manifest", "gone file"])
def test_instants_whose_history_is_damaged_or_gone_are_reported(
    watched: Watched, tmp_path: Path, version: int, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table.commit("001")
    table_id = watched.register(table)
    watched.poll()
    table.commit("003", {"p": {base_file(A, "003"): 30}})
    table.commit("005")
    table.archive("001", "003")
    history = table.base / ".hoodie/archived" if version < 8 else table.timeline / "history"
    for path in history.iterdir():
        if fault == "gone" or fault.removeprefix("gone ") == ("file" if path.suffix else path.name.split("_")[0]):
            path.unlink()
        elif fault == "damaged manifest" and path.name.startswith("manifest"):
            path.write_bytes(path.read_bytes()[:20])
        elif version < 8 or (fault == "damaged" and path.suffix == ".parquet"):
            path.write_bytes(path.read_bytes()[:-40])
    watched.poll()
    assert watched.watch(table_id).gap_at == watched.clock()
    assert "archived before a poll saw them" in caplog.text
    # The files of the missed instant are found nevertheless, because the whole table was listed.
    assert [p.path for p in watched.snapshot(table_id).partitions] == ["p"]
    table.commit("007")
    watched.clock.advance(60)
    watched.poll()
    assert watched.instants(table_id)[-2:] == ["005", "007"]
    assert watched.watch(table_id).gap_at != watched.clock()


def test_no_instant_of_an_empty_table_counts_as_missed(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table_id = watched.register(table)
    watched.poll()
    table.commit("001")
    table.commit("003")
    watched.poll()
    assert watched.watch(table_id).gap_at is None
    assert watched.instants(table_id) == ["001", "003"]


def test_a_table_that_was_empty_and_has_archived_since_is_read_from_its_history(
    watched: Watched, tmp_path: Path, version: int
) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table_id = watched.register(table)
    watched.poll()
    for instant in ("001", "003", "005"):
        table.commit(instant)
    table.archive("001", "003")
    watched.poll()
    assert watched.instants(table_id) == ["001", "003", "005"]


def test_a_pending_instant_that_was_rolled_back_is_not_missed(watched: Watched, tmp_path: Path, version: int) -> None:
    table = SmallTable(tmp_path / "t", version=version)
    table.begin("001")
    table.commit("003")
    table_id = watched.register(table)
    watched.poll()
    table.rollback("005", "001")
    watched.poll()
    assert watched.instants(table_id) == ["003", "005"]
    assert watched.watch(table_id).gap_at is None


def test_deleted_commits_that_are_still_on_the_timeline_are_not_published_again(
    watched: Watched, tmp_path: Path
) -> None:
    table = SmallTable(tmp_path / "t")
    for instant in ("001", "003", "005"):
        table.commit(instant)
    table_id = watched.register(table)
    watched.poll()
    table.archive("001")
    table.commit("007")
    watched.poll()
    watched.clock.advance(100 * 24 * 3600)
    assert retention.run_once(watched.engine, watched.clock, KEEP)["commits"] == 1
    table.commit("009")
    watched.poll()
    assert watched.instants(table_id) == ["003", "005", "007", "009"]


def test_the_newest_commit_is_never_deleted(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001")
    table.commit("003")
    table_id = watched.register(table)
    watched.poll()
    table.archive("001", "003")
    table.schedule("009", "compaction")
    watched.poll()
    watched.clock.advance(100 * 24 * 3600)
    retention.run_once(watched.engine, watched.clock, KEEP)
    assert watched.instants(table_id) == ["003"]
