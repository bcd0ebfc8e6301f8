"""Tests which commits may have used an old number of buckets, by the buckets of their rows."""

from __future__ import annotations

import pytest

from service.observation.stale_commits import may_be_old

BUCKET_3 = "00000003-0000-4000-8000-000000000000-0"


@pytest.mark.parametrize(
    ("old", "new", "rows", "soon", "later"),
    [
        ({4}, 8, 19, True, False),
        ({4}, 8, 20, True, True),
        # A hundred of 101 rows lie in the old buckets.
        ({100}, 101, 500, True, False),
        # Neither number divides the other, so that rows in such a bucket may be wrong.
        ({8}, 6, 5, True, False),
        # Among so many rows of the old number, at least one would be in a bucket that is gone.
        ({8}, 6, 60, False, False),
        ({8}, 4, 5, False, False),
        # The table had 6, 4, and now 7 buckets, or 6, 8, and now 4.
        ({6, 4}, 7, 5, True, False),
        ({6, 8}, 4, 5, True, False),
        ({2}, 7, 50, False, False),
    ],
)
def test_rows_in_the_old_buckets_show_an_old_number(
    old: set[int], new: int, rows: int, soon: bool, later: bool
) -> None:
    assert may_be_old({BUCKET_3: rows}, new, old, is_recent=True) is soon
    assert may_be_old({BUCKET_3: rows}, new, old, is_recent=False) is later
