"""Rows that the database writes as JSON are the same as those that it returns value by value."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import JobKind, Problem, Progress, TableLock, WriterEngine
from service.catalog import table_store, watch_store
from service.catalog.registration import Readers, Registration, Writers
from service.db import schema
from service.db.documents import AtOnce, pairs_of, rows_of, together
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.lake.engine_sighting import Mark
from service.queue import job_store
from service.queue.job import Job, JobState
from service.queue.job_store import JOBS

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = (
    "orders",
    "",
    "null",
    "1",
    "true",
    'a "quoted" \\ name',
    "tab\tand\nline",
    "\x01\x1f",
    "größe 🐘 \u2028",
    "%s %d %",
)
DOCUMENTS: tuple[dict[str, Any], ...] = (
    {},
    {"half of a pair": "\ud83d"},
    {"text": TEXTS[-2], "nested": {"a": [1, 2.5, None, True, "}"]}},
)
NUMBERS = (0.0, 1.0, -1.5, 0.1 + 0.2, 1 / 3, 1e-300, 1.7976931348623157e308, 5e-324, 123456789012345680.0)


def odd_job(number: int, chance: Random) -> Job:
    def value_or_none(value: Any) -> Any:
        return value if chance.random() < 0.7 else None

    at = NOW + timedelta(microseconds=chance.choice((0, 1, 999_999, 500_000)), hours=number)
    error = Problem("table-locked", chance.choice(TEXTS), chance.choice(TEXTS), "hint", retriable=True)
    return Job(
        id=f"job_{number}",
        table_id="tbl_1",
        kind=JobKind.COMPACTION,
        created_at=at,
        not_before=at,
        params=chance.choice(DOCUMENTS),
        dry_run=True,
        state=JobState.SUCCEEDED,
        result=value_or_none(chance.choice(DOCUMENTS)),
        error=value_or_none(error),
        progress=value_or_none(Progress(chance.choice(TEXTS), 1, 2, 2**53, 2**53)),
        instants=tuple(chance.choices(TEXTS, k=number % 3)),
        reason=value_or_none(chance.choice(TEXTS)),
        requested_by=value_or_none(chance.choice(TEXTS)),
        timeout_seconds=value_or_none(number),
        worth=value_or_none(chance.choice(NUMBERS)),
        starts_by=value_or_none(at),
        cancel_requested=chance.random() < 0.5,
    )


def test_each_value_comes_back_as_it_was_stored(engine: sa.Engine, a_table: Registration) -> None:
    chance = Random(34)
    jobs = [odd_job(number, chance) for number in range(200)]
    with writing(engine) as connection:
        for job in jobs:
            job_store.submit(connection, job)
    newest = list(reversed(jobs))
    with reading(engine) as connection:
        query = JOBS.select().order_by(schema.jobs.c.created_at.desc())
        assert JOBS.many(connection, together(query)) == newest
        assert JOBS.many(connection, query) == newest
        assert job_store.get(connection, "job_7") == jobs[7]
        rows = connection.execute(sa.select(schema.jobs).order_by(schema.jobs.c.created_at.desc()))
        assert [Job.of_row(row) for row in rows] == newest


def test_rows_and_readings_at_once_come_back_as_they_were_stored(engine: sa.Engine, a_table: Registration) -> None:
    chance = Random(35)
    jobs = [odd_job(number, chance) for number in range(50)]
    with writing(engine) as connection:
        for job in jobs:
            job_store.submit(connection, job)
    j = schema.jobs
    columns = (j.c.id, j.c.created_at, j.c.starts_by, j.c.worth, j.c.dry_run, j.c.attempt, j.c.reason, j.c.params)
    query = sa.select(*columns).where(j.c.table_id == sa.bindparam("of_table")).order_by(j.c.created_at)
    kinds = tuple[str, datetime, datetime | None, float | None, bool, int, str | None, dict[str, Any]]
    rows, every = rows_of(kinds, query), JOBS.all_of(JOBS.select().order_by(j.c.created_at))
    one = JOBS.one_of(JOBS.select().where(j.c.id == sa.bindparam("of_job")))
    names = pairs_of(str, sa.select(j.c.id, j.c.reason).where(j.c.table_id == sa.bindparam("of_table")))
    wanted = [
        (job.id, job.created_at, job.starts_by, job.worth, True, job.attempt, job.reason, job.params) for job in jobs
    ]
    with reading(engine) as connection:
        found = AtOnce(rows, every, one, names).read(connection, {"of_table": a_table.id, "of_job": "job_7"})
        assert found == [wanted, jobs, jobs[7], {job.id: job.reason for job in jobs if job.reason is not None}]
        assert rows.read(connection, {"of_table": a_table.id}) == wanted
        nothing = AtOnce(rows, one, names).read(connection, {"of_table": "tbl_away", "of_job": "job_away"})
        assert nothing == [[], None, {}]


def test_a_document_that_is_not_quite_json_is_read_as_before(sqlite: sa.Engine) -> None:
    """Python's encoder has written NaN, which JSON does not have."""
    with writing(sqlite) as connection:
        table_store.register(connection, Registration("tbl_1", "/lake/a", "a", NOW, NOW, profile={"ratio": 1.0}))
        connection.exec_driver_sql("UPDATE tables SET profile = '{\"ratio\": NaN}'")
        found = table_store.get(connection, "tbl_1").profile["ratio"]
        (listed,) = table_store.page(connection, PageRequest()).items
    assert found != found
    assert listed.profile["ratio"] != listed.profile["ratio"]


def test_tables_come_back_as_they_were_stored(engine: sa.Engine) -> None:
    tables = [
        Registration(
            f"tbl_{number}",
            f"/lake/{text}",
            text,
            NOW + timedelta(seconds=number),
            NOW,
            lock=TableLock("zookeeper", {text: text}, wait_seconds=number / 3),
            writers=Writers(engines=(WriterEngine.FLINK,), declared_at=NOW) if number % 2 else Writers(),
            readers=Readers(reads_per_day=NUMBERS[number]),
            owner=text or None,
            tags={"team": text},
        )
        for number, text in enumerate(TEXTS[:-1])
    ]
    with writing(engine) as connection:
        for table in tables:
            table_store.register(connection, table)
            watch_store.mark(connection, table.id, [Mark(WriterEngine.SPARK, NOW, None, table.name)])
    ids = [table.id for table in tables]
    with reading(engine) as connection:
        first = table_store.page(connection, PageRequest(limit=3))
        rest = table_store.page(connection, PageRequest(cursor=first.next_cursor))
        assert [*first.items, *rest.items] == tables
        assert table_store.names(connection, ids) == {table.id: table.name for table in tables}
        assert table_store.get_all(connection, [*ids, "tbl_away"]) == {table.id: table for table in tables}
        marks = watch_store.engines(connection, ids)
        assert {key: each[WriterEngine.SPARK].evidence for key, each in marks.items()} == {
            table.id: table.name for table in tables
        }
        assert table_store.names(connection, ["tbl_away"]) == {}


@pytest.mark.parametrize("name", ["writers", "lock", "readers"])
def test_a_declaration_of_an_older_version_lacks_members(client: TestClient, app_context: Any, name: str) -> None:
    table_id = client.post("/v1/tables", json={"base_path": "/lake/orders"}).json()["id"]
    shown = client.get(f"/v1/tables/{table_id}").json()
    with writing(app_context.database.engine) as connection:
        stored = connection.execute(sa.select(schema.tables.c[name])).scalar_one()
        few = {key: value for key, value in stored.items() if value and key != "options"}
        connection.execute(schema.tables.update().values({name: few}))
    assert len(few) < len(stored)
    assert client.get(f"/v1/tables/{table_id}").json() == shown
    assert client.get("/v1/tables").json()["items"] == [shown]
