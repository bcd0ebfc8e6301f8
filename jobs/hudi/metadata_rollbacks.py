"""Rollbacks of the metadata table that a failed or dead client has left pending (Hudi 1.2.0).

If the metadata table is written in streams, its client sends heartbeats for its rollbacks, and refuses to continue a
rollback with a heartbeat (`BaseHoodieTableServiceClient.acquireRollbackHeartbeatIfMultiWriter`). Until this heartbeat
expires, each rollback of the same instant of the table fails (`HoodieBackedTableMetadataWriter.update`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from jobs.errors import JobError
from jobs.hudi.file_times import times_in
from jobs.hudi.jvm import translated
from jobs.hudi.metadata_table import FOLDER, meta_client
from jobs.hudi.table import HudiTable

logger = logging.getLogger(__name__)


@contextmanager
def continued(table: HudiTable, instant: str) -> Iterator[None]:
    """Lets Hudi continue what others have begun to roll back of this instant in the metadata table. The table's lock
    must be held: Hudi takes it for each rollback of the metadata table, so nobody else works on it now. If the work
    fails, for example because the disk is full, the next writer can continue at once, too."""
    _forget_heartbeats(table, instant)
    try:
        yield
    except JobError:
        with suppress(JobError):
            _forget_heartbeats(table, instant)
        raise


def _forget_heartbeats(table: HudiTable, instant: str) -> None:
    if "files" not in table.metadata_partitions:
        return
    beating = times_in(table, f"{FOLDER}/.hoodie/.heartbeat").keys()
    for rollback in sorted(_pending(table, instant, beating) if beating else ()):
        logger.warning("removing the heartbeat of %s, a rollback of %s in the metadata table", rollback, instant)
        with translated("removing a heartbeat"):
            heartbeats = table.jvm.hudi.client.heartbeat.HeartbeatUtils
            heartbeats.deleteHeartbeatFile(table.storage, f"{table.path}/{FOLDER}", rollback)


def _pending(table: HudiTable, instant: str, among: Any) -> set[str]:
    """Returns the pending rollbacks of this instant in the metadata table, among those that are named."""
    jvm, found = table.jvm, set()
    with translated("reading the metadata table's timeline"):
        meta = meta_client(table)
        pending = list(jvm.items(meta.getActiveTimeline().filterPendingRollbackTimeline().getInstantsAsStream()))
    for item in pending:
        # Hudi itself deletes a plan that cannot be read.
        with suppress(JobError), translated("reading the plan of a rollback"):
            plan = jvm.hudi.table.action.rollback.RollbackUtils.getRollbackPlan(meta, item)
            if str(plan.getInstantToRollback().getCommitTime()) == instant and str(item.requestedTime()) in among:
                found.add(str(item.requestedTime()))
    return found
