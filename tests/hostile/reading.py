"""Wraps each reader of a table's files as a function of bytes, which a reader process can call."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pyarrow as pa

from jobs.format.bucket_hash import RecordKeyError, hash_codes
from jobs.format.bucket_rules import BucketRulesError
from jobs.format.file_names import bucket_of, is_fixed, parse_base_file_name, parse_log_file_name
from jobs.format.hashing_config import DamagedConfigError, HashingConfig
from jobs.format.instants import moment
from service.lake.history import archived_since
from service.lake.instant_metadata import ReplaceRequest, decode, parse_metadata
from service.lake.storage import Entry, open_storage
from service.lake.table_config import TableConfig, read_table_config
from service.lake.timeline import file_name_of, timeline_of
from service.model.storage_errors import StorageError
from service.registration.detection import examine


def metadata(content: bytes) -> None:
    for action in ("deltacommit", "clean", "rollback", "restore"):
        with contextlib.suppress(StorageError):
            parse_metadata(action, content, "file")
    decode(content, ReplaceRequest, "file")


def properties(content: bytes, base: str) -> None:
    Path(base, ".hoodie", "hoodie.properties").write_bytes(content)
    config = read_table_config(open_storage(base, {}))
    for name in ("table_type", "timeline_path", "history_path", "archive_path", "partition_fields", "key_generator"):
        repr(getattr(config, name)).encode()
    config.name.encode()


def timeline_name(content: bytes) -> None:
    for instant in timeline_of([content.decode(errors="replace")]).instants:
        file_name_of(instant)
        for zone in ("UTC", "LOCAL"):
            moment(instant.requested_time, {"hoodie.table.timeline.timezone": zone})
    entries = [Entry(content.decode(errors="replace"), 1, is_folder=False, modified_us=time.time_ns() // 1000)]
    for version in ("6", "9"):
        TableConfig({"hoodie.table.version": version}).in_frame_of(entries)


def file_name(content: bytes) -> None:
    name = content.decode(errors="replace")
    found = parse_base_file_name(name) or parse_log_file_name(name)
    if found:
        bucket_of(found.file_id)
        is_fixed(found.file_id)


def hashing_config(content: bytes) -> None:
    with contextlib.suppress(DamagedConfigError, BucketRulesError):
        HashingConfig.from_json("001", content).num_buckets_for("city=Berlin/day=2026-01-01")


def record_keys(content: bytes) -> None:
    with contextlib.suppress(RecordKeyError):
        hash_codes(pa.array([content.decode(errors="replace")]), ("id", "city"))


def base_file(content: bytes, base: str, path: str) -> None:
    Path(base, path).write_bytes(content)
    examine(base, allowed_roots=None, claimed=None, storage_options={})


def history(content: bytes, base: str, path: str) -> None:
    Path(base, path).write_bytes(content)
    storage = open_storage(base, {})
    archived_since(storage, read_table_config(storage), "0")
