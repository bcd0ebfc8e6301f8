"""A completed instant of a registered table, as its timeline records it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from jobs.spec import Documented, Spec

UPSERT = "UPSERT"
COMPACTION = "COMPACT"
CLUSTERING = "CLUSTER"
BUCKET_RESCALE = "BUCKET_RESCALE"
CLEAN = "clean"
"""The action of a cleaning, which has no operation type."""

WRITING_ACTIONS = ("commit", "deltacommit", "replacecommit")
"""The actions that add or replace rows."""

BATCH_ACTIONS = ("commit", "deltacommit")
"""The actions that a pending batch of a writer has."""

SERVICE_OPERATIONS = (COMPACTION, "LOG_COMPACT", CLUSTERING, BUCKET_RESCALE, "INDEX")
"""Hudi's `WriteOperationType`s that ingest no rows (1.2)."""


@dataclass(frozen=True)
class Commit(Documented):
    """A completed instant. Times of instants are Hudi's own strings (see `service.lake.instant`); `seen_at` is a time
    of the service's clock.

    Before table version 8, `completed_at` is the modification time of the instant's file. `operation` is Hudi's
    `WriteOperationType`. `rows_written` counts inserts and updates; `rows_written` and `bytes_written` are None if the
    action writes no data. `schema_changed` compares with the last earlier commit that had a schema. An event is
    published only if `is_news`. `id` also orders the commits of one table by completion; it is 0 before the commit is
    stored.
    """

    table_id: str
    requested_time: Annotated[str, Spec(examples=("20260101120000000",))]
    action: Annotated[str, Spec("The completed action: a compaction is a `commit`", examples=("deltacommit",))]
    completion_time: Annotated[str | None, Spec("Null before table version 8, whose timelines do not contain it")]
    seen_at: Annotated[datetime, Spec("When a poll saw the commit", examples=("2026-01-01T12:00:05Z",))]
    completed_at: Annotated[datetime, Spec("When the commit completed", examples=("2026-01-01T12:00:03Z",))]
    operation: Annotated[str | None, Spec(examples=("UPSERT",))] = None
    rows_written: Annotated[int | None, Spec("Rows that the commit wrote", examples=(1000,))] = None
    rows_deleted: Annotated[int | None, Spec("Rows that the commit deleted", examples=(0,))] = None
    bytes_written: Annotated[int | None, Spec("Bytes that the commit wrote", examples=(1048576,))] = None
    partitions: Annotated[tuple[str, ...], Spec("Partitions that the commit touched", examples=(["region=eu"],))] = ()
    file_groups: Annotated[int, Spec("File groups that the commit touched", examples=(4,))] = 0
    schema_changed: Annotated[
        bool, Spec("Whether the schema differs from that of the previous commit", examples=(False,))
    ] = False
    is_news: Annotated[bool, Spec("False for instants from before the registration")] = True
    id: Annotated[
        int, Spec("Number of the commit; grows in the order in which commits were seen", examples=(4711,))
    ] = 0

    @property
    def ingests(self) -> bool:
        """Returns whether a writer made the commit, not a table service, and the commit changed something. An idle
        Flink job makes an empty commit at each checkpoint."""
        is_from_writer = self.action in WRITING_ACTIONS and self.operation not in SERVICE_OPERATIONS
        return is_from_writer and self.file_groups > 0
