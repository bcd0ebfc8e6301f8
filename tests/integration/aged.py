"""Makes a local table look older: changes its instants and the times of its files."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import TYPE_CHECKING

from jobs.format.instants import instant_of, wall_clock

if TYPE_CHECKING:
    from pathlib import Path

_INSTANT = re.compile(r"(?<!\d)20\d{15}(?!\d)")


def age(base: Path, days: int) -> None:
    """Moves all instants of a table without a metadata table into the past by `days`.

    The rows keep their `_hoodie_commit_time`.
    """
    assert not (base / ".hoodie" / "metadata").exists()
    for checksum in base.rglob(".*.crc"):
        checksum.unlink()
    files = [path for path in base.rglob("*") if path.is_file()]
    instants = {instant for path in files for instant in _INSTANT.findall(path.name)}
    # Older instants have the same length, so that records and log blocks remain valid.
    older = {instant: instant_of(wall_clock(instant) - timedelta(days=days)) for instant in instants}
    for path in files:
        written = path.stat().st_mtime
        if path.suffix != ".parquet":
            content = path.read_bytes()
            for instant, then in older.items():
                content = content.replace(instant.encode(), then.encode())
            path.write_bytes(content)
        os.utime(path, (written - days * 86_400, written - days * 86_400))
        path.rename(path.with_name(_INSTANT.sub(lambda found: older[found[0]], path.name)))
