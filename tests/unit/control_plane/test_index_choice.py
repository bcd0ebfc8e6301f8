"""Tests whether a bucket index is suggested for a table, by what its upserts have touched."""

from __future__ import annotations

import pytest

from jobs.contract import JobKind
from service.simulation.index_choice import Written, chosen


def test_scattered_keys_get_the_suggestion_of_a_bucket_index() -> None:
    # Two of four partitions with 10 file groups each: 18 of 20.
    found = chosen(Written([(2, 18)] * 10 + [(1, 1)], partitions=4, file_groups=40))
    assert found is not None
    assert (found.kind, found.upserts, found.touched) == (JobKind.BUCKET_INDEX, 11, 0.9)
    assert "touches 90 % of the file groups of its partitions" in found.text
    assert "unique only within a partition" in found.text


@pytest.mark.parametrize(
    ("written", "because"),
    [
        (Written([(1, 1)] * 10, 4, 40), "touches 10 % of"),
        (Written([(4, 40)] * 10, 4, 40, metadata=("files", "record_index")), "has a record index"),
        (Written([(4, 8)] * 10, 4, 8), "has 2.0 file groups"),
    ],
)
def test_another_table_may_keep_its_index_with_the_reason(written: Written, because: str) -> None:
    found = chosen(written)
    assert found is not None
    assert found.kind is None
    assert because in found.text


def test_few_upserts_or_no_files_lead_to_no_suggestion() -> None:
    assert chosen(Written([(1, 10)] * 9, 4, 40)) is None
    assert chosen(Written([(1, 10)] * 10, 4, 0)) is None
    assert chosen(Written([(1, 10)] * 10, 0, 0)) is None
    # The upserts touched more file groups than the table has now.
    found = chosen(Written([(1, 1000)] * 10, 4, 40))
    assert found is not None
    assert found.touched == 1.0
