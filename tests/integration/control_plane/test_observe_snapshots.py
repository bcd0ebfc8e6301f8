"""Polls update the snapshots of tables, and read only what has changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from service.catalog import commit_store
from service.db.engine import reading
from service.lake.commit import CLEAN, CLUSTERING, COMPACTION
from tests.integration.control_plane.watching import A, B, C, Watched
from tests.support.small_table import SmallTable, base_file, instant_at, log_file

if TYPE_CHECKING:
    from pathlib import Path


def test_the_snapshot_keeps_when_the_oldest_log_was_written(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    begun = watched.clock()

    def kept() -> float | None:
        """Returns the seconds from the beginning to the oldest log, which are those that the commits give."""
        watched.poll()
        found = watched.snapshot(table_id).since_compaction.oldest_at
        with reading(watched.engine) as connection:
            assert commit_store.oldest_log_at(connection, table_id) == found
        return None if found is None else (found - begun).total_seconds()

    def instant_after(seconds: float) -> str:
        return instant_at(begun + timedelta(seconds=seconds))

    def write(seconds: float) -> None:
        table.commit(
            instant_after(seconds),
            {"p": {log_file(A, instant_after(seconds)): 10}},
            completed=instant_after(seconds + 1),
        )

    table.commit(instant_after(0), {"p": {base_file(A, instant_after(0)): 100}}, completed=instant_after(1))
    assert kept() == 1
    for seconds in (10, 20):
        write(seconds)
        assert kept() == 1
    # The second log was written before the compaction was planned, the third one after that.
    write(40)
    compacted = {"p": {base_file(A, instant_after(30)): 120}}
    table.commit(instant_after(30), compacted, action="commit", operation="COMPACT", completed=instant_after(50))
    assert kept() == 41
    write(60)
    assert kept() == 41
    table.commit(instant_after(70), compacted, action="commit", operation="COMPACT", completed=instant_after(71))
    assert kept() is None
    write(80)
    assert kept() == 81


def test_the_snapshot_shows_the_state_of_the_table(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.commit("001", {"p=1": {base_file(A, "001"): 100, base_file(B, "001"): 10}, "p=2": {base_file(A, "001"): 50}})
    watched.poll()
    table.commit("003", {"p=1": {log_file(A, "003"): 30}}, completed="008")
    table.schedule("005", "compaction")
    watched.poll()
    found = watched.snapshot(table_id)
    one, two = found.partitions
    assert (one.base_bytes, one.log_bytes, one.buckets, one.largest_bucket_bytes, one.rows) == (110, 30, 2, 130, 20)
    assert (two.base_bytes, two.log_bytes, two.num_buckets) == (50, 0, 4)
    assert [(p.requested_time, p.action, p.is_plan) for p in found.pending] == [("005", "compaction", True)]
    assert (found.last_commit, found.num_buckets) == ("003", 4)
    assert (found.since_compaction.commits, found.since_compaction.bytes_written) == (2, 190)
    # The delta commit that completed during the compaction is not in its base file, and remains to be compacted.
    table.commit("005", {"p=1": {base_file(A, "005"): 120}}, action="commit", operation="COMPACT", completed="009")
    watched.poll()
    found = watched.snapshot(table_id)
    assert found.pending == ()
    assert (found.since_compaction.commits, found.since_compaction.bytes_written) == (1, 30)
    assert (found.partitions[0].log_bytes, found.partitions[0].freed_bytes) == (30, 100)
    table.clean("011", ("p=1",))
    (table.base / "p=1" / base_file(A, "001")).unlink()
    watched.poll()
    found = watched.snapshot(table_id)
    assert found.partitions[0].freed_bytes == 0
    assert found.since_cleaning.commits == 0
    assert found.since_cleaning.at is not None


def test_a_first_poll_counts_its_commits_like_the_database(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.commit("001", {"p=1": {base_file(A, "001"): 100}})
    table.commit("003", {"p=1": {log_file(A, "003"): 30}}, completed="008")
    table.commit("005", {"p=1": {base_file(A, "005"): 120}}, action="commit", operation="COMPACT", completed="009")
    table.commit("010", {"p=1": {log_file(A, "010"): 7}})
    table.clean("012", ("p=1",))
    table.commit("014")
    watched.poll()
    found = watched.snapshot(table_id)
    with reading(watched.engine) as connection:
        first, last = commit_store.first_and_last(connection, table_id)
        counted = {run: commit_store.since_run(connection, table_id, run) for run in (COMPACTION, CLEAN, CLUSTERING)}
    assert first is not None
    assert last is not None
    assert found.first_commit_at == first.completed_at
    assert (found.last_commit, found.last_commit_at) == (last.requested_time, last.completed_at)
    assert found.since_compaction == counted[COMPACTION]
    assert found.since_cleaning == counted[CLEAN]
    assert found.since_clustering == counted[CLUSTERING]
    assert (found.since_compaction.commits, found.since_cleaning.commits) == (2, 0)


def test_commits_since_a_file_went_out_of_use_follow_those_that_completed_later(
    watched: Watched, tmp_path: Path
) -> None:
    """A cleaning counts commits back by the time at which they completed, and keeps what the earliest of them needs."""
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.commit("001")
    table.commit("003", completed="008")
    table.commit("004", action="commit", operation="COMPACT")
    table.commit("005", completed="006")
    table.commit("010", action="commit", operation="COMPACT")
    table.commit("012")
    watched.poll()
    with reading(watched.engine) as connection:
        found = {
            has_sessions: commit_store.since_freed(connection, table_id, "004", has_sessions=has_sessions)
            for has_sessions in (False, True)
        }
        before_all = commit_store.since_freed(connection, table_id, "000", has_sessions=True)
    assert found == {False: 2, True: 1}
    assert before_all == 4


def test_only_the_partitions_that_were_touched_are_listed_again(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"a": {base_file(A, "001"): 10}, "b": {base_file(A, "001"): 10}})
    table_id = watched.register(table)
    watched.poll()
    # A listing of `b` would see that its file has grown.
    table.file("b", base_file(A, "001"), 99)
    table.commit("003", {"a": {base_file(A, "003"): 20}})
    watched.poll()
    assert [p.base_bytes for p in watched.snapshot(table_id).partitions] == [20, 10]


def test_replaced_file_groups_are_remembered_when_their_commit_is_archived(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"p": {base_file(A, "001"): 10}})
    table.commit(
        "003", {"p": {base_file(B, "003"): 20}}, action="replacecommit", operation="CLUSTER", replaced={"p": [A]}
    )
    table.commit("005")
    table_id = watched.register(table)
    watched.poll()
    table.archive("001", "003")
    table.commit("007", {"p": {base_file(C, "007"): 5}})
    watched.poll()
    (found,) = watched.snapshot(table_id).partitions
    assert (found.base_bytes, found.freed_bytes, found.file_groups) == (25, 10, 2)


def test_a_partition_without_files_disappears_from_the_snapshot(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.commit("001", {"a": {base_file(A, "001"): 10}, "b": {base_file(A, "001"): 10}})
    table_id = watched.register(table)
    watched.poll()
    table.commit("003", action="replacecommit", operation="DELETE_PARTITION", replaced={"a": [A]})
    watched.poll()
    assert [(p.path, p.file_groups, p.freed_bytes) for p in watched.snapshot(table_id).partitions] == [
        ("a", 0, 10),
        ("b", 1, 0),
    ]
    (table.base / "a" / base_file(A, "001")).unlink()
    table.clean("005", ("a",))
    watched.poll()
    assert [p.path for p in watched.snapshot(table_id).partitions] == ["b"]


def test_heartbeats_of_writers_are_kept_up_to_date_while_nothing_is_committed(watched: Watched, tmp_path: Path) -> None:
    table = SmallTable(tmp_path / "t")
    table.begin("20260101120000000", heartbeat=1000)
    table_id = watched.register(table)
    watched.poll()
    (pending,) = watched.snapshot(table_id).pending
    assert (pending.state, pending.is_plan) == ("inflight", False)
    assert pending.requested_at == datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert pending.heartbeat_at == datetime.fromtimestamp(1000, UTC)
    table.begin("20260101120000000", heartbeat=2000)
    watched.poll()
    (pending,) = watched.snapshot(table_id).pending
    assert pending.heartbeat_at == datetime.fromtimestamp(2000, UTC)


def test_empty_commits_of_an_idle_flink_job_are_shown_but_not_counted(watched: Watched, tmp_path: Path) -> None:
    """The test polls after each commit, and once after several commits and a service."""
    table = SmallTable(tmp_path / "t")
    table_id = watched.register(table)
    table.commit("001", {"p": {log_file(A, "001"): 30}})
    watched.poll()
    for instant in ("003", "005"):
        table.commit(instant)
        watched.poll()
    assert len(watched.commits(table_id)) == 3
    found = watched.snapshot(table_id)
    assert (found.since_compaction.commits, found.since_cleaning.commits, found.last_commit) == (1, 1, "005")
    table.commit("007", {"p": {base_file(A, "007"): 30}}, action="commit", operation="COMPACT")
    table.commit("009")
    table.commit("011", {"p": {log_file(A, "011"): 30}})
    watched.poll()
    found = watched.snapshot(table_id)
    assert (found.since_compaction.commits, found.since_cleaning.commits) == (1, 2)
