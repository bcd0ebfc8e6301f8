"""A completed instant of a registered table, as its timeline tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True)
class Commit:
    """Times of instants are Hudi's own strings (see `service.model.timeline`); `seen_at` is the service's clock.

    `action` is the one it completed as: a compaction is a `commit`, a clustering a `replacecommit`. `operation` is
    Hudi's `WriteOperationType` (UPSERT, COMPACT, CLUSTER, BUCKET_RESCALE ...), None where the action has none.
    `rows_written` counts what the instant's files hold of inserts and updates, `bytes_written` those files; both None
    where the action writes no data. `partitions` are the paths it touched; `file_groups` counts those.
    `schema_changed`: against the commit before it that had a schema.
    """

    table_id: str
    requested_time: str
    action: str
    completion_time: str | None
    seen_at: datetime
    operation: str | None = None
    rows_written: int | None = None
    rows_deleted: int | None = None
    bytes_written: int | None = None
    partitions: tuple[str, ...] = ()
    file_groups: int = 0
    schema_changed: bool = False
