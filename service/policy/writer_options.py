"""The options that a writer of a table needs beside this service, in the words of its engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.model.registration import Registration


class Engine(StrEnum):
    SPARK = "spark"
    FLINK = "flink"


@dataclass(frozen=True)
class Callback:
    """`headers` and `key` are what the service wants to see from whoever calls, as far as it wants any."""

    url: str
    key: str | None = None
    headers: str | None = None


@dataclass(frozen=True)
class WriterOptions:
    """`notes` are sentences about what options cannot say."""

    options: Mapping[str, str]
    notes: tuple[str, ...] = field(default=())


_LOCK_PROVIDERS = {
    "filesystem": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "zookeeper": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
}
_RETRIES = "3"

_BESIDE_OTHERS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    # EAGER would roll back whatever else is in flight, ours too.
    "hoodie.clean.failed.writes.policy": "LAZY",
    # A batch that conflicts with an expansion is written again instead of failing.
    "hoodie.write.num.retries.on.conflict.failures": _RETRIES,
}
_NO_SERVICES = {
    "hoodie.compact.inline": "false",
    "hoodie.compact.schedule.inline": "false",
    "hoodie.log.compaction.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.clean.async.enabled": "false",
    "hoodie.clustering.inline": "false",
    "hoodie.clustering.schedule.inline": "false",
    "hoodie.clustering.async.enabled": "false",
}
_NO_SERVICES_OF = {
    Engine.SPARK: {"hoodie.datasource.compaction.async.enable": "false"},
    # Hudi's `FlinkOptions`: by default a Flink writer schedules, compacts and cleans.
    Engine.FLINK: {
        "compaction.schedule.enabled": "false",
        "compaction.async.enabled": "false",
        "clean.async.enabled": "false",
        "clustering.schedule.enabled": "false",
        "clustering.async.enabled": "false",
    },
}
# Else Hudi lets a Spark writer fail that updates file groups which a clustering is about to replace.
_BEFORE_CLUSTERING = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}


def writer_options(
    table: Registration, engine: Engine, *, lock_options: Mapping[str, str], num_buckets: int, callback: Callback
) -> WriterOptions:
    """`lock_options` are the table's as they may be shown. `num_buckets` is the present number, 0 without an index."""
    options = {
        **_BESIDE_OTHERS,
        **lock_options,
        "hoodie.write.lock.provider": _LOCK_PROVIDERS.get(table.lock.provider, table.lock.provider),
        **_NO_SERVICES,
        **_NO_SERVICES_OF[engine],
        "hoodie.write.commit.callback.on": "true",
        "hoodie.write.commit.callback.http.url": callback.url,
    }
    if callback.key:
        options["hoodie.write.commit.callback.http.api.key"] = callback.key
    if callback.headers:
        options["hoodie.write.commit.callback.http.custom.headers"] = callback.headers
    if table.index:
        options["index.type" if engine is Engine.FLINK else "hoodie.index.type"] = "BUCKET"
        options["hoodie.index.bucket.engine"] = "SIMPLE"
        options["hoodie.bucket.index.hash.field"] = ",".join(table.index.hash_fields)
        options["hoodie.bucket.index.num.buckets"] = str(num_buckets)
    elif engine is Engine.SPARK:
        options |= _BEFORE_CLUSTERING
    return WriterOptions(options, tuple(_notes(table, engine, num_buckets)))


def _notes(table: Registration, engine: Engine, num_buckets: int) -> list[str]:
    notes = []
    if table.index and num_buckets != table.index.num_buckets:
        notes.append(
            f"The table was registered with {table.index.num_buckets} buckets and has a hashing config by now, which"
            " gives each partition its number. A writer of Hudi 1.1 or later follows it, whatever its option says."
        )
    if table.index and engine is Engine.SPARK:
        notes.append("In local mode use the master local[N,F], such as local[2,4]: Hudi 1.2 now and then fails a task.")
    if engine is Engine.FLINK and table.index:
        notes.append("A Flink job reads the number of buckets once: stop it before a bucket expansion.")
    if table.lock.provider == "filesystem":
        notes.append("Hudi's filesystem lock is for writers on one machine. It never expires unless it is told to.")
    return notes
