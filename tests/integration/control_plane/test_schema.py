"""Tests the migrations, and the connection to each kind of database."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from service.catalog import table_statistics
from service.db import migrate, schema
from service.db.engine import open_engine, reading, writing
from service.model.errors import DatabaseUnavailableError, SettingsError

SNAPSHOT = ("table_id", "taken_at", "summary")
MOMENTS = ("created_at", "not_before")
OLD_JOB = {
    "id": "j",
    "table_id": "t",
    "kind": "audit",
    "params": {},
    "dry_run": False,
    "mutating": False,
    "priority": 0,
    "state": "queued",
    "attempt": 0,
    "max_attempts": 3,
    "instants": [],
    "cancel_requested": False,
}


def test_the_migrations_build_what_the_schema_says(engine: sa.Engine) -> None:
    with reading(engine) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []


def test_partial_indexes_have_the_same_condition_in_migrations_and_schema(empty_database: str, tmp_path: Path) -> None:
    """Alembic does not compare the conditions of indexes."""

    def conditions(engine: sa.Engine) -> dict[str, str]:
        if engine.dialect.name == "sqlite":
            query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql LIKE '%WHERE%'"
        else:
            query = "SELECT indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%WHERE%'"
        with reading(engine) as connection:
            # The two databases spell "is true" differently.
            return {
                name: "".join(sql.split("WHERE")[1].split())
                .replace("(", "")
                .replace(")", "")
                .replace("=1", "")
                .replace("dry_run=0", "NOTdry_run")
                for name, sql in connection.execute(sa.text(query))
            }

    engine = open_engine(empty_database)
    migrate.upgrade(engine)
    migrated = conditions(engine)
    with writing(engine) as connection:
        schema.metadata.drop_all(connection)
        schema.metadata.create_all(connection)
    assert conditions(engine) == migrated
    assert set(migrated) >= {schema.JOB_PER_KIND, schema.JOB_REWRITING, schema.JOB_HOLDING_TABLE}
    engine.dispose()


def test_migrating_twice_changes_nothing(engine: sa.Engine) -> None:
    assert migrate.upgrade(engine) == migrate.upgrade(engine)
    assert migrate.is_usable(engine)


def test_worker_groups_come_to_a_database_with_jobs_and_tables_that_wait(empty_database: str) -> None:
    engine = open_engine(empty_database)
    assert migrate.upgrade(engine, "0004") == "0004"
    now = datetime(2026, 1, 1, tzinfo=UTC)
    empty = {"profile": {}, "lock": {}, "writers": {}, "hudi_options": {}}
    with writing(engine) as connection:
        connection.execute(
            schema.tables.insert().values(id="t", base_path="/t", name="t", created_at=now, updated_at=now, **empty)
        )
        connection.execute(
            schema.planning.insert().values(table_id="t", next_decision_at=now, due_since=now, deferred_for="any")
        )
        # The statement omits the column that a later migration adds.
        jobs = sa.table("jobs", *(sa.column(name, schema.jobs.c[name].type) for name in (*OLD_JOB, *MOMENTS)))
        connection.execute(jobs.insert().values(**OLD_JOB, **dict.fromkeys(MOMENTS, now)))
    migrate.upgrade(engine)
    with reading(engine) as connection:
        assert connection.execute(sa.select(schema.jobs.c.worker_group)).scalars().all() == ["default"]
        [waiting] = connection.execute(sa.select(schema.planning)).all()
    assert (waiting.table_id, waiting.deferred_for, waiting.due_since) == ("t", "*", now)
    engine.dispose()


def test_sums_over_snapshots_come_to_a_database_that_has_some(empty_database: str) -> None:
    engine = open_engine(empty_database)
    assert migrate.upgrade(engine, "0045") == "0045"
    now = datetime(2026, 1, 1, tzinfo=UTC)
    empty = {"profile": {}, "lock": {}, "writers": {}, "hudi_options": {}}
    large = 2**62
    merged = {"log_bytes": large, "base_bytes": 3, "table_type": "MERGE_ON_READ", "since_compaction": {"commits": 4}}
    copied = {"log_bytes": 5, "timeline_commits": 6, "table_type": "COPY_ON_WRITE", "since_compaction": {"commits": 7}}
    summaries = [merged, copied, {"table_type": "MERGE_ON_READ", "since_compaction": None}]
    snapshots = sa.table("snapshots", *(sa.column(name, schema.snapshots.c[name].type) for name in SNAPSHOT))
    with writing(engine) as connection:
        for table_id in "abcd":
            made = {"id": table_id, "base_path": table_id, "name": table_id, "created_at": now, "updated_at": now}
            connection.execute(schema.tables.insert().values(**made, **empty))
        for table_id, summary in zip("abc", summaries, strict=True):
            connection.execute(snapshots.insert().values(table_id=table_id, taken_at=now, summary=summary))
        if engine.dialect.name == "sqlite":
            # Python's encoder has written NaN, which JSON does not have.
            query = "INSERT INTO snapshots SELECT 'd', taken_at, '{\"log_bytes\": NaN}' FROM snapshots LIMIT 1"
            connection.exec_driver_sql(query)
    migrate.upgrade(engine)
    with writing(engine) as connection:
        found = table_statistics.statistics(connection)
        assert (found.log_bytes, found.base_bytes, found.largest_log_bytes) == (large + 5, 3, large)
        assert (found.delta_commits, found.timeline_commits) == (4, 6)
        # A replica of an earlier version writes the summary only.
        connection.execute(snapshots.update().where(snapshots.c.table_id == "b").values(summary={"log_bytes": 9}))
        assert table_statistics.statistics(connection).log_bytes == large + 9
    engine.dispose()


def test_several_replicas_may_migrate_at_once(empty_database: str) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        engine = open_engine(empty_database)
        try:
            migrate.upgrade(engine)
        except BaseException as error:
            failures.append(error)
        finally:
            engine.dispose()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_an_empty_database_is_not_at_head(empty_database: str) -> None:
    engine = open_engine(empty_database)
    assert not migrate.is_usable(engine)
    engine.dispose()


def test_migrations_work_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    engine = open_engine("sqlite:///here.db")
    migrate.upgrade(engine)
    assert Path("here.db").exists()


def test_sqlite_runs_in_wal_mode_with_foreign_keys(sqlite: sa.Engine) -> None:
    with reading(sqlite) as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "sqlite://", "sqlite:///:memory:", "oracle://x"])
def test_a_database_that_cannot_be_used_is_refused_in_words(url: str) -> None:
    with pytest.raises(SettingsError):
        open_engine(url)


def test_a_database_that_is_away_is_an_error_of_its_own() -> None:
    engine = open_engine("sqlite:////no/such/folder/x.db")
    with pytest.raises(DatabaseUnavailableError), reading(engine):
        pass
