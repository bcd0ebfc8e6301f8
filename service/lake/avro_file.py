"""Reads Avro files within bounds (Avro 1.12 specification, "Object Container Files")."""

from __future__ import annotations

import io
import json
import zlib
from functools import lru_cache
from typing import Any

import fastavro

from service.lake.storage import MAX_METADATA_BYTES

MAGIC = b"Obj\x01"

_MOST_KEPT = 64 * 1024

_HEADER: Any = {
    "type": "record",
    "name": "org.apache.avro.file.Header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
    ],
}
_PARSED_HEADER = fastavro.parse_schema(_HEADER)


def first_record(content: bytes) -> Any:
    """Decodes the first record of a file.

    fastavro's own reader is not used, because it unpacks blocks of any size. Raises ValueError for a block that unpacks
    to more than MAX_METADATA_BYTES and for codecs that Hudi does not write; for damage, the errors of fastavro.
    """
    source = io.BytesIO(content)
    header: Any = fastavro.schemaless_reader(source, _PARSED_HEADER, None)
    text: bytes = header["meta"]["avro.schema"]
    schema = parsed_schema(text)
    count: Any = fastavro.schemaless_reader(source, "long", None)
    if count < 1:
        raise ValueError("a file without a record")
    block: Any = fastavro.schemaless_reader(source, "bytes", None)
    match header["meta"].get("avro.codec", b"null"):
        case b"null":
            unpacked = block
        case b"deflate":
            unpacked = _inflated(block)
        case codec:
            raise ValueError(f"a codec that Hudi does not write: {codec[:20]!r}")
    return fastavro.schemaless_reader(io.BytesIO(unpacked), schema, None)


def parsed_schema(text: bytes) -> Any:
    """Returns a schema for fastavro. Parsed schemas are kept, because Hudi writes the same few into all files of all
    timelines. Raises ValueError and the errors of fastavro."""
    return _parsed(text) if len(text) <= _MOST_KEPT else json.loads(text)


@lru_cache(maxsize=64)
def _parsed(text: bytes) -> Any:
    return fastavro.parse_schema(json.loads(text))


def _inflated(block: bytes) -> bytes:
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    unpacked = unpacking.decompress(block, MAX_METADATA_BYTES)
    if not unpacking.eof:
        raise ValueError(f"a block that is cut off, or unpacks to more than {MAX_METADATA_BYTES} bytes")
    return unpacked
