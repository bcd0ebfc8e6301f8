"""Writes rows under the record keys and partition paths that the table has stored for them.

Hudi's data source computes keys from the columns, with a key generator and options that the table stores only in part:
for example, only the writers know the complex generator's encoding and the unit of a timestamp. A row with another key
would be a new row. So these writes make Hudi take the keys from the meta columns, as for the rows of Spark SQL's
`UPDATE` (`HoodieCreateRecordUtils`, 1.2.0: prepped records), and find the file groups by its index, as for any upsert.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know
from pyspark.sql.types import StructType

from jobs.errors import JobError
from jobs.format import kafka_connect
from jobs.format.index_definitions import GLOBAL_TYPES, INDEX_TYPE
from jobs.format.meta_columns import PARTITION_PATH, RECORD_KEY
from jobs.hudi import ended_instant, hashing_metadata
from jobs.hudi.client_part import ClientPart, present_schema
from jobs.hudi.jvm import translated
from jobs.hudi.merging import schema_on_read_of
from jobs.hudi.metadata_rollbacks import continued
from jobs.hudi.options import METADATA_NOT_COMPACTED
from jobs.hudi.table import HudiTable
from jobs.lock_errors import LockLostError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


logger = logging.getLogger(__name__)

_MODEL = "org.apache.hudi.common.model"
_LATEST, _BY_FIELD = "OverwriteWithLatestAvroPayload", "DefaultHoodieRecordPayload"
Key = tuple[str, str]
"""Partition path and record key."""
_PREPPED = "_hoodie.spark.sql.writes.prepped"


def keyed_write_options(table: HudiTable) -> dict[str, str]:
    """Returns the options of a client for such writes: the table's ordering and merging, and low parallelism."""
    properties = table.properties
    mode = properties.get("hoodie.record.merge.mode", "")
    by_default = _BY_FIELD if table.orders_by_field else _LATEST
    payload = properties.get("hoodie.compaction.payload.class", f"{_MODEL}.{by_default}")
    stored = {
        "hoodie.table.type": properties.get("hoodie.table.type"),
        "hoodie.datasource.write.table.type": properties.get("hoodie.table.type"),
        "hoodie.datasource.write.recordkey.field": ",".join(table.record_key_fields),
        "hoodie.datasource.write.precombine.field": ",".join(table.ordering_fields) or None,
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.write.record.merge.mode": mode or None,
        "hoodie.write.record.merge.strategy.id": properties.get("hoodie.record.merge.strategy.id"),
    }
    index = {}
    if table.has_consistent_hashing():
        # Without the index of the writers, a row that the table lacks would go to a file group of its own.
        index = hashing_metadata.index_options(table, 1)
    elif table.declared.hudi_options.get(INDEX_TYPE, "").upper() in GLOBAL_TYPES:
        # The rows stay in their partitions. A global index would compute the partition paths anew.
        index = {INDEX_TYPE: "SIMPLE"}
    return {
        **{key: value for key, value in stored.items() if value is not None},
        **index,
        **METADATA_NOT_COMPACTED,
        # Each key occurs once.
        "hoodie.combine.before.upsert": "false",
        "hoodie.combine.before.delete": "false",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.delete.shuffle.parallelism": "2",
        _PREPPED: "true",
    }


class KeyedWrites(ClientPart):
    """Writes of rows by their keys. Each write is a commit and returns its instant. The table's lock must be held. A
    write that fails is rolled back, unless its commit has landed."""

    def upsert(self, frame: DataFrame, extra: Mapping[str, str] | None = None) -> str:
        """Writes rows with the columns of the table, record keys and partition paths."""
        with self._commit(extra or {}) as (instant, wrote):
            wrote.append(self._client.upsert(self._records(frame, instant), instant))
        return instant

    def delete(
        self, frame: DataFrame, extra: Mapping[str, str] | None = None, known: Mapping[Key, Any] | None = None
    ) -> str:
        """Deletes the rows with these record keys and partition paths. `known` are Hudi's `DeleteRecord`s of keys, by
        partition path and record key, whose ordering values the deletes keep.

        A delete without a value (`HoodieDeleteHelper`) removes the row of every earlier commit, and each later row
        replaces it. A delete with a value removes rows up to that value, and replaces no row of a greater one, until
        its log is compacted (`EventTimeRecordMerger`, 1.2.0).
        """
        keys = [(row[0], row[1]) for row in frame.select(PARTITION_PATH, RECORD_KEY).collect()]
        with self._commit(extra or {}) as (instant, wrote):
            deletes = self._jvm.java.java.util.ArrayList()
            if known:
                for key in keys:
                    deletes.add(self._delete_record(key, known.get(key)))
                wrote.append(self._client.upsert(self._jvm.parallelize(deletes), instant))
            else:
                for partition, key in keys:
                    deletes.add(self._jvm.hudi.common.model.HoodieKey(key, partition))
                wrote.append(self._client.delete(self._jvm.parallelize(deletes), instant))
        return instant

    def _delete_record(self, key: Key, known: Any) -> Any:
        partition, record_key = key
        record = known or self._jvm.hudi.common.model.DeleteRecord.create(record_key, partition)
        contexts = self._jvm.hudi.avro.AvroRecordContext(self._table.meta.getTableConfig(), f"{_MODEL}.{_BY_FIELD}")
        buffered = self._jvm.hudi.common.table.read.BufferedRecords.fromDeleteRecord(record, contexts)
        return contexts.constructHoodieRecord(buffered, partition)

    def mark(self, extra: Mapping[str, str]) -> str:
        """Makes a commit without rows but with this extra metadata."""
        with self._commit(extra) as (instant, wrote):
            wrote.append(self._client.upsert(self._jvm.parallelize(self._jvm.java.java.util.ArrayList()), instant))
        return instant

    @contextmanager
    def _commit(self, extra: Mapping[str, str]) -> Iterator[tuple[str, list[Any]]]:
        self._table.clock.verify()
        position = kafka_connect.position_in(commit.extra for commit in self._table.commits())
        action = "deltacommit" if self._table.is_merge_on_read else "commit"
        with translated("starting a commit"):
            instant = str(self._client.startCommit(action))
        wrote: list[Any] = []
        try:
            with translated("writing rows"):
                # Hudi refuses to write by an older schema, and a commit with an older schema would remove columns.
                present_schema(self._table, self._client)
                yield instant, wrote
                present_schema(self._table, self._client)
                kept = {**schema_on_read_of(self._table), **position}
                metadata = self._jvm.some(self._jvm.map({**extra, **kept}))
                nothing = self._jvm.nothing()
                self._client.commit(instant, wrote[0], metadata, action, self._jvm.map({}), nothing)
        except JobError as error:
            if self._table.state_of(instant) != "COMPLETED":
                with continued(self._table, instant), translated(f"rolling back {instant}"):
                    self._client.rollback(instant)
                raise
            if isinstance(error, LockLostError):
                raise
            # Hudi would roll a completed commit back, too, although readers may have seen its rows.
            logger.warning("the commit landed, but Hudi reported an error after it: %s", error.detail)
            with suppress(JobError), translated("ending a heartbeat"):
                self._client.getHeartbeatClient().stop(instant)
                ended_instant.tidy_up(self._table, instant)

    def _records(self, frame: DataFrame, instant: str) -> Any:
        """Returns the rows as a `JavaRDD` of Hudi's records, without locations."""
        schemas = self._jvm.hudi.common.schema.HoodieSchema
        whole = schemas.parse(self._table.schema(with_meta_fields=True))
        names = [str(field.name()) for field in whole.getFields()]
        struct = self._jvm.hudi.HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(whole)
        types = {field.name: field.dataType for field in StructType.fromJson(json.loads(struct.json())).fields}
        given = {RECORD_KEY, PARTITION_PATH, *(name for name in names if not name.startswith("_hoodie_"))}
        # If `_hoodie_file_name` were set, Hudi would take it for the row's location. Partition columns are cast back,
        # because Hudi's readers return them as texts.
        columns = [
            F.col(f"`{name}`").cast(types[name]).alias(name)
            if name in given and name in frame.columns
            else F.lit(None).cast(types[name]).alias(name)
            for name in names
        ]
        context: Any = self._jvm.java.org.apache.spark.api.python.PythonUtils
        arguments = getattr(self._jvm.hudi, "HoodieCreateRecordUtils$createHoodieRecordRddArgs")(
            frame.select(*columns)._jdf,
            self._config,
            context.toScalaMap(self._config.getProps()),
            self._table.name,
            "hoodie",
            whole,
            schemas.parse(self._table.schema()),
            self._jvm.hudi.common.model.WriteOperationType.UPSERT,
            instant,
            True,
            False,
            False,
            self._table.meta.getTableConfig(),
        )
        return self._jvm.hudi.HoodieCreateRecordUtils.createHoodieRecordRdd(arguments)
