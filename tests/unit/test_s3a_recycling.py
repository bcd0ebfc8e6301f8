from __future__ import annotations

from jobs.hudi.s3a_recycling import JOBS_BEFORE_CLOSE, MAX_JOBS_BEFORE_CLOSE, Connections

TABLE = "s3a://lake/trips"


def test_each_bucket_is_closed_once_after_some_jobs() -> None:
    closed: list[str] = []
    connections = Connections(closed.append)
    for number in range(2 * JOBS_BEFORE_CLOSE):
        with connections.used_by(TABLE if number % 2 else "s3a://other/orders"):
            pass
        assert len(closed) == 2 * ((number + 1) // JOBS_BEFORE_CLOSE)
    assert set(closed) == {TABLE, "s3a://other/orders"}


def test_a_table_on_a_local_disk_needs_no_recycling() -> None:
    closed: list[str] = []
    connections = Connections(closed.append)
    for _ in range(2 * MAX_JOBS_BEFORE_CLOSE):
        with connections.used_by("/lake/trips"):
            pass
        assert connections.has_room()
    assert closed == []


def test_no_file_system_is_closed_during_a_job_and_finally_no_job_may_begin() -> None:
    closed: list[str] = []
    connections = Connections(closed.append)
    with connections.used_by("/lake/long"):
        for _ in range(MAX_JOBS_BEFORE_CLOSE):
            assert connections.has_room()
            with connections.used_by(TABLE):
                pass
        assert not connections.has_room()
        assert closed == []
    assert closed == [TABLE]
    assert connections.has_room()


def test_a_job_that_fails_counts_as_well() -> None:
    closed: list[str] = []
    connections = Connections(closed.append)
    for _ in range(JOBS_BEFORE_CLOSE):
        try:
            with connections.used_by(TABLE):
                raise ValueError
        except ValueError:
            pass
    assert closed == [TABLE]
