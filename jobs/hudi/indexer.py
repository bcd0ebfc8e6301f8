"""Hudi's indexer (1.2.0), and the note of an index that is being built or dropped.

A plan may have one partition only: Hudi writes each partition of a plan to the metadata table at the instant of the
plan, and the second write first rolls the first one back (`HoodieBackedTableMetadataWriter.generateUniqueInstantTime`).
The first index then counts as complete and is empty.

`AbstractIndexingCatchupTask` takes each instant that is in the metadata table for one that is in the new index, and a
streaming writer of Hudi 1.2 writes no entries to an index that is being built
(`HoodieBackedTableMetadataWriter.getStreamingMetadataPartitionsToUpdate`). So the index would lack the rows of a write
that commits during the build. Therefore the caller holds the table's lock from before the plan until the end, while
nothing is in flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs.errors import HudiError
from jobs.hudi import indexes
from jobs.hudi.jvm import translated
from jobs.hudi.metadata_table import FOLDER
from jobs.hudi.small_file import read_object, write_object
from jobs.kinds.index import IndexShown

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from jobs.hudi.table import HudiTable

_NOTE, _WHAT = ".hoodie/.aux/groundskeeper.indexing", "the note of an unfinished index"


class Indexer:
    """Builds and drops indexes of one table. `config` and `client` are those of a client that was opened with the
    options of the indexes as they shall be. The lock must be held for each change."""

    def __init__(self, table: HudiTable, config: Any, client: Any) -> None:
        self._table = table
        self._jvm = table.jvm
        self._config = config
        self._client = client

    def schedule(self, instant: str, partition: str) -> None:
        """Puts the plan on the timeline, as REQUESTED. A definition that an earlier index has left is deleted, because
        Hudi would build the index by it."""
        types = self._jvm.hudi.metadata.MetadataPartitionType
        with translated("planning the index"):
            if partition in indexes.definitions(self._table):
                self._table.meta.deleteIndexDefinition(partition)
            wanted = self._jvm.objects([types.fromPartitionPath(partition)])
            context, nothing = self._jvm.engine_context, self._jvm.list([])
            plan = self._hudi_table().scheduleIndexing(context, instant, wanted, nothing)
            if not plan.isPresent():
                raise HudiError("Hudi has planned no index: the table has no completed write.")

    def run(self, instant: str) -> None:
        """Executes the plan: the instant becomes INFLIGHT, and COMPLETED at the end."""
        with translated("building the index"):
            self._hudi_table().index(self._jvm.engine_context, instant)

    def drop(self, partitions: Collection[str]) -> None:
        """Removes these partitions of the metadata table, their definitions, and the pending instants that build them.
        May be repeated (`BaseHoodieWriteClient.dropIndex`)."""
        with translated("dropping the index"):
            self._client.dropIndex(self._jvm.list(sorted(partitions)))
            self._table.reload()

    def withdraw(self, instant: str) -> None:
        """Deletes the plan, pending or not, from the timeline."""
        with translated("withdrawing the plan of the index"):
            meta = self._table.meta
            timeline = meta.reloadActiveTimeline()
            states = self._jvm.hudi.common.table.timeline.HoodieInstant.State
            for state in ("INFLIGHT", "REQUESTED"):
                timeline.deleteInstantFileIfExists(meta.createNewInstant(states.valueOf(state), "indexing", instant))
            self._table.reload()

    def _hudi_table(self) -> Any:
        return self._jvm.hudi.table.HoodieSparkTable.create(self._config, self._jvm.engine_context)


def shown(table: HudiTable) -> tuple[IndexShown, ...]:
    """Returns the indexes of the table with size and age, except for the list of files."""
    hudi = table.jvm.hudi
    util, nothing = hudi.metadata.HoodieTableMetadataUtil, hudi.common.util.Option.empty()
    defined = indexes.definitions(table)
    found = []
    with translated("reading the indexes"):
        builder = hudi.common.table.HoodieTableMetaClient.builder().setBasePath(f"{table.base_path}/{FOLDER}")
        meta = builder.setConf(table.jvm.storage_conf()).build()
        for name in sorted(table.metadata_partitions - {indexes.FILES}):
            slices = list(util.getPartitionLatestFileSlices(meta, nothing, name))
            made = hudi.storage.StoragePath(f"{table.base_path}/{FOLDER}/{name}/.hoodie_partition_metadata")
            since = int(table.storage.getPathInfo(made).getModificationTime()) if table.storage.exists(made) else None
            columns = defined[name].columns if name in defined and name != indexes.RECORDS else ()
            shown = IndexShown(
                partition=name,
                columns=columns,
                base_files=sum(bool(each.getBaseFile().isPresent()) for each in slices),
                log_files=sum(int(each.getLogFiles().count()) for each in slices),
                bytes=sum(int(each.getTotalFileSize()) for each in slices),
            )
            if since is not None:
                shown = shown.having(age_seconds=max(0.0, (table.now() - table.moment(since)).total_seconds()))
            found.append(shown)
    return tuple(found)


@dataclass(frozen=True)
class Unfinished:
    """The partitions that a job has begun to build or to drop, and the instants that build the first ones of them."""

    partitions: tuple[str, ...]
    instants: tuple[str, ...]


def keep(table: HudiTable, partitions: Sequence[str], instants: Sequence[str] = ()) -> None:
    """Writes the note, before anything is changed. The lock must be held."""
    content = {"partitions": list(partitions), "instants": list(instants)}
    write_object(table.jvm, table.storage, _path(table), content, _WHAT)


def unfinished(table: HudiTable) -> Unfinished | None:
    """Returns what the note says; None if there is none."""
    found = read_object(table.jvm, table.storage, _path(table), _WHAT)
    partitions, instants = found.get("partitions"), found.get("instants")
    if not isinstance(partitions, list) or not isinstance(instants, list):
        return None
    return Unfinished(tuple(map(str, partitions)), tuple(map(str, instants)))


def forget(table: HudiTable) -> None:
    """Deletes the note. The lock must be held."""
    with translated(f"deleting {_WHAT}"):
        table.storage.deleteFile(table.jvm.hudi.storage.StoragePath(_path(table)))


def _path(table: HudiTable) -> str:
    return f"{table.base_path}/{_NOTE}"
