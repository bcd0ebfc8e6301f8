"""Tests what a resize refuses, and how it reports what it has gained."""

from __future__ import annotations

import pytest

from jobs.format.written_file import WrittenFile
from jobs.kinds.bucket_resize import BucketResizeResult
from jobs.protocol.writer_engines import of_flink_with_ranges
from jobs.services.resize_plan import larger_share


def test_a_resize_that_flink_prevents_is_not_tried_again() -> None:
    [refusal] = of_flink_with_ranges("Flink is a declared or detected writer")
    assert (refusal.type, refusal.retriable) == ("flink-may-be-running", False)
    assert not of_flink_with_ranges(None)


@pytest.mark.parametrize(
    ("children", "share"),
    [
        ([(50, 500), (50, 500)], 0.5),
        ([(100, 1000), (0, 0)], 1.0),
        ([(100, 1000)], 1.0),  # No file is written for the other child.
        ([(50, 950), (50, 50)], 0.95),
        ([(92, 500), (8, 500)], 0.92),
        ([(0, 400)], 0.0),
    ],
)
def test_the_larger_share_of_a_split_is_that_of_rows_or_bytes(children: list[tuple[int, int]], share: float) -> None:
    files = [WrittenFile("p", "old", f"new{n}", "f", *each, "") for n, each in enumerate(children)]
    assert larger_share(files) == pytest.approx(share)


@pytest.mark.parametrize(
    ("members", "has_gained"),
    [
        ({"nothing_to_do": True}, False),
        ({"split": 2, "one_sided": 2, "merged_away": 0}, False),
        ({"split": 2, "one_sided": 1, "merged_away": 0}, None),
        ({"split": 1, "one_sided": 1, "merged_away": 3}, None),
        ({"split": 0, "one_sided": 0, "merged_away": 0}, None),
        ({"split": 1, "merged_away": 0}, None),
    ],
)
def test_a_resize_whose_splits_separate_nothing_has_gained_nothing(members: dict[str, int], has_gained: bool) -> None:
    assert BucketResizeResult(**members).has_gained is has_gained
