"""Positions of streaming writers in the extra metadata of their commits. Writers read them from the active timeline
when they restart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from jobs.format import kafka_connect

_BY_QUERY = "_hudi_streaming_sink_checkpoint"
"""Spark's Structured Streaming (`HoodieStreamingSink`, 1.2): a JSON object that maps ids of queries to their last
batches."""

_ONE_EACH = (
    "deltastreamer.checkpoint.key",  # `StreamerCheckpointV1`
    "streamer.checkpoint.key.v2",  # `StreamerCheckpointV2`
    kafka_connect.OFFSETS,
)


def newest_positions(commits: Iterable[tuple[str, Mapping[str, str]]]) -> dict[tuple[str, str], str]:
    """Returns the newest instant for each position, by its key and the id of its query (empty for other writers).

    `commits` are instants with their extra metadata. Hudi takes the newest instant that has the key
    (`CommitUtils.getValidCheckpointForCurrentWriter`).
    """
    found: dict[tuple[str, str], str] = {}
    for instant, extra in sorted(commits, key=lambda each: each[0]):
        for query in _queries(extra.get(_BY_QUERY) or ""):
            found[_BY_QUERY, query] = instant
        for key in _ONE_EACH:
            if extra.get(key):
                found[key, ""] = instant
    return found


def undone_queries(undone: Iterable[Mapping[str, str]], kept: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Returns the ids of Structured Streaming's queries whose last batches are in commits that are undone, by the extra
    metadata of all commits. Spark's own checkpoint counts these batches as written, so it never gives them again; the
    other streams read their position in the table."""
    before, after = _last_batches(kept), _last_batches(undone)
    return tuple(sorted(query for query, batch in after.items() if batch > before.get(query, -1)))


def _last_batches(extras: Iterable[Mapping[str, str]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for extra in extras:
        for query, batch in _queries(extra.get(_BY_QUERY) or "").items():
            if str(batch).isdecimal():
                found[query] = max(found.get(query, -1), int(batch))
    return found


def _queries(text: str) -> dict[str, Any]:
    try:
        stored: Any = msgspec.json.decode(text) if text else {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}
