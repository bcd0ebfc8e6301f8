"""Tests what a registration may declare: options and their values, classes, and the place of the lock's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jobs.contract import JobKind, Table, TableLock
from jobs.format import hudi_options, index_definitions, lock_providers
from jobs.format.hudi_options import CLASSES, FORMS, MAX_TEXT
from jobs.hudi import indexes
from jobs.hudi import options as forced
from jobs.storage.permissions import Permissions

if TYPE_CHECKING:
    from pathlib import Path

ZK = "hoodie.write.lock.zookeeper"
HIVE_URIS = "hoodie.write.lock.hivemetastore.uris"


def refused(key: str, value: str = "1", *classes: str) -> list[str]:
    return [each.why for each in hudi_options.refusals({key: value}, classes)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.client.heartbeat.interval_in_ms", "1000"),
        ("hoodie.compaction.target.io", "512000"),
        ("hoodie.upsert.shuffle.parallelism", "8"),
        ("hoodie.parquet.compression.codec", "zstd"),
        ("hoodie.memory.merge.fraction", "0.6"),
        ("hoodie.index.bloom.fpp", "0.000000001"),
        ("hoodie.parquet.dictionary.enabled", "True"),
        ("hoodie.clustering.plan.strategy.partition.regex.pattern", "dt=2026-.*"),
        ("hoodie.compaction.payload.class", "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload"),
        ("hoodie.datasource.write.record.merger.impls", "org.apache.hudi.DefaultSparkRecordMerger"),
    ],
)
def test_options_of_table_services_are_allowed(key: str, value: str) -> None:
    assert refused(key, value) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.compaction.target.io", "many"),
        ("hoodie.compaction.target.io", ""),
        ("hoodie.compaction.target.io", "9999999999999999999"),
        ("hoodie.compaction.target.io", "\u0661"),
        ("hoodie.upsert.shuffle.parallelism", "2000000000"),
        ("hoodie.upsert.shuffle.parallelism", "-1"),
        ("hoodie.parquet.dictionary.enabled", "yes"),
        ("hoodie.parquet.compression.codec", "org/evil"),
        ("hoodie.payload.ordering.field", "ts\n"),
        ("hoodie.payload.ordering.field", "ts\x1b[2J"),
        ("hoodie.payload.ordering.field", "x" * (MAX_TEXT + 1)),
    ],
)
def test_values_of_options_are_checked_and_refusals_do_not_repeat_them(key: str, value: str) -> None:
    [why] = refused(key, value)
    assert why.startswith("its value must be")
    assert not value or value not in why


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("hoodie.base.path", "leads out of the table"),
        ("hoodie.timeline.path", "leads out of the table"),
        ("hoodie.memory.spillable.map.path", "leads out of the table"),
        ("hoodie.filesystem.view.spillable.dir", "leads out of the table"),
        ("hoodie.filesystem.view.rocksdb.base.path", "leads out of the table"),
        ("hoodie.metrics.on", "another system"),
        ("hoodie.metrics.reporter.class", "another system"),
        ("hoodie.metadata.metrics.enable", "another system"),
        ("hoodie.write.commit.callback.http.url", "another system"),
        ("hoodie.datasource.hive_sync.jdbcurl", "another system"),
        ("hoodie.datasource.meta.sync.enable", "another system"),
        ("hoodie.metaserver.uris", "another system"),
        ("hoodie.storage.class", "names a class"),
        ("hoodie.io.factory.class", "names a class"),
        ("hoodie.client.init.callback.classes", "another system"),
        ("hoodie.precommit.validators", "names a class"),
        ("hoodie.compaction.strategy", "names a class"),
        ("hoodie.write.lock.provider", "belongs to the lock"),
        ("fs.s3a.endpoint", "configured for a worker"),
        ("spark.hadoop.fs.s3a.impl", "configured for a worker"),
        ("hoodie.clean.automatic", "sets the others itself"),
        ("hoodie.clean.async.enabled", "sets the others itself"),
        ("hoodie.metadata.global.record.level.index.enable", "sets the others itself"),
        ("hoodie.base.path\n", "sets the others itself"),
        ("nonsense", "sets the others itself"),
        ("", "sets the others itself"),
    ],
)
def test_everything_else_is_refused_with_a_reason(key: str, why: str) -> None:
    [said] = refused(key)
    assert why in said


def test_no_allowed_option_undoes_what_a_job_sets() -> None:
    options = {
        **forced._NOTHING_BY_ITSELF,
        **forced._NO_TIMELINE_SERVER,
        **indexes.METADATA_AT_THE_END,
        **indexes._AS_THEY_ARE,
        **indexes._TIMELINE_SERVER,
        **forced.MULTI_WRITER,
        **forced.LENT_LOCK,
        **forced.LOCKED_WITHOUT_ROLLBACKS,
        **index_definitions.Indexes(frozenset(), {}).options(),
    }
    assert options.keys().isdisjoint({*FORMS, *CLASSES})


@pytest.mark.parametrize("key", sorted(CLASSES))
@pytest.mark.parametrize(
    "name",
    [
        "com.example.Evil",
        "org.apache.hudi.Evil",
        "org.apache.hudi.common.model../EvilPayload",
        "",
        "a,b",
        "javax.Script",
    ],
)
def test_a_class_is_hudis_own_of_that_kind_or_one_that_the_administrator_allows(key: str, name: str) -> None:
    assert set(refused(key, name)) == {"it names a class that is not allowed on this service"}
    assert refused(key, name, *(part.strip() for part in name.split(","))) == []


@pytest.mark.parametrize(
    ("provider", "options"),
    [
        ("filesystem", {"hoodie.write.lock.filesystem.expire": "10", "hoodie.write.lock.num_retries": "3"}),
        ("zookeeper", {f"{ZK}.url": "zk:2181", f"{ZK}.base_path": "/hudi", f"{ZK}.lock_key": "trips"}),
        (lock_providers.ZOOKEEPER[1], {f"{ZK}.url": "zk:2181", f"{ZK}.session_timeout_ms": "6000"}),
        (lock_providers.IN_STORAGE, {"hoodie.write.lock.storage.validity.timeout.secs": "300"}),
        (lock_providers.DYNAMODB[0], {"hoodie.write.lock.dynamodb.table": "t", "hoodie.aws.secret.key": "x"}),
        (lock_providers.HIVE, {"hoodie.write.lock.hivemetastore.uris": "thrift://hms:9083"}),
    ],
)
def test_each_of_hudis_lock_providers_has_its_own_options(provider: str, options: dict[str, str]) -> None:
    assert list(lock_providers.refusals(TableLock(provider, options), base_path="s3a://lake/trips")) == []
    odd = {"hoodie.write.lock.provider": "x", "hoodie.base.path": "/", "x": "y"}
    lock = TableLock(provider, {**options, **odd})
    fields = [each.field for each in lock_providers.refusals(lock, base_path="s3a://lake/trips")]
    assert fields == [f"lock.options.{key}" for key in odd]


@pytest.mark.parametrize(
    "provider",
    [
        "com.example.Lock",
        "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
        "org.apache.hudi.client.transaction.lock.NoopLockProvider",
    ],
)
def test_another_lock_provider_needs_the_administrator(provider: str) -> None:
    lock = TableLock(provider, {"hoodie.write.lock.of.its.own": "x"})
    [refusal] = lock_providers.refusals(lock, base_path="/lake")
    assert refusal.field == "lock.provider"
    assert "GROUNDSKEEPER_ALLOWED_CLASSES" in refusal.hint
    assert list(lock_providers.refusals(lock, [provider], base_path="/lake")) == []
    odd = TableLock(provider, {"hoodie.write.lock.provider": "x", "hoodie.base.path": "/"})
    assert len(list(lock_providers.refusals(odd, [provider], base_path="/lake"))) == 2


@pytest.mark.parametrize(
    ("lock", "servers"),
    [
        (TableLock("zookeeper", {f"{ZK}.url": "zk1:2182, zk2/hudi"}), [("zk1", 2182), ("zk2", 2181)]),
        (TableLock("zookeeper", {f"{ZK}.url": "[::1]:2181"}), [("::1", 2181)]),
        (TableLock(lock_providers.HIVE, {HIVE_URIS: "thrift://a:1,thrift://b"}), [("a", 1), ("b", 9083)]),
        (TableLock(lock_providers.HIVE), []),
        (TableLock("filesystem"), []),
    ],
)
def test_the_servers_of_a_lock_are_found_in_its_options(lock: TableLock, servers: list[tuple[str, int]]) -> None:
    assert lock_providers.servers_of(lock) == servers


@pytest.mark.parametrize("url", [":2181", "zk:port", "zk:99999", "zk1:2181,[::1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    [refusal] = lock_providers.refusals(TableLock("zookeeper", {f"{ZK}.url": url}), base_path="/lake")
    assert refusal.field == f"lock.options.{ZK}.url"


@pytest.mark.parametrize("base_path", ["/lake/trips", "file:/lake/trips", "hdfs://lake/trips"])
def test_a_lock_in_the_storage_needs_a_storage_that_has_one(base_path: str) -> None:
    lock = TableLock(lock_providers.IN_STORAGE)
    [refusal] = lock_providers.refusals(lock, base_path=base_path)
    assert refusal.field == "lock.provider"
    for scheme in ("s3", "s3a", "gs", "abfss"):
        assert list(lock_providers.refusals(lock, base_path=f"{scheme}://lake/trips")) == []


def lock_problems(base: Path, folder: str | None, *roots: str) -> list[str]:
    lock = TableLock("filesystem", {lock_providers.FOLDER: folder} if folder is not None else {})
    table = Table(str(base), "t", lock=lock)
    return [problem.detail for problem in Permissions(lock_roots=roots).problems(table)]


def test_the_file_of_a_lock_lies_below_the_table_or_a_root_of_locks(tmp_path: Path) -> None:
    base, locks = tmp_path / "table", tmp_path / "locks"
    base.mkdir()
    locks.mkdir()
    for folder in (None, f"{base}", f"{base}/.hoodie", f"file://{base}/locks"):
        assert lock_problems(base, folder) == []
    for folder in (f"{locks}", f"{locks}2", "/", "locks", "hdfs://nn/locks", f"{base}/../locks"):
        assert len(lock_problems(base, folder)) == 1, folder
    assert lock_problems(base, f"file:{locks}/a", str(locks)) == []
    for folder in (f"{locks}2", f"{locks}/../locks2", f"{base}/../locks"):
        assert len(lock_problems(base, folder, str(locks))) == 1, folder


def test_neither_its_folder_nor_the_file_itself_leads_out_by_a_link(tmp_path: Path) -> None:
    base, outside = tmp_path / "table", tmp_path / "outside"
    (base / ".hoodie").mkdir(parents=True)
    assert lock_problems(base, None) == []
    (base / ".hoodie" / "lock").symlink_to(outside)
    assert len(lock_problems(base, None)) == 1
    (base / ".hoodie" / "lock").unlink()
    (base / ".hoodie").rmdir()
    (base / ".hoodie").symlink_to(tmp_path)
    assert len(lock_problems(base, None)) == 1


def test_a_provider_given_by_its_class_is_the_same_lock(tmp_path: Path) -> None:
    assert lock_providers.is_in_a_file(lock_providers.FILESYSTEM)
    (tmp_path / "table").mkdir()
    lock = TableLock(lock_providers.FILESYSTEM, {lock_providers.FOLDER: str(tmp_path)})
    assert [each.type for each in Permissions().problems(Table(f"{tmp_path}/table", "t", lock=lock))] == [
        "option-not-allowed"
    ]


def test_a_worker_reads_the_settings_of_the_service() -> None:
    assert Permissions.of_environment({}) == Permissions(None, (), ())
    found = Permissions.of_environment(
        {
            "GROUNDSKEEPER_ALLOWED_ROOTS": "/lake, s3a://b",
            "GROUNDSKEEPER_LOCK_ROOTS": '["/locks"]',
            "GROUNDSKEEPER_ALLOWED_CLASSES": "com.example.Lock",
            "GROUNDSKEEPER_METASTORE_HOSTS": "metastore:9083",
        }
    )
    assert found == Permissions(("/lake", "s3a://b"), ("/locks",), ("com.example.Lock",), ("metastore:9083",))
    assert Permissions.of_environment({"GROUNDSKEEPER_ALLOWED_ROOTS": ""}).roots == ()


@pytest.mark.parametrize(
    ("hosts", "uris", "is_allowed"),
    [
        (("metastore",), "thrift://metastore:9083", True),
        (("Metastore:9083",), "thrift://metastore", True),
        (("::1",), "thrift://[::1]:9083", True),
        (("a", "b:1"), "thrift://a:5,thrift://b:1", True),
        (("a", "b:1"), "thrift://a:5,thrift://b:2", False),
        ((), "thrift://metastore:9083", False),
        # Without an address Hive would start a metastore in the worker.
        (("metastore",), "", False),
        (("metastore",), "thrift://metastore:x", False),
    ],
)
def test_a_sync_connects_only_to_allowed_metastores(hosts: tuple[str, ...], uris: str, is_allowed: bool) -> None:
    permissions = Permissions(metastore_hosts=hosts)
    problem = permissions.refused_metastore(JobKind.SYNC, {"metastore_uris": uris})
    assert (problem is None) is is_allowed
    assert problem is None or (problem.type, problem.detail) == ("metastore-not-allowed", uris)
    assert permissions.refused_metastore(JobKind.AUDIT, {}) is None
