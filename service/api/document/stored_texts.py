"""Descriptions of the members of what is stored as JSON and shown as it is: profiles of tables, orders of workers."""

from __future__ import annotations

from typing import Any, Final

OF_STORED: Final[dict[str, dict[str, tuple[str, Any]]]] = {
    "BucketIndex": {"hash_fields": ("Fields whose hash decides the bucket", ["id"])},
    "BucketLayout": {
        "kind": ("What the names of the files indicate", "simple"),
        "highest_bucket": ("Highest number of a bucket; null without files", 3),
        "keys_checked": ("Sampled record keys that were found in their buckets", 40),
        "fixed_file_ids": ("Whether the file ids are those of non-blocking concurrency control", False),
        "hashing_config": ("Instant of the hashing config in force; null without one", None),
    },
    "Column": {
        "name": ("Name of the column", "id"),
        "type": ("Its type, as Arrow spells it", "int64"),
    },
    "Table": {
        "writers_hudi_version": ("Declared Hudi version of the writers", "1.2.0"),
        "writers_stopped": ("Declared: no writer is running", False),
        "writers_retry_conflicts": ("Declared: writers retry conflicts", False),
        "writers_engines": ("Engines that are declared or were seen", ["spark"]),
        "writers_query_pruning_off": ("Declared: pruning by buckets is off", False),
        "readers_hudi_version": ("Declared Hudi version of the oldest reader", None),
    },
    "TableLock": {
        "provider": ("`filesystem`, `zookeeper`, or a LockProvider class", "filesystem"),
        "options": ("The provider's options", {}),
        "wait_seconds": ("How long the job waits for it; null for the default", None),
    },
    "TableProfile": {
        "table_type": ("Type of the table", "MERGE_ON_READ"),
        "table_version": ("Version of the table", 9),
        "timeline_layout": ("1, or 2 from table version 8 on", 2),
        "timeline_path": ("Folder of the timeline, relative to the base path", ".hoodie/timeline"),
        "bucket_layout": ("The bucket index that the file groups indicate", None),
        "partition_fields": ("Fields of the partition path", ["region"]),
        "record_key_fields": ("Fields of the record key", ["id"]),
        "ordering_fields": ("Fields that order rows of the same key", ["ts"]),
        "key_generator": ("Class or type of the key generator; null if not stored", None),
        "metadata_partitions": ("Partitions of the metadata table", ["files"]),
        "base_file_format": ("Format of the base files", "PARQUET"),
        "populates_meta_fields": ("Whether rows have Hudi's meta columns", True),
        "drops_partition_columns": ("Whether files lack the partition columns", False),
        "hive_style_partitioning": ("Whether paths are like `region=eu`", True),
        "url_encoded_partitions": ("Whether paths are URL-encoded", False),
        "columns": ("Columns besides Hudi's; empty until the table has data", None),
        "pending_instants": ("Instants that had not completed", 0),
        "warnings": ("Sentences for the owner", []),
    },
    "WorkOrder": {
        "table": ("What the table itself does not record", None),
        "params": ("Parameters of the kind", {}),
        "earlier_instants": ("Instants of earlier attempts", []),
        "writers_stopped": ("Whether the writers were stopped for this job", False),
        "timeout_seconds": ("Time limit of the attempt", 3600),
        "version": ("Version of this contract", 1),
        "traceparent": ("The trace of the job (W3C Trace Context); null without one", None),
    },
}
