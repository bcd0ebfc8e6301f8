"""Tests the history of a table: the older the samples of its polls, the fewer are kept."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from service.catalog import sample_store
from service.catalog.sample import Sample
from service.db import schema
from service.db.engine import reading, writing
from service.runtime import retention
from tests.integration.control_plane.operated import MIB, operating
from tests.integration.control_plane.watching import A
from tests.support.small_table import base_file, log_file

if TYPE_CHECKING:
    from pathlib import Path

    from service.catalog.registration import Registration
    from tests.integration.control_plane.conftest import FakeClock


def test_each_poll_of_a_changed_table_leaves_a_sample(tmp_path: Path) -> None:
    with operating(tmp_path) as operated:
        table = operated.table()
        first = table.instant()
        table.commit({base_file(A, first): 40 * MIB}, instant=first)
        operated.poll()
        operated.poll()  # This poll finds nothing new, and leaves no sample.
        later = table.instant()
        table.commit({log_file(A, later): 10 * MIB}, instant=later)
        operated.poll(400)

        def history(**query: Any) -> list[dict[str, Any]]:
            answer = operated.client.get(f"/v1/tables/{table.id}/history", params=query)
            assert answer.status_code == 200, answer.text
            items: list[dict[str, Any]] = answer.json()["items"]
            return items

        samples = history()
        assert [each["log_bytes"] for each in samples] == [0, 10 * MIB]
        assert [each["log_ratio"] for each in samples] == [0.0, 0.25]
        assert [each["delta_commits"] for each in samples] == [1, 2]
        assert [each["timeline_commits"] for each in samples] == [1, 2]
        assert {(each["base_bytes"], each["base_files"], each["file_groups"]) for each in samples} == {(40 * MIB, 1, 1)}
        assert history(since=samples[1]["at"]) == history(limit=1) == samples[1:]
        assert history(until=samples[1]["at"]) == samples[:1]
        assert history(until="2020-01-01T00:00:00Z") == []
        operated.call("GET", "/v1/tables/tbl_none/history", 404)
        operated.call("GET", f"/v1/tables/{table.id}/history?limit=2001", 422)


def test_samples_become_fewer_with_their_age(engine: sa.Engine, clock: FakeClock, a_table: Registration) -> None:
    """Stores samples of three periods: three days that ended forty days ago, three days that ended a week ago, and the
    last thirty hours."""
    began, minute = clock(), timedelta(minutes=1)
    times = [began + timedelta(days=day) + 20 * number * minute for day in (0, 33) for number in range(3 * 72)]
    times += [began + timedelta(days=40) + 2.5 * number * minute for number in range(30 * 24)]
    with writing(engine) as connection:
        for number, at in enumerate(times):
            sample_store.record(connection, {a_table.id: Sample(at, number, 1, 2, 3, 4, 5, 6, 7)})
    clock.now = times[-1]
    before = listed(engine, clock, a_table.id)
    keep = retention.Keep(*[timedelta(days=1000)] * 3, samples=timedelta(days=365))
    assert retention.run_once(engine, clock, keep)["samples"] > 500
    samples = listed(engine, clock, a_table.id)
    assert samples == before
    assert samples[-1].log_bytes == len(times) - 1
    steps = Counter(later.at - each.at for each, later in pairwise(samples))
    assert steps.pop(5 * minute) in range(288, 301)
    assert steps.pop(60 * minute) in range(70 + 5, 72 + 7)
    assert steps.pop(1440 * minute) == 2
    assert sum(steps.values()) <= 4  # These are the steps from one period to the next.
    assert rows(engine) <= len(samples) + 72 + 30 + 8
    clock.advance(400 * 86_400)
    retention.run_once(engine, clock, keep)
    assert rows(engine) == 0


def test_the_trend_of_a_table_has_its_last_day_and_no_sample_of_other_tables_is_read(
    engine: sa.Engine, clock: FakeClock, a_table: Registration
) -> None:
    began, minute = clock(), timedelta(minutes=1)
    with writing(engine) as connection:
        for number in range(36):
            at = began + 60 * number * minute
            sample_store.record(connection, {a_table.id: Sample(at, number, 1, 2, 3, 4, 5, 6, 7)})
    clock.now = began + 35 * 60 * minute
    statements: list[tuple[str, Any]] = []
    keep = sa.event.listens_for(engine, "before_cursor_execute")
    keep(lambda _connection, _cursor, statement, given, *_: statements.append((statement, given)))
    with reading(engine) as connection:
        found = sample_store.log_ratios(connection, [a_table.id, "tbl_other"], clock(), 25)
    assert found == {a_table.id: [float(number) for number in range(11, 36)]}
    if engine.dialect.name == "sqlite":
        ((statement, given),) = statements
        with reading(engine) as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given).all()
        assert any("(table_id=? AND step=? AND slot>?)" in each.detail for each in plan), plan


def listed(engine: sa.Engine, clock: FakeClock, table_id: str) -> list[Sample]:
    with reading(engine) as connection:
        return sample_store.of_table(connection, table_id, clock(), limit=5000)


def rows(engine: sa.Engine) -> int:
    with reading(engine) as connection:
        return int(connection.scalar(sa.select(sa.func.count()).select_from(schema.samples)) or 0)
