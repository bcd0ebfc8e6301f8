"""The indexes of a restored table. Hudi (1.2.0) restores the metadata table, too: an index that was built after the
savepoint has no entries then, or no files, and still counts as complete. Writers that use such an index fail
(`Partition record_index should be part of inflight metadata partitions`). An index of a column that came after the
savepoint cannot be built again, and every writer that finds its definition fails. A record index cannot be built while
there are duplicate keys: the job leaves the one that Hudi has restored, or else drops the index."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from jobs.errors import WritersActiveError
from jobs.format.index_definitions import FILES, RECORDS
from jobs.hudi import index_entries, index_note
from jobs.protocol import unique_keys
from jobs.protocol.writers import remove_listed_late_files
from jobs.services.index import differing
from jobs.services.metadata_table import findings_of

if TYPE_CHECKING:
    from jobs.format.index_definitions import Indexes
    from jobs.hudi.client import WriteClient
    from jobs.hudi.lock import TableLock
    from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)


def settle(table: HudiTable, client: WriteClient, lock: TableLock) -> tuple[str, ...]:
    """Drops the indexes of columns that the table does not have, and builds the metadata table anew unless it is
    complete and agrees with files and rows; returns the dropped indexes. Duplicate keys are no reason to fail, because
    the table is restored already. The note names the indexes that the table had before the restore; they may be missing
    by now. May be repeated. The lock must be held. Raises WritersActiveError if something has to be built beside a
    write in flight, which a writer may have begun after an attempt that died."""
    table.reload()
    had = index_note.keep(table)
    kept = client.metadata_table.buildable(had)
    is_whole = kept == had and had.partitions <= table.metadata_partitions
    if not had.partitions or (is_whole and _is_right(table, had)):
        index_note.forget(table)
        return ()
    has_duplicates = bool(unique_keys.refusals(table, had=kept))
    if has_duplicates and is_whole and _is_right(table, had.without_keys()) and _has_right_records(table, had):
        index_note.forget(table)
        return ()
    if pending := table.pending_writes():
        raise WritersActiveError(f"In flight: {', '.join(map(str, pending))}.")
    # A listing cannot distinguish late files from committed ones.
    remove_listed_late_files(client)
    lock.verify()
    if has_duplicates:
        kept = kept.without_keys()
    elif kept == had and not table.metadata_partitions & had.partitions:
        # Hudi could not restore the metadata table that far, and has deleted it.
        client.metadata_table.build_missing(had)
        return ()
    logger.warning("building the metadata table anew, as its indexes do not fit the restored rows")
    client.metadata_table.rebuild(kept)
    lock.verify()
    return tuple(sorted(had.partitions - kept.partitions))


def _is_right(table: HudiTable, indexes: Indexes) -> bool:
    """Returns whether the metadata table agrees with the storage, and these of its indexes with the rows."""
    return not (findings_of(table) or differing(table, indexes.partitions - {FILES}))


def _has_right_records(table: HudiTable, had: Indexes) -> bool:
    """Returns whether the table has a record index and no secondary index, and all entries are right except those of
    duplicate keys."""
    of_keys = had.partitions - had.without_keys().partitions
    return of_keys == {RECORDS} and index_entries.has_right_records(table)
