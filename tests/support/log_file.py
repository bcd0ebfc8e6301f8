"""Makes the bytes of log files (`HoodieLogFormatWriter`, Hudi 1.2)."""

from __future__ import annotations

import struct


def entries(header: dict[int, str]) -> bytes:
    """Returns the bytes of a header or footer with these texts by kind."""
    found = struct.pack(">i", len(header))
    for kind, text in header.items():
        found += struct.pack(">ii", kind, len(text.encode())) + text.encode()
    return found


def block(kind: int, header: dict[int, str], content: bytes, *, version: int = 1, more: int = 0) -> bytes:
    """Returns a block; the size at its end is too large by `more` bytes."""
    inner = struct.pack(">ii", version, kind) + entries(header)
    inner += struct.pack(">q", len(content)) + content + entries({})
    size = len(inner) + 8
    return b"#HUDI#" + struct.pack(">q", size) + inner + struct.pack(">q", size + 6 + more)


def avro_block(schema: str, records: list[bytes]) -> bytes:
    """Returns a data block of encoded Avro records."""
    content = struct.pack(">ii", 3, len(records)) + b"".join(struct.pack(">i", len(each)) + each for each in records)
    return block(3, {2: schema}, content)
