"""The columns that Hudi adds to every row (`HoodieRecord.HOODIE_META_COLUMNS`, 1.2.0), as far as jobs read them."""

COMMIT_TIME = "_hoodie_commit_time"
RECORD_KEY = "_hoodie_record_key"
PARTITION_PATH = "_hoodie_partition_path"
FILE_NAME = "_hoodie_file_name"
# Only where writers set `hoodie.allow.operation.metadata.field` (`HOODIE_META_COLUMNS_WITH_OPERATION`).
OPERATION = "_hoodie_operation"
