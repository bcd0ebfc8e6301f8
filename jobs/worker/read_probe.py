"""Measures what readers need on this machine: processor seconds to scan base files, and to merge log files."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

logger = logging.getLogger(__name__)

_GIB = 2.0**30
_ROWS = 4_000
_TIMES = 3
_SCHEMA: Mapping[str, Any] = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": "_hoodie_commit_time", "type": ["null", "string"]},
        {"name": "_hoodie_record_key", "type": ["null", "string"]},
        {"name": "_hoodie_partition_path", "type": ["null", "string"]},
        {"name": "amount", "type": ["null", "double"]},
        {"name": "at", "type": ["null", "long"]},
        {"name": "city", "type": ["null", "string"]},
    ],
}


def read_rates() -> dict[str, float] | None:
    """Returns processor seconds for a GiB of base files and for one of log files; None if nothing can be measured. The
    probe works in memory, on rows like the rows of tables, and takes a fraction of a second.

    A file of a few MiB stands for a base file, Avro records for a log file: as in a merge-on-read query, each is
    decoded and looked up by its key.
    """
    try:
        rows = _rows()
        base, log = _base_file(rows), _log_file(rows)
        return {
            "scan_seconds_per_gib": _seconds(lambda: _scan(base)) * _GIB / len(base),
            "merge_seconds_per_gib": _seconds(lambda: _merge(log)) * _GIB / len(log),
        }
    except (OSError, MemoryError, ValueError, pa.ArrowException) as error:
        logger.warning("Nothing is known about what reads cost on this machine: %s", error)
        return None


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "_hoodie_commit_time": "20260101120000000",
            "_hoodie_record_key": f"id:{number * 7919 % _ROWS:09}",
            "_hoodie_partition_path": "region=eu",
            "amount": number * 0.37,
            "at": 1_700_000_000_000 + number * 997,
            "city": f"city {number * 31 % 997}",
        }
        for number in range(_ROWS)
    ]


def _base_file(rows: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer)
    return buffer.getvalue()


def _log_file(rows: list[dict[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    parsed = fastavro.parse_schema(dict(_SCHEMA))
    for row in rows:
        fastavro.schemaless_writer(buffer, parsed, row)
    return buffer.getvalue()


def _scan(base: bytes) -> None:
    pq.read_table(io.BytesIO(base), use_threads=False)


def _merge(log: bytes) -> None:
    parsed = fastavro.parse_schema(dict(_SCHEMA))
    source, merged = io.BytesIO(log), {}
    while source.tell() < len(log):
        row: Any = fastavro.schemaless_reader(source, parsed, None)
        merged[row["_hoodie_record_key"]] = row


def _seconds(work: Callable[[], None]) -> float:
    """Returns the least processor time of a few runs: others on the machine can only make it longer."""
    found = []
    for _ in range(_TIMES):
        begun = time.thread_time()
        work()
        found.append(time.thread_time() - begun)
    return max(min(found), 1e-6)
