"""The marks that a Flink writer leaves on a table, because Hudi (1.2.0) does not record the engine of a write."""

from __future__ import annotations

from typing import Final

CHECKPOINT: Final = "flink_checkpoint_id"
"""Key in the extra metadata of Flink's commits, if `write.extra.metadata.enabled` is set."""

VIEW_STORAGE: Final = "view_storage_conf"
"""Beginning of the name of a file in `.hoodie/.aux` (`ViewStorageProperties`), which the coordinator of a Flink sink
writes when it starts. If there are several clients, each appends `_<client id>`."""

PROFILED: Final = frozenset({"UPSERT", "INSERT"})
"""Operations for which Spark and Java write the workload profile into the inflight file
(`saveWorkloadProfileMetadataToInflight`), and only Flink leaves it empty. Bulk inserts and overwrites prove nothing:
Spark leaves their inflight files empty too."""

OF_BATCHES: Final = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})
"""Operations of Flink that only a batch has, which ends with its commit."""
