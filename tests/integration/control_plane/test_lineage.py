"""Tests what OpenLineage events of readers tell about how often tables are read."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from service.access.token import Role
from service.catalog import table_store
from service.catalog.registration import Readers, Registration
from service.db.engine import reading, writing
from service.outcome import read_store
from service.outcome.reads import DEFAULT_PER_DAY, Reads, ReadSource, reads_of
from service.outcome.typical_reads import assumed, reads_of_table

if TYPE_CHECKING:
    from collections.abc import Callable

    import sqlalchemy as sa
    from fastapi.testclient import TestClient

    from tests.integration.control_plane.conftest import FakeClock

SPARK = "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/integration/spark"


def event(run: str, *inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "eventType": "COMPLETE",
        "eventTime": "1970-01-01T00:00:00Z",
        "producer": SPARK,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run, "facets": {"spark_properties": {"x": [1, {"y": None}]}}},
        "job": {"namespace": "shop", "name": "daily_report"},
        "inputs": list(inputs),
        "outputs": [],
        **more,
    }


def dataset(namespace: str, name: str, *symlinks: tuple[str, str]) -> dict[str, Any]:
    identifiers = [{"namespace": one, "name": other, "type": "TABLE"} for one, other in symlinks]
    return {"namespace": namespace, "name": name, "facets": {"symlinks": {"identifiers": identifiers}}}


def register(engine: sa.Engine, clock: FakeClock, *paths: str) -> None:
    with writing(engine) as connection:
        for path in paths:
            name = path.rpartition("/")[2]
            table_store.register(connection, Registration(path, path, name, clock(), clock()))


def reads(engine: sa.Engine, clock: FakeClock, table_id: str) -> Reads:
    with reading(engine) as connection:
        return reads_of(None, read_store.seen(connection, table_id, clock()))


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/lake/orders", dataset("file", "/lake/orders")),
        ("/lake/orders", dataset("file", "/lake/orders/")),
        ("s3a://lake/orders", dataset("s3://lake", "orders")),
        ("s3a://lake/shop/orders", dataset("s3a://lake", "/shop/orders/")),
        ("hdfs://nn/lake/orders", dataset("hdfs://nn:8020", "/lake/orders")),
        ("/lake/orders", dataset("s3://other", "x", ("hive://metastore:9083", "shop.orders"))),
        ("/lake/orders", dataset("trino://coordinator:8080", "hive.shop.orders")),
        ("/lake/orders", dataset("hive://metastore:9083", "shop.orders", ("file", "/lake/orders"))),
    ],
)
def test_a_table_is_found_by_its_path_or_by_its_name_in_a_catalog(
    client: TestClient, sqlite: sa.Engine, clock: FakeClock, path: str, given: dict[str, Any]
) -> None:
    register(sqlite, clock, path)
    answer = client.post("/v1/lineage", json=event("r1", given))
    assert (answer.status_code, answer.json()) == (200, {"counted": 1, "repeated": 0, "unknown": 0})
    assert reads(sqlite, clock, path).source is ReadSource.LINEAGE


@pytest.mark.parametrize(
    "given",
    [
        dataset("postgres://db:5432", "shop.public.orders"),
        dataset("kafka://broker:9092", "orders"),
        dataset("file", "/lake/orders/region=eu"),
        dataset("s3://lake", "../lake/orders"),
        dataset("file", "orders"),
        dataset("", ""),
        dataset("hive://metastore", "x" * 4096),
        {"namespace": "x", "name": "y", "facets": {"symlinks": "no"}},
        {
            "namespace": "x",
            "name": "y",
            "facets": {"symlinks": {"identifiers": [None, {"name": 3}, {"namespace": []}]}},
        },
    ],
)
def test_other_datasets_are_only_counted(
    client: TestClient, sqlite: sa.Engine, clock: FakeClock, given: dict[str, Any]
) -> None:
    register(sqlite, clock, "/lake/orders")
    assert client.post("/v1/lineage", json=event("r1", given)).json() == {"counted": 0, "repeated": 0, "unknown": 1}
    assert reads(sqlite, clock, "/lake/orders") == Reads(DEFAULT_PER_DAY, ReadSource.ASSUMED)


def test_a_name_that_two_tables_share_counts_for_neither(
    client: TestClient, sqlite: sa.Engine, clock: FakeClock
) -> None:
    register(sqlite, clock, "/eu/orders", "/us/orders")
    answer = client.post("/v1/lineage", json=event("r1", dataset("hive://m:9083", "shop.orders")))
    assert answer.json()["unknown"] == 1


def test_a_run_counts_once_for_each_table_whatever_it_sends(
    client: TestClient, sqlite: sa.Engine, clock: FakeClock
) -> None:
    register(sqlite, clock, "/lake/orders", "/lake/clicks")
    orders, clicks = dataset("file", "/lake/orders"), dataset("file", "/lake/clicks")
    sent = [event("r1", orders, eventType="START"), event("r1", orders, orders, clicks), event("r1", orders)]
    answers = [client.post("/v1/lineage", json=each).json() for each in sent]
    assert [(each["counted"], each["repeated"]) for each in answers] == [(1, 0), (1, 1), (0, 1)]
    assert client.post("/v1/lineage", json=event("r2", orders)).json()["counted"] == 1
    with reading(sqlite) as connection:
        assert read_store.seen(connection, "/lake/orders", clock()) == {ReadSource.LINEAGE: {0: 2}}


@pytest.mark.parametrize(
    "body",
    [
        {"producer": SPARK, "dataset": {"namespace": "file", "name": "/lake/orders"}},
        event("r1", dataset("file", "/lake/orders"), producer="urn:groundskeeper:service:1.0"),
        event("r1", inputs=None),
    ],
)
def test_events_without_a_read_are_accepted(
    client: TestClient, sqlite: sa.Engine, clock: FakeClock, body: dict[str, Any]
) -> None:
    register(sqlite, clock, "/lake/orders")
    answer = client.post("/v1/lineage", json=body)
    assert (answer.status_code, answer.json()) == (200, {"counted": 0, "repeated": 0, "unknown": 0})


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"run": {"runId": ""}, "inputs": []},
        {"run": {"runId": "x" * 257}, "inputs": []},
        {"run": {"runId": "a\0b"}, "inputs": []},
        {"run": {"runId": "r"}, "inputs": [{"namespace": "file"}]},
        {"run": {"runId": "r"}, "inputs": [{"namespace": "file", "name": "x"}] * 10_001},
    ],
)
def test_a_body_that_is_not_an_event_is_refused(client: TestClient, body: Any) -> None:
    answer = client.post("/v1/lineage", json=body)
    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (422, "params-invalid")


def test_only_an_operator_may_send_lineage_events(
    client: TestClient, make_token: Callable[..., dict[str, str]]
) -> None:
    refused = client.post("/v1/lineage", json=event("r"), headers=make_token(Role.READER))
    assert refused.status_code == 403
    assert client.post("/v1/lineage", json=event("r"), headers=make_token(Role.OPERATOR)).status_code == 200


def test_old_reads_are_deleted_except_the_last_one(engine: sa.Engine, clock: FakeClock) -> None:
    register(engine, clock, "/lake/orders")
    for hour in range(48):
        with writing(engine) as connection:
            read_store.count_run(connection, f"r{hour}", ["/lake/orders"], ReadSource.LINEAGE, clock())
            assert read_store.count_run(connection, f"r{hour}", ["/lake/orders"], ReadSource.LINEAGE, clock()) == 0
        clock.advance(3600)
    assert reads(engine, clock, "/lake/orders").per_day == pytest.approx(24, rel=0.1)
    clock.advance(86_400)
    assert reads(engine, clock, "/lake/orders").per_day == pytest.approx(11, rel=0.2)
    clock.advance(9 * 86_400)
    with writing(engine) as connection:
        assert read_store.prune(connection, clock(), 1000) == 47 + 48
    assert reads(engine, clock, "/lake/orders").have_stopped
    # The number of reads is never negative, even after the clock was set back.
    clock.advance(-20 * 86_400)
    assert reads(engine, clock, "/lake/orders").per_day >= 0


def test_a_number_of_reads_set_by_hand_overrides_all_others(client: TestClient, table_id: str) -> None:
    assert client.get(f"/v1/tables/{table_id}").json()["readers"]["reads_per_day"] is None
    changed = client.patch(f"/v1/tables/{table_id}", json={"readers": {"reads_per_day": 240}})
    assert changed.json()["readers"] == {"hudi_version": None, "reads_per_day": 240.0}
    assert client.patch(f"/v1/tables/{table_id}", json={"readers": {"reads_per_day": -1}}).status_code == 422
    assert reads_of(240.0, {ReadSource.LINEAGE: {0: 1}}) == Reads(240.0, ReadSource.OWNER)


def test_reads_that_several_sources_report_count_once() -> None:
    found = reads_of(None, {ReadSource.LINEAGE: {0: 10}, ReadSource.CONSUMERS: {0: 4}})
    assert found.source is ReadSource.LINEAGE
    assert found == reads_of(None, {ReadSource.LINEAGE: {0: 10}})
    assert reads_of(None, {}).text == "reads unknown: 24 a day assumed"


def test_unknown_reads_are_those_of_a_typical_table(engine: sa.Engine, clock: FakeClock) -> None:
    paths = [f"/lake/t{number}" for number in range(6)]
    register(engine, clock, *paths)
    with writing(engine) as connection:
        declared = table_store.get(connection, paths[0]).evolve(readers=Readers(reads_per_day=100.0))
        table_store.change(connection, declared)
        read_store.count(connection, {paths[1]: 400, paths[2]: 2}, ReadSource.LINEAGE, clock())
        stopped = table_store.get(connection, paths[3]).evolve(readers=Readers(reads_per_day=0.0))
        table_store.change(connection, stopped)
        found = reads_of_table(connection, table_store.get(connection, paths[5]), clock())
        known = reads_of_table(connection, table_store.get(connection, paths[2]), clock())
    # The median of three tables with 2, 100 and 400 reads. The table that is read no more does not count.
    assert (found.per_day, found.of_tables, found.source) == (100.0, 3, ReadSource.ASSUMED)
    assert found.text == "reads unknown: 100 a day assumed, the median of 3 tables"
    assert known.source is ReadSource.LINEAGE
    # The answer is cached for a while. A clock that steps back does not keep the cache valid for ever.
    with writing(engine) as connection:
        read_store.count(connection, {paths[4]: 1}, ReadSource.LINEAGE, clock())
        assert assumed(connection, clock()) == found
        assert assumed(connection, clock() - timedelta(hours=1)).of_tables == 4
