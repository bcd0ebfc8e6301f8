"""Hashing metadata of consistent hashing are bounded and parsed, and the committed ones are chosen."""

from __future__ import annotations

import json

import pytest

from jobs.format.consistent_hashing import BASELINE, DamagedMetadataError, HashingMetadata, Versions
from service.lake.consistent_hashing import with_ranges
from service.lake.snapshot import PartitionState

FIRST, SECOND = "75cbeb97-532d-335f-9472-dcb06e01a9b5", "f778d35a-185e-3537-9844-4fcd8287d214"
RESIZE = "20261128023926992"


def content(*nodes: object) -> str:
    return json.dumps({"version": 0, "instant": BASELINE, "numBuckets": 4, "seqNo": 0, "nodes": nodes})


def node(value: object, prefix: object = FIRST) -> dict[str, object]:
    return {"value": value, "fileIdPrefix": prefix, "tag": "NORMAL"}


def test_the_nodes_are_the_buckets_whatever_the_number_says() -> None:
    found = HashingMetadata.from_json(BASELINE, content(node(2147483647), node(7, SECOND)))
    assert (found.ends, found.file_ids) == ((7, 2147483647), (f"{SECOND}-0", f"{FIRST}-0"))


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "[]",
        "[" * 100_000,
        "{}",
        content(),
        content(node(-1)),
        content(node(True)),
        content(node(2**31)),
        content(node("1")),
        content(node(1, "../etc/passwd")),
        content(node(1), node(1, SECOND)),
        content(node(1), node(2)),
        content(node(1), node(None)),
        content("x"),
        json.dumps({"nodes": {"value": 1}}),
    ],
)
def test_other_content_is_damaged(damaged: str) -> None:
    with pytest.raises(DamagedMetadataError):
        HashingMetadata.from_json(BASELINE, damaged)


@pytest.mark.parametrize(
    ("names", "completed", "expected"),
    [
        ([], set(), Versions(None)),
        ([f"{BASELINE}.hashing_meta"], set(), Versions(BASELINE)),
        ([f"{BASELINE}.hashing_meta", f"{RESIZE}.hashing_meta"], set(), Versions(BASELINE, (RESIZE,))),
        ([f"{BASELINE}.hashing_meta", f"{RESIZE}.hashing_meta"], {RESIZE}, Versions(RESIZE)),
        ([f"{BASELINE}.hashing_meta", f"{RESIZE}.hashing_meta", f"{RESIZE}.commit"], set(), Versions(RESIZE)),
        ([f"{RESIZE}.hashing_meta"], set(), Versions(None, (RESIZE,))),
        ([f".{BASELINE}.hashing_meta.crc", f"{BASELINE}.hashing_meta.tmp.7", "x.hashing_meta"], set(), Versions(None)),
    ],
)
def test_the_latest_committed_metadata_are_in_force(names: list[str], completed: set[str], expected: Versions) -> None:
    assert Versions.of(names, completed.__contains__) == expected


@pytest.mark.parametrize(
    ("sizes", "largest", "neighbours"),
    [
        ([5, 1, 9, 2], 9, 5),  # The last range is a neighbour of the first one.
        ([7, 9, 3, 1], 9, 3),
        ([1, None, 2, None], 2, None),  # A bucket without files is between them.
        ([None, None, None, None], 0, None),
        ([4, 4], 4, 4),
        ([4], 4, None),
    ],
)
def test_the_sizes_of_ranges_are_compared_with_their_neighbours(
    sizes: list[int | None], largest: int, neighbours: int | None
) -> None:
    ids = tuple(f"id-{number}-0" for number in range(len(sizes)))
    found = HashingMetadata(BASELINE, tuple(range(len(sizes))), ids)
    known = {each: size for each, size in zip(ids, sizes, strict=True) if size is not None}
    state = with_ranges(PartitionState("dt=1"), found, known)
    assert (state.num_buckets, state.largest_range_bytes, state.neighbours_bytes) == (len(sizes), largest, neighbours)
    assert with_ranges(PartitionState("dt=1"), None, known) == PartitionState("dt=1")
