from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jobs.contract import BucketIndex, TableLock
from service.model.registration import Registration
from service.policy.writer_options import Callback, Engine, WriterOptions, writer_options

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLBACK = Callback("http://gk/v1/callbacks/hudi")


def options(
    engine: Engine = Engine.SPARK,
    *,
    index: BucketIndex | None = None,
    lock: TableLock | None = None,
    num_buckets: int = 0,
    callback: Callback = CALLBACK,
) -> WriterOptions:
    table = Registration("t", "/lake/t", "t", NOW, NOW, index=index, lock=lock or TableLock())
    return writer_options(table, engine, lock_options=table.lock.options, num_buckets=num_buckets, callback=callback)


@pytest.mark.parametrize("engine", list(Engine))
def test_every_writer_shares_the_table_leaves_services_alone_and_calls_back(engine: Engine) -> None:
    found = options(engine).options
    assert found["hoodie.write.concurrency.mode"] == "optimistic_concurrency_control"
    assert found["hoodie.clean.failed.writes.policy"] == "LAZY"
    assert int(found["hoodie.write.num.retries.on.conflict.failures"]) >= 1
    assert (
        found["hoodie.compact.inline"]
        == found["hoodie.clean.automatic"]
        == found["hoodie.clustering.inline"]
        == "false"
    )
    assert found["hoodie.write.commit.callback.http.url"] == CALLBACK.url


@pytest.mark.parametrize(
    ("provider", "option"),
    [
        ("filesystem", "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"),
        ("zookeeper", "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"),
        ("com.example.Lock", "com.example.Lock"),
    ],
)
def test_the_lock_is_the_tables_own(provider: str, option: str) -> None:
    found = options(lock=TableLock(provider, {"hoodie.write.lock.provider": "another", "x": "y"})).options
    assert (found["hoodie.write.lock.provider"], found["x"]) == (option, "y")


@pytest.mark.parametrize(("engine", "name"), [(Engine.SPARK, "hoodie.index.type"), (Engine.FLINK, "index.type")])
def test_the_number_of_buckets_is_the_present_one_and_a_change_is_told(engine: Engine, name: str) -> None:
    found = options(engine, index=BucketIndex(4, ("a", "b")), num_buckets=8)
    assert found.options[name] == "BUCKET"
    assert found.options["hoodie.bucket.index.num.buckets"] == "8"
    assert found.options["hoodie.bucket.index.hash.field"] == "a,b"
    assert any("registered with 4 buckets" in note for note in found.notes)


def test_a_number_that_never_changed_needs_no_note() -> None:
    assert not any("registered with" in note for note in options(index=BucketIndex(4, ("a",)), num_buckets=4).notes)


def test_only_a_spark_writer_without_a_bucket_index_is_told_how_to_get_along_with_hudis_clustering() -> None:
    name = "hoodie.clustering.rollback.pending.replacecommit.on.conflict"
    assert name in options().options
    assert name not in options(index=BucketIndex(4, ("a",)), num_buckets=4).options
    assert name not in options(Engine.FLINK).options


def test_a_key_and_headers_are_asked_for_only_if_the_service_wants_them() -> None:
    key, headers = "hoodie.write.commit.callback.http.api.key", "hoodie.write.commit.callback.http.custom.headers"
    assert not {key, headers} & set(options().options)
    found = options(callback=Callback("http://gk", key="<key>", headers="Authorization:Bearer <token>")).options
    assert (found[key], found[headers]) == ("<key>", "Authorization:Bearer <token>")
