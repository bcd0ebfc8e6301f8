"""Takes back a commit whose file on the timeline could be written only in part, because the disk is full.

On a local disk Hudi (1.2.0, `HoodieStorage.createImmutableFileInPath`) moves the file to its place even if writing it
has failed. The instant then counts as completed: if the file is empty, as a commit without files, so that readers see
the rows of a replacement twice; otherwise no reader can read the table any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from jobs.errors import JobError
from jobs.hudi.jvm import translated
from jobs.hudi.table import HudiTable
from jobs.storage_errors import StorageFullError

logger = logging.getLogger(__name__)


@contextmanager
def taken_back(table: HudiTable, instant: str) -> Iterator[None]:
    """Makes an instant of the block pending again if its commit was written only in part. The lock must be held."""
    try:
        yield
    except StorageFullError:
        try:
            _take_back(table, instant)
        except JobError:
            logger.exception("could not take the commit of %s back", instant)
        raise


def _take_back(table: HudiTable, instant: str) -> None:
    table.reload()
    ends = (f"{instant}_", f"{instant}.")
    states = (".requested", ".inflight")
    listed = {name: file for name, file in table.timeline_files().items() if name.startswith(ends)}
    completed = {name: file for name, file in listed.items() if name.count(".") == 1 and not name.endswith(states)}
    if not completed or (all(file.bytes for file in completed.values()) and instant not in table.unreadable_instants()):
        return
    for name in completed:
        logger.warning("removing %s, of which Hudi has written only a part", name)
        with translated(f"removing {name}"):
            table.storage.deleteFile(table.jvm.hudi.storage.StoragePath(f"{table.timeline_path}/{name}"))
    table.reload()
