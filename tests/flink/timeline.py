"""Reads what a Flink job has written to a table's timeline (by default of table version 8 or later)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fastavro

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Commit:
    """`files` are the written files, with `rows`; `inflight_bytes` is the size of the inflight instant."""

    instant: str
    action: str
    operation: str
    extra: dict[str, str]
    files: int
    rows: int
    inflight_bytes: int


def commits(base: Path) -> list[Commit]:
    """Returns the completed commits and deltacommits, in the order of their instants."""
    folder = base / ".hoodie" / "timeline"
    return [_commit(folder, path) for path in sorted(folder.glob("*_*.*commit"))]


def pending(base: Path) -> list[str]:
    """Returns the pending instants of a table of any version."""
    folder = base / ".hoodie" / "timeline"
    if not folder.exists():
        names = {path.name for path in (base / ".hoodie").iterdir() if path.name[:1].isdigit()}
        completed = {name.split(".")[0] for name in names if not name.endswith((".requested", ".inflight"))}
        return sorted({name.split(".")[0] for name in names} - completed)
    names = {path.name for path in folder.iterdir() if path.name[:1].isdigit()}
    # The name of a completed instant's file has one more part while it is written.
    completed = {name.split("_")[0] for name in names if "_" in name and name.count(".") == 1}
    return sorted({name.split(".")[0] for name in names if "_" not in name} - completed)


def wait_until_complete(base: Path) -> float:
    """Waits until no instant is pending, and returns the seconds."""
    start = time.monotonic()
    while left := pending(base):
        assert time.monotonic() < start + PATIENCE_SECONDS, f"{left} are never completed"
        time.sleep(0.02)
    return time.monotonic() - start


def _commit(folder: Path, path: Path) -> Commit:
    with path.open("rb") as file:
        metadata: Any = next(iter(fastavro.reader(file)))
    instant, action = path.name.split("_")[0], path.suffix[1:]
    inflight = folder / (f"{instant}.inflight" if action == "commit" else f"{instant}.{action}.inflight")
    written = metadata["partitionToWriteStats"] or {}
    return Commit(
        instant,
        action,
        metadata["operationType"],
        metadata["extraMetadata"] or {},
        files=sum(len(stats) for stats in written.values()),
        rows=sum(stat["numWrites"] or 0 for stats in written.values() for stat in stats),
        inflight_bytes=inflight.stat().st_size if inflight.exists() else -1,
    )
