"""Builds and drops indexes of the metadata table (Hudi 1.2.0), and keeps the note of an unfinished one.

Hudi's own indexer (`HoodieIndexer`, `RunIndexActionExecutor`) is not used, because its instant stays on the timeline.
While this instant is the last completed one, a writer may build another index, such as the column statistics that Spark
SQL has by default. Hudi writes the other index at the indexer's instant, and the metadata table first rolls back what
it has at that instant. The first index is then empty: its queries find no rows, and a DELETE deletes none
(`HoodieBackedTableMetadataWriter.generateUniqueInstantTime`). The indexer also lacks the rows of writes that commit
meanwhile: `AbstractIndexingCatchupTask` assumes that the new index has each instant that the metadata table has, and a
streaming writer leaves out an index that is being built.

So an index is built as by a writer whose options have a new index: under the table's lock, while nothing is in flight,
and without an instant on the table's timeline.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jobs.format.index_definitions import FILES, RECORDS, Indexes
from jobs.hudi import indexes
from jobs.hudi.client_part import ClientPart
from jobs.hudi.jvm import translated
from jobs.hudi.metadata_table import FOLDER, MetadataTable
from jobs.hudi.small_file import read_object, write_object
from jobs.hudi.table import HudiTable
from jobs.kinds.index import IndexShown

_NOTE, _WHAT = ".hoodie/.aux/groundskeeper.indexing", "the note of an unfinished index"


class Indexer(ClientPart):
    """Builds and drops indexes of one table. The lock must be held for each change, and nothing may be in flight."""

    def build(self, partitions: Collection[str], wanted: Indexes) -> None:
        """Builds these partitions, which the table lacks; `wanted` are all indexes that the table shall have. A
        definition that an earlier index has left is deleted, because Hudi would build the new index by that
        definition."""
        with translated("building the index"):
            for each in set(partitions) & indexes.definitions(self._table).keys():
                self._table.meta.deleteIndexDefinition(each)
        MetadataTable(self._table, self._config).build(wanted)

    def drop(self, partitions: Collection[str]) -> None:
        """Removes these partitions of the metadata table, their definitions, and the pending instants that build them.
        May be repeated (`BaseHoodieWriteClient.dropIndex`)."""
        with translated("dropping the index"):
            self._client.dropIndex(self._jvm.list(sorted(partitions)))
            self._table.reload()


def shown(table: HudiTable) -> tuple[IndexShown, ...]:
    """Returns the indexes of the table with size and age, except for the list of files."""
    names = sorted(table.metadata_partitions - {FILES})
    if not names:  # There may be no metadata table.
        return ()
    hudi = table.jvm.hudi
    util, nothing = hudi.metadata.HoodieTableMetadataUtil, hudi.common.util.Option.empty()
    defined = indexes.definitions(table)
    found = []
    with translated("reading the indexes"):
        builder = hudi.common.table.HoodieTableMetaClient.builder().setBasePath(f"{table.base_path}/{FOLDER}")
        meta = builder.setConf(table.jvm.storage_conf()).build()
        for name in names:
            slices = list(util.getPartitionLatestFileSlices(meta, nothing, name))
            made = hudi.storage.StoragePath(f"{table.base_path}/{FOLDER}/{name}/.hoodie_partition_metadata")
            since = int(table.storage.getPathInfo(made).getModificationTime()) if table.storage.exists(made) else None
            columns = defined[name].columns if name in defined and name != RECORDS else ()
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


def keep(table: HudiTable, partitions: Sequence[str]) -> None:
    """Writes the note, before anything is changed: the partitions that a job builds or drops. The lock must be held."""
    content = {"partitions": list(partitions)}
    write_object(table.jvm, table.storage, _path(table), content, _WHAT)


def unfinished(table: HudiTable) -> tuple[str, ...]:
    """Returns the partitions in the note; none if there is no note."""
    partitions = read_object(table.jvm, table.storage, _path(table), _WHAT).get("partitions")
    return tuple(map(str, partitions)) if isinstance(partitions, list) else ()


def forget(table: HudiTable) -> None:
    """Deletes the note. The lock must be held."""
    with translated(f"deleting {_WHAT}"):
        table.storage.deleteFile(table.jvm.hudi.storage.StoragePath(_path(table)))


def _path(table: HudiTable) -> str:
    return f"{table.base_path}/{_NOTE}"
