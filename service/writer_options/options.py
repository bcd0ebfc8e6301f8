"""The options that a table's writer needs while this service runs table services, in the syntax of its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.contract import WriterEngine
from jobs.format import lock_providers
from jobs.format.hudi_versions import release
from service.delegation import writer_options as delegation
from service.lake.table import TableType
from service.writer_options import writer_notes
from service.writer_options.known_options import known, table_version_of
from service.writer_options.statements import creating
from service.writer_options.written_table import Callback, Target


@dataclass(frozen=True)
class WriterOptions:
    options: Mapping[str, str]
    session_conf: Mapping[str, str] = field(default_factory=dict)  # Options to set before the Spark session starts.
    sql: Mapping[str, str] = field(default_factory=dict)  # The same options as SQL, by purpose.
    notes: tuple[str, ...] = ()  # Notes about needs that options cannot express.


_RETRIES = "hoodie.write.num.retries.on.conflict.failures"

# EAGER would roll back every other inflight instant, including those of Groundskeeper's jobs.
_LAZY = {"hoodie.clean.failed.writes.policy": "LAZY"}
_NON_BLOCKING = {"hoodie.write.concurrency.mode": "non_blocking_concurrency_control", **_LAZY}
_BESIDE_OTHERS = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control", **_LAZY}
_BESIDE_OTHERS_OF = {
    # A batch that conflicts with an expansion is written again instead of failing.
    WriterEngine.SPARK: {**_BESIDE_OTHERS, _RETRIES: "3"},
    # A statement has read the locations of its rows before the conflict. So a retry by Hudi would write to the same
    # files, although they have been replaced.
    WriterEngine.SPARK_SQL: {**_BESIDE_OTHERS, _RETRIES: "0"},
    # Under optimistic concurrency control a Flink job conflicts with itself, because it flushes a checkpoint before the
    # previous one is committed. The job still takes the lock, for the metadata table.
    WriterEngine.FLINK: {
        "hoodie.write.concurrency.mode": "single_writer",
        **_LAZY,
        # The option marks the commits as those of Flink.
        "write.extra.metadata.enabled": "true",
        # Waits for the lock must be short, because Flink's coordinator waits inside a call that lasts at most
        # `pekko.ask.timeout`.
        "hoodie.write.lock.client.wait_time_ms_between_retry": "250",
        "hoodie.write.lock.client.num_retries": "200",
    },
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
    WriterEngine.SPARK: {"hoodie.datasource.compaction.async.enable": "false"},
    WriterEngine.SPARK_SQL: {"hoodie.datasource.compaction.async.enable": "false"},
    # A Flink writer schedules, compacts and cleans by default (Hudi's `FlinkOptions`).
    WriterEngine.FLINK: {
        "compaction.schedule.enabled": "false",
        "compaction.async.enabled": "false",
        "clean.async.enabled": "false",
        "clustering.schedule.enabled": "false",
        "clustering.async.enabled": "false",
    },
}
# Without these options Hudi fails a Spark writer that updates file groups which a pending clustering will replace. A
# writer must not roll back such a clustering either: the clustering may have completed after the writer has read the
# timeline, and then the rollback deletes its files (Hudi 0.15 to 1.2).
_BESIDE_CLUSTERING = {
    "hoodie.clustering.updates.strategy": "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "false",
}

# Flink writes the metadata table at the end of its instants. If other instants of the metadata table are open at that
# time, Flink considers them dead. Without this option, Spark opens its instant in the metadata table at the beginning.
# A Flink job that finds its rows by the record index opens its instant at the beginning, too: a writer with this option
# would end that Flink job for good.
_METADATA_AT_THE_END = {"hoodie.metadata.streaming.write.enabled": "false"}

# When a compaction ends during a write, Hudi 1.2's partition statistics of that write cover only the rows of the write.
# Until the next commit in the partition, queries with a filter miss the partition's other rows, and so does an `UPDATE`
# with a filter.
_NO_DATA_SKIPPING = {"hoodie.enable.data.skipping": "false"}
# `UPDATE` and `DELETE` of Spark SQL would write to the file groups in which they found their rows, even if these file
# groups have been replaced. Without optimized writes, the statements compute the buckets when they write, as every
# upsert does. On a table with consistent hashing, optimized statements also have no effect if there is a newer base
# file (`jobs.services.checks.statements`).
_LOOKED_UP_ANEW = {"hoodie.spark.sql.optimized.writes.enable": "false"}


def writer_options(target: Target, engine: WriterEngine, *, callback: Callback, manager: str = "") -> WriterOptions:
    """Returns a writer's options. `manager` is the URL of the service to which the writer delegates plans, or ""."""
    options = {
        **_version_of_table(target),
        **target.lock_options,
        **(_NON_BLOCKING if target.is_non_blocking else _BESIDE_OTHERS_OF[engine]),
        "hoodie.write.lock.provider": lock_providers.class_of(target.lock_provider),
        **_NO_SERVICES,
        **_NO_SERVICES_OF[engine],
        **delegation.options(engine, manager, target.table_type),
        "hoodie.write.commit.callback.on": "true",
        "hoodie.write.commit.callback.http.url": callback.url,
    }
    if callback.key:
        options["hoodie.write.commit.callback.http.api.key"] = callback.key
    if callback.headers:
        options["hoodie.write.commit.callback.http.custom.headers"] = callback.headers
    options |= _index(target, engine)
    if engine is not WriterEngine.FLINK:
        options |= {**_NO_DATA_SKIPPING, **target.index_options}
    if target.has_flink and engine is not WriterEngine.FLINK and not target.has_record_index:
        options |= _METADATA_AT_THE_END
    notes = (*writer_notes.of(target, engine), *delegation.notes(engine, manager, target.index))
    match engine:
        case WriterEngine.FLINK:
            options = known({**_table_for_flink(target), **options}, target.hudi_version)
            return WriterOptions(options, sql=_statements(target, engine, {"with": _with(options)}), notes=notes)
        case WriterEngine.SPARK:
            options = known({**_table_for_spark(target), **options}, target.hudi_version)
            return WriterOptions(options, session_conf=writer_notes.FRESH_SESSION, notes=notes)
        case WriterEngine.SPARK_SQL:
            options = known(options, target.hudi_version)
            sql = {"set": "\n".join(_set(key, value) for key, value in options.items())}
            if not target.exists:
                sql["tblproperties"] = _tblproperties(target)
            return WriterOptions(
                options, session_conf=writer_notes.FRESH_SESSION, sql=_statements(target, engine, sql), notes=notes
            )


def _statements(target: Target, engine: WriterEngine, sql: dict[str, str]) -> dict[str, str]:
    """Returns the SQL of `sql`, and the statement that creates the table in a catalog, if there is such a statement."""
    statement = creating(target, engine, sql.get("with", ""))
    return {**sql, "create": statement} if statement else sql


def _version_of_table(target: Target) -> dict[str, str]:
    """Returns the options that prevent an upgrade of the table. A writer would upgrade the table to its own version by
    default, and other readers and writers may not support that version."""
    version = target.table_version or (None if target.exists else table_version_of(target.hudi_version))
    return {} if version is None else {"hoodie.write.table.version": str(version), "hoodie.write.auto.upgrade": "false"}


def _index(target: Target, engine: WriterEngine) -> dict[str, str]:
    is_flink = engine is WriterEngine.FLINK
    if target.index is None and not target.has_consistent_hashing:
        if is_flink:
            return dict(writer_notes.LOADED_INDEX) if target.exists else {}
        return dict(_BESIDE_CLUSTERING)
    options = {
        "index.type" if is_flink else "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING" if target.has_consistent_hashing else "SIMPLE",
    }
    if target.index:
        options["hoodie.bucket.index.hash.field"] = ",".join(target.index.hash_fields)
        options["hoodie.bucket.index.num.buckets"] = str(target.num_buckets)
        options |= {} if is_flink else writer_notes.NO_PRUNING
    return options if is_flink else options | _LOOKED_UP_ANEW


def _table_for_flink(target: Target) -> dict[str, str]:
    """Returns the options that a Flink SQL table needs, for an existing or a new Hudi table."""
    # Flink resolves a path without a scheme in the cluster's default file system.
    path = f"file://{target.base_path}" if target.base_path.startswith("/") else target.base_path
    options = {"connector": "hudi", "path": path}
    if target.table_type:
        options["table.type"] = target.table_type.value
    named = {
        "hoodie.table.name": (target.name,) if target.name and not target.exists else (),
        "hoodie.datasource.write.recordkey.field": target.record_key_fields,
        "hoodie.datasource.write.partitionpath.field": target.partition_fields,
        "ordering.fields": target.ordering_fields,
    }
    return options | {key: ",".join(fields) for key, fields in named.items() if fields}


def _table_for_spark(target: Target) -> dict[str, str]:
    """Returns the options that the first write stores in the table. An existing table has them already."""
    if target.exists:
        return {}
    named = {
        "hoodie.table.name": (target.name,) if target.name else (),
        "hoodie.datasource.write.table.type": (target.table_type.value,) if target.table_type else (),
        "hoodie.datasource.write.recordkey.field": target.record_key_fields,
        "hoodie.datasource.write.partitionpath.field": target.partition_fields,
        # Hudi 1.0 orders a table by commit time for good if the table was created without this option.
        "hoodie.datasource.write.precombine.field": target.ordering_fields,
        "hoodie.table.ordering.fields": target.ordering_fields,
    }
    return {key: ",".join(fields) for key, fields in named.items() if fields}


def _tblproperties(target: Target) -> str:
    short = {TableType.COPY_ON_WRITE: "cow", TableType.MERGE_ON_READ: "mor"}
    named = {
        "type": (short[target.table_type],) if target.table_type else (),
        "primaryKey": target.record_key_fields,
        "orderingFields" if release(target.hudi_version) >= (1, 1) else "preCombineField": target.ordering_fields,
    }
    listed = ", ".join(f"{key} = {_quoted(','.join(fields))}" for key, fields in named.items() if fields)
    return f"TBLPROPERTIES ({listed})"


def _with(options: Mapping[str, str]) -> str:
    listed = ",\n".join(f"  {_quoted(key)} = {_quoted(value)}" for key, value in options.items())
    return f"WITH (\n{listed}\n)"


def _set(key: str, value: str) -> str:
    # Spark takes everything up to the semicolon as the value, unless it is quoted.
    quoted = "`" + value.replace("`", "``") + "`"
    return f"SET {key}={value if not set(value) & set(';`') else quoted};"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
