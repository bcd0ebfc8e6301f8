"""A Hive metastore's tables of one Hudi table, and Hudi's own sync to them (`HiveSyncTool`, HMS mode, 1.2.0).

Hive's classes come with PySpark. Hudi's tool has faults that this module avoids:

- If the metastore has a table of that name at another path, the tool drops it and makes its own (`syncHoodieTable`).
  The caller must look at `MetastoreTable.location` before.
- `hive.metastore.uris` of Hadoop's options overrides the option of the sync.
- Without URIs a metastore in the worker's own process would be used.
- A full sync takes every folder for a partition, even if all its files were replaced; and an incremental sync drops a
  partition that was deleted and written again. So the caller corrects the partitions before and after running the tool.
- `updatePartitionsToTable` gives the location of the last partition to all of its partitions, if there are several.
- A partition is dropped by its name, in which the values are not escaped; here it is dropped by its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jobs.errors import JobError, MetastoreError, MetastoreUnavailableError
from jobs.format.partition_values import PartitionChanges
from jobs.format.server_addresses import metastores
from jobs.hudi.jvm import innermost, translated
from jobs.hudi.metastore_table import LAST_SYNCED, Definition, MetastoreTable, Target, types_of
from jobs.hudi.table import HudiTable
from jobs.storage.lock_servers import unreachable

CONNECT_SECONDS = 3.0
SILENCE_SECONDS = 20
# Simple class names of Java exceptions in the chain of causes that mean: the connection was lost, so it is unknown
# whether the last call took effect.
_AWAY = frozenset({"TTransportException", "ConnectException", "SocketTimeoutException", "SocketException"})
# `HiveMetaStoreClient.open` has the cause in its message only.
_NOT_CONNECTED = "Could not connect to meta store"
_INCOMPATIBLE = "hive.metastore.disallow.incompatible.col.type.changes"


class Metastore:
    """Connections to one metastore, for one sync of one table. Not thread-safe."""

    def __init__(self, table: HudiTable, target: Target, timeline: Any) -> None:
        """Connects. The table is synced up to `timeline`. Raises MetastoreUnavailableError."""
        self._jvm, self.target, self._meta = table.jvm, target, timeline
        self._definition = Definition(table, target, timeline)
        if reason := unreachable(metastores(target.uris), CONNECT_SECONDS):
            raise MetastoreUnavailableError(f"{reason}.")
        jvm = self._jvm
        with translated("connecting to the metastore", by=_judged):
            self._conf = jvm.java.org.apache.hadoop.conf.Configuration(jvm.hadoop_conf)
            self._conf.set("hive.metastore.uris", target.uris)
            # Hive's default is to wait ten minutes for a metastore that accepts the connection but does not answer.
            self._conf.set("hive.metastore.client.socket.timeout", f"{SILENCE_SECONDS}s")
            hive_conf = jvm.java.org.apache.hadoop.hive.conf.HiveConf(self._conf, self._conf.getClass())
            hive_conf.set("hive.metastore.uris", target.uris)
            self._client = jvm.java.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(hive_conf)

    def close(self) -> None:
        with translated("closing the connection to the metastore", by=_judged):
            self._client.close()

    # -- reading

    def has_database(self) -> bool:
        with translated("reading the metastore", by=_judged):
            names = self._jvm.read(self._client.getAllDatabases())
        return self.target.database.lower() in {str(name).lower() for name in names}

    def tables(self, names: Sequence[str]) -> dict[str, MetastoreTable | None]:
        """Returns these tables with all of their partitions; None for one that does not exist."""
        with self._hudis_client() as (client, _), translated("reading the metastore", by=_judged):
            return {name: self._read(client, name) for name in names}

    def _read(self, client: Any, name: str) -> MetastoreTable | None:
        if not self._client.tableExists(self.target.database, name):
            return None
        found = self._client.getTable(self.target.database, name)
        storage, keys = found.getSd(), types_of(found.getPartitionKeys())
        listed = self._jvm.read(client.getAllPartitions(name)) if keys else []
        return MetastoreTable(
            # A view has no location.
            location=str(storage.getLocation() or ""),
            is_hudi="hoodie" in str(storage.getInputFormat() or "").lower(),
            columns=types_of(storage.getCols()),
            partition_columns=keys,
            partitions={tuple(each["values"]): str(each["storageLocation"]) for each in listed},
            synced=found.getParameters().get(LAST_SYNCED),
        )

    def columns(self) -> tuple[dict[str, str], dict[str, str]]:
        """Returns the columns that the metastore's tables should have, and their partition columns."""
        return self._definition.columns()

    def refuses(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Returns whether the metastore refuses this change of columns, as it does by default.

        The metastore compares column types by position (`MetaStoreUtils.throwExceptionIfIncompatibleColTypeChange`,
        Hive 2.3), so an inserted column changes the types of all later positions.
        """
        with translated("asking for the metastore's settings", by=_judged):
            if str(self._client.getConfigValue(_INCOMPATIBLE, "true")).lower() != "true":
                return False
        classes: Any = self._jvm.java.java.lang.Class
        kinds, values = self._array("Class"), self._array("Object")
        for number, columns in enumerate((before, after)):
            kinds[number], values[number] = classes.forName("java.util.List"), self._fields(columns)
        try:
            with translated("comparing the columns", expected=MetastoreError, by=_judged):
                utils = classes.forName("org.apache.hadoop.hive.metastore.MetaStoreUtils")
                method = utils.getDeclaredMethod("throwExceptionIfIncompatibleColTypeChange", kinds)
                method.setAccessible(True)
                method.invoke(None, values)
        except MetastoreError:
            return True
        return False

    # -- writing

    def sync(self) -> None:
        """Runs Hudi's sync: database, tables, columns, properties, partitions that were written, the synced commit."""
        with translated("syncing with the metastore", by=_judged):
            tool = self._jvm.hudi.hive.HiveSyncTool(
                self._definition.properties(), self._conf, self._jvm.some(self._meta)
            )
            tool.syncHoodieTable()

    def complete(self, names: Sequence[str]) -> None:
        """Does nothing: Hudi's sync has recorded the synced commit."""

    def change(self, name: str, changes: PartitionChanges) -> None:
        """Adds, moves and drops partitions of a metastore table, without touching their files."""
        with translated("changing the metastore's partitions", by=_judged):
            for values in changes.dropped:
                self._client.dropPartition(self.target.database, name, self._listed(values), False)
        if not (changes.added or changes.moved):
            return
        with self._hudis_client() as (client, _), translated("changing the metastore's partitions", by=_judged):
            if changes.added:
                client.addPartitionsToTable(name, self._listed(changes.added))
            for path in changes.moved:
                client.updatePartitionsToTable(name, self._listed([path]))

    @contextmanager
    def _hudis_client(self) -> Iterator[tuple[Any, Any]]:
        with translated("connecting to the metastore", by=_judged):
            config = self._jvm.hudi.hive.HiveSyncConfig(self._definition.properties(), self._conf)
            client = self._jvm.hudi.hive.HoodieHiveSyncClient(config, self._meta)
        try:
            yield client, config
        finally:
            with translated("closing the connection to the metastore", by=_judged):
                client.close()

    def _listed(self, values: Sequence[str]) -> Any:
        found = self._jvm.java.java.util.ArrayList()
        for value in values:
            found.add(value)
        return found

    def _fields(self, columns: Mapping[str, str]) -> Any:
        found = self._jvm.java.java.util.ArrayList()
        for name, kind in columns.items():
            found.add(self._jvm.java.org.apache.hadoop.hive.metastore.api.FieldSchema(name, kind, ""))
        return found

    def _array(self, kind: str) -> Any:
        """Returns a Java array of length two, for reflection."""
        gateway: Any = self._jvm.spark.sparkContext._gateway
        return gateway.new_array(getattr(self._jvm.java.java.lang, kind), 2)


def _judged(causes: Sequence[tuple[str, str]]) -> JobError:
    """Returns the error for a Java exception and its causes, each as class name and message."""
    detail = f"{causes[-1][0].rsplit('.', 1)[-1] if causes else ''}: {innermost(causes)}"[:300]
    is_away = any(_NOT_CONNECTED in message for _, message in causes)
    if is_away or {name.rsplit(".", 1)[-1] for name, _ in causes} & _AWAY:
        return MetastoreUnavailableError(detail)
    return MetastoreError(detail)
