"""Writes a table by Hudi's client for Java (`HoodieJavaWriteClient`), as programs without Spark do, and Hudi's sink for
Kafka Connect."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs.format import kafka_connect
from tests.support.maven import class_path
from tests.support.session_jars import add_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEMA = """{"type": "record", "name": "trips_record", "namespace": "hoodie.trips", "fields": [
    {"name": "id", "type": ["null", "string"], "default": null},
    {"name": "ts", "type": ["null", "long"], "default": null},
    {"name": "dt", "type": ["null", "string"], "default": null}]}"""
# What a DataFrame's writer derives from its own options.
_TABLE = {
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.partition.fields": "dt",
    "hoodie.table.ordering.fields": "ts",
}


class JavaClient:
    """A client that stays open, and with it what its index keeps in memory (`INMEMORY`, the default of Java)."""

    def __init__(self, spark: SparkSession, base: Path, options: dict[str, str]) -> None:
        self._java: Any = spark._jvm
        add_jar(spark, Path(class_path("org.apache.hudi", "hudi-java-client", "1.2.0", alone=True)))
        self._hudi = hudi = self._java.org.apache.hudi
        properties = self._java.java.util.Properties()
        for name, value in {**options, **_TABLE}.items():
            properties.setProperty(name, value)
        self._schema = self._java.org.apache.avro.Schema.Parser().parse(_SCHEMA)
        config = hudi.config.HoodieWriteConfig.newBuilder().withEngineType(hudi.common.engine.EngineType.JAVA)
        config = config.withPath(str(base)).withSchema(_SCHEMA).withProps(properties).forTable(base.name).build()
        hadoop = hudi.storage.hadoop.HadoopStorageConfiguration(self._java.org.apache.hadoop.conf.Configuration())
        context = hudi.client.common.HoodieJavaEngineContext(hadoop)
        self._client = hudi.client.HoodieJavaWriteClient(context, config)

    def upsert(self, numbers: Iterable[int], ts: int) -> None:
        instant = self._client.startCommit()
        assert self._client.commit(instant, self._client.upsert(self._records(numbers, ts), instant))

    def connect(self, numbers: Iterable[int], ts: int) -> str:
        """Writes as the sink for Kafka Connect does with one partition of a topic; returns the instant. No repository
        has the sink's jar."""
        instant = str(self._client.startCommit())
        self._client.transitionInflight(instant)
        records = self._records(numbers, ts)
        for record in records:
            digest = hashlib.md5(f"0-{record.getPartitionPath()}".encode()).hexdigest().upper()
            place = self._hudi.common.model.HoodieRecordLocation(instant, digest)
            record.unseal()
            record.setCurrentLocation(place)
            record.setNewLocation(place)
            record.seal()
        statuses = self._client.upsertPreppedRecords(records, instant)
        offsets = self._java.java.util.HashMap({kafka_connect.OFFSETS: f"0={ts}"})
        assert self._client.commit(instant, statuses, self._hudi.common.util.Option.of(offsets))
        return instant

    def close(self) -> None:
        self._client.close()

    def _records(self, numbers: Iterable[int], ts: int) -> Any:
        model, found = self._hudi.common.model, self._java.java.util.ArrayList()
        avro = self._java.org.apache.avro
        reader, decoders = avro.generic.GenericDatumReader(self._schema), avro.io.DecoderFactory.get()
        for number in numbers:
            key, path = f"k{number}", f"2026-01-0{number % 2 + 1}"
            # Py4J has no Long for a small number; Avro's decoder has.
            text = json.dumps({"id": {"string": key}, "ts": {"long": ts}, "dt": {"string": path}})
            row = reader.read(None, decoders.jsonDecoder(self._schema, text))
            payload = model.DefaultHoodieRecordPayload(self._hudi.common.util.Option.of(row))
            found.add(model.HoodieAvroRecord(model.HoodieKey(key, path), payload))
        return found
