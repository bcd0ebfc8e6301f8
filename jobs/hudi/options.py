"""Options of every Hudi client that we open. They make the client safe while writers are active, and let it run no
table service by itself. The comments give the reasons; the keys are those of Hudi 1.2.0."""

from __future__ import annotations

from jobs.contract import BucketIndex, TableLock
from jobs.format import lock_providers
from jobs.hudi import indexes
from jobs.hudi.lent_lock import LENT_LOCK
from jobs.hudi.table import HudiTable

# Hudi's default client does these by itself; our clients run each service only when a job says so.
_NOTHING_BY_ITSELF = {
    "hoodie.clean.automatic": "false",
    "hoodie.clean.async": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.archive.async": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.schedule.inline": "false",
    "hoodie.log.compaction.inline": "false",
    "hoodie.clustering.inline": "false",
    "hoodie.clustering.schedule.inline": "false",
    "hoodie.clustering.async.enabled": "false",
    "hoodie.write.commit.callback.on": "false",
}

# Properties of a table by which its rows are merged, such as the placeholder for a value that Debezium did not send. A
# compaction looks for them only in the options of its client (1.2.0). Without the option it would write the
# placeholder.
_MERGE_PROPERTIES = "hoodie.record.merge.property."

# A timeline server is only started for tables that need one (`jobs.hudi.indexes`). Timeline-server markers need it,
# direct ones do not.
_NO_TIMELINE_SERVER = {"hoodie.embed.timeline.server": "false", "hoodie.write.markers.type": "DIRECT"}


# Hudi's default. `jobs.hudi.storage_reads` changes it for all logs except those that a compaction by Hudi reads.
_BUFFER_OF_MERGES = {"hoodie.memory.dfs.buffer.max.size": str(16 << 20)}


def lock_options(lock: TableLock) -> dict[str, str]:
    """Returns the options of the writers' lock. There are many short retries, so that a table service, and not a
    writer, is the one that waits."""
    kind = lock_providers.class_of(lock.provider)
    # For DynamoDB this is also the lease (`DynamoDBBasedLockProviderBase`), 60 s by default. A wait for a lock in the
    # storage cannot be interrupted, so it is shorter.
    milliseconds = "2000" if kind == lock_providers.IN_STORAGE else "5000"
    wait = {} if kind in lock_providers.DYNAMODB else {"hoodie.write.lock.wait_time_ms": milliseconds}
    return {
        "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
        "hoodie.write.lock.client.num_retries": "600",
        "hoodie.write.lock.wait_time_ms_between_retry": "100",
        "hoodie.write.lock.num_retries": "10",
        **wait,
        **lock.options,
        "hoodie.write.lock.provider": kind,
    }


def client_options(table: HudiTable) -> dict[str, str]:
    """Returns the options of every client of a table. The owner's options may add to them but not undo them."""
    options = {
        **_BUFFER_OF_MERGES,
        **table.declared.hudi_options,
        **{name: value for name, value in table.properties.items() if name.startswith(_MERGE_PROPERTIES)},
        **_NOTHING_BY_ITSELF,
        **_NO_TIMELINE_SERVER,
        **indexes.options(table),
        **(indexes.beside_flink(table) if table.may_have_flink is not None else {}),
        **indexes.beside_older_writers(table),
        "hoodie.table.name": table.name,
        "hoodie.write.table.version": str(table.version),
        "hoodie.write.auto.upgrade": "false",
        # Our clients compute no keys: all rows keep the stored ones. The validation would prevent any client, even for
        # a rollback, on a table whose complex key generator has one field.
        "hoodie.write.complex.keygen.validation.enable": "false",
    }
    if not table.has_meta_fields:
        # Hudi refuses a client with meta fields on such a table, even during a rollback. A client without them computes
        # the keys of rows.
        options |= {"hoodie.populate.meta.fields": "false", **stored_options(table)}
    return options


def stored_options(table: HudiTable) -> dict[str, str]:
    """Returns the options that make a client compute keys, partitions and ordering of rows by the table's
    properties."""
    properties = table.properties
    stored = {
        "hoodie.datasource.write.table.type": properties.get("hoodie.table.type"),
        "hoodie.datasource.write.recordkey.field": ",".join(table.record_key_fields),
        "hoodie.datasource.write.partitionpath.field": properties.get("hoodie.table.partition.fields", ""),
        "hoodie.datasource.write.precombine.field": ",".join(table.ordering_fields) or None,
        "hoodie.datasource.write.keygenerator.class": properties.get("hoodie.table.keygenerator.class"),
        "hoodie.datasource.write.keygenerator.type": properties.get("hoodie.table.keygenerator.type"),
        "hoodie.datasource.write.hive_style_partitioning": properties.get(
            "hoodie.datasource.write.hive_style_partitioning"
        ),
        "hoodie.datasource.write.partitionpath.urlencode": properties.get(
            "hoodie.datasource.write.partitionpath.urlencode"
        ),
    }
    return {key: value for key, value in stored.items() if value is not None}


def bucket_index_options(
    index: BucketIndex, record_key_fields: tuple[str, ...], expressions: str | None
) -> dict[str, str]:
    """Returns the options of the simple bucket index. `expressions` are those of the table's hashing config, if there
    is one. A rollback removes the hashing config of its instant only if the expressions are set
    (`BaseRollbackActionExecutor`); a remaining config would count as committed."""
    options = {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.datasource.write.recordkey.field": ",".join(record_key_fields),
        "hoodie.bucket.index.hash.field": ",".join(index.hash_fields),
        "hoodie.bucket.index.num.buckets": str(index.num_buckets),
    }
    if expressions:
        options["hoodie.bucket.index.partition.expressions"] = expressions
        options["hoodie.bucket.index.partition.rule.type"] = "regex"
    return options


# Optimistic concurrency control, like the writers.
MULTI_WRITER = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.clean.failed.writes.policy": "LAZY",
}

# Locks, but leaves other writers' unfinished instants alone. LAZY would roll back every instant without a heartbeat,
# and a writer in single-writer mode has none although it is alive.
LOCKED_WITHOUT_ROLLBACKS = {
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.clean.failed.writes.policy": "NEVER",
    **LENT_LOCK,
}

# Takes no lock: for use while we hold it ourselves (locks are not re-entrant). LAZY gives our instant a heartbeat.
UNDER_OUR_LOCK = {
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.clean.failed.writes.policy": "LAZY",
}

# Rows keep the change that made them (`_hoodie_operation`). A delete is then a row of a log with the operation D, which
# a client without this option takes for a living row.
WITH_OPERATIONS = {"hoodie.allow.operation.metadata.field": "true"}

# Takes no lock either, and leaves other writers' unfinished instants alone, as `LOCKED_WITHOUT_ROLLBACKS` does.
UNDER_OUR_LOCK_WITHOUT_ROLLBACKS = {
    "hoodie.write.concurrency.mode": "single_writer",
    "hoodie.clean.failed.writes.policy": "NEVER",
}

# Any client first compacts the metadata table if that is due. A metadata table cannot be rolled back behind its last
# compaction (`HoodieBackedTableMetadataWriter.validateRollback`). The rollback of a completed commit would then fail
# half way, and every attempt to finish it would fail, too.
METADATA_NOT_COMPACTED = {
    "hoodie.metadata.compact.trigger.strategy": "NUM_COMMITS",
    "hoodie.metadata.compact.max.delta.commits": str(10**6),
    "hoodie.metadata.log.compaction.enable": "false",
}
