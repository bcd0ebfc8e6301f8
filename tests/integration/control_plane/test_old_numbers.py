"""Writers that still follow an old number of buckets are recognized by the buckets that they write to."""

from __future__ import annotations

import pytest

from jobs.format.stale_writes import REPAIRED_KEY, REPAIRS_KEY
from tests.integration.control_plane.stories import (
    NEW_A,
    NEW_B,
    OLD,
    OPEN,
    REPAIRED,
    STALE,
    SUSPECTED,
    Story,
)
from tests.integration.control_plane.watching import A, B
from tests.support.small_table import bucket_id

pytestmark = pytest.mark.mostly_sqlite


def test_after_an_expansion_a_write_by_the_new_number_is_right(either: Story) -> None:
    story = either
    story.register()
    story.expand()
    story.commit({NEW_A: 30, bucket_id(3, tail=2): 30})
    story.poll()
    assert story.found == []


def test_a_write_by_the_old_number_to_a_new_partition_is_suspected(either: Story) -> None:
    story = either
    story.register()
    expansion = story.expand()
    late = story.commit({A: 30, B: 30}, partition="q", in_base=True)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]
    assert story.incidents[0].details == {
        "rows": 60,
        "partitions": 1,
        "by_partition": [{"partition": "q", "rows": 60, "buckets": [2, 4], "since": expansion}],
    }
    # There is no event for a mere suspicion.
    assert story.published == []


def test_a_write_before_the_registration_of_its_table_is_suspected_as_well(story: Story) -> None:
    story.expand()
    late = story.commit({A: 30}, partition="q", in_base=True)
    story.register()
    assert story.found == [(OLD, SUSPECTED, late)]


def test_a_few_rows_are_suspected_on_the_day_of_the_expansion_only(story: Story) -> None:
    story.register()
    story.expand()
    story.poll()
    soon = story.commit({NEW_A: 3}, hours=1)
    story.commit({NEW_A: 3}, hours=30)
    many = story.commit({NEW_A: 20}, hours=1)
    story.poll()
    assert sorted(each.instant for each in story.incidents) == [soon, many]


def test_a_write_before_the_expansion_and_an_empty_one_are_not_suspected(story: Story) -> None:
    story.register()
    story.commit({A: 30}, partition="q", in_base=True)
    story.expand()
    story.commit({})
    story.commit({NEW_A: 0})
    story.poll()
    assert story.found == []


def test_a_single_row_in_a_bucket_that_a_contraction_took_away_is_suspected_however_late(either: Story) -> None:
    story = either
    story.register()
    contraction = story.contract()
    story.commit({NEW_A: 500})
    late = story.commit({NEW_A: 1, NEW_B: 1}, hours=100, in_base=True)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]
    assert story.incidents[0].details["by_partition"] == [
        {"partition": "p", "rows": 1, "buckets": [2, 1], "since": contraction}
    ]


PLAIN = "c0ffee00-0000-4000-8000-000000000001-0"
"""The id of a file group without a bucket."""


def test_a_writer_that_keeps_its_index_after_an_adoption_is_suspected_by_a_file_id_without_a_bucket(
    either: Story,
) -> None:
    story = either
    story.commit({PLAIN: 30}, in_base=True)
    adoption = story.replace((PLAIN,), (A, B))
    story.register()
    assert story.found == []
    story.commit({A: 30, B: 30})
    late = story.commit({PLAIN.replace("1-0", "2-0"): 4}, hours=100, in_base=True)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]
    assert story.incidents[0].details["by_partition"] == [
        {"partition": "p", "rows": 4, "buckets": [2], "since": adoption}
    ]


@pytest.mark.parametrize("polled", [True, False])
def test_a_repair_that_takes_file_groups_without_a_bucket_out_of_use_is_no_adoption(
    story: Story, *, polled: bool
) -> None:
    story.register()
    story.commit({A: 30, B: 30})
    stray = story.commit({PLAIN: 4}, in_base=True)
    story.replace((PLAIN,), (), extra={REPAIRS_KEY: stray})
    if polled:
        story.poll()
    late = story.commit({PLAIN.replace("1-0", "2-0"): 4}, in_base=True)
    story.poll()
    of = {each.instant: each for each in story.incidents}
    assert of[late].details["by_partition"] == [{"partition": "p", "rows": 4, "buckets": [2]}]


def test_a_writer_without_the_bucket_index_is_suspected_in_a_new_partition_too(story: Story) -> None:
    story.register()
    late = story.commit({PLAIN: 4}, partition="q", in_base=True)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]
    assert story.incidents[0].details["by_partition"] == [{"partition": "q", "rows": 4, "buckets": [2]}]


def test_a_proved_stale_write_is_not_also_a_suspicion(story: Story) -> None:
    story.register()
    story.expand()
    story.poll()
    late = story.commit({A: 30})
    story.poll()
    assert story.found == [(STALE, OPEN, late)]


def test_only_partitions_whose_number_has_changed_count(story: Story) -> None:
    story.register()
    instant = story.replace((A, B), (NEW_A, NEW_B, bucket_id(2), bucket_id(3)), "BUCKET_RESCALE")
    story.table.hashing_config("00000000000000", 2)
    story.table.hashing_config(instant, 2, rules="^p$,4")
    story.commit({A: 30}, partition="q", in_base=True)
    story.poll()
    assert story.found == []
    late = story.commit({NEW_A: 30})
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]


def test_the_last_change_of_each_partition_counts_however_long_ago(story: Story) -> None:
    story.register()
    instant = story.replace((A, B), (NEW_A, NEW_B, bucket_id(2), bucket_id(3)), "BUCKET_RESCALE")
    story.table.hashing_config("00000000000000", 2)
    story.table.hashing_config(instant, 2, rules="^p$,4")
    story.poll()
    other = story.replace((), (bucket_id(5, tail=3),), "BUCKET_RESCALE")
    story.table.hashing_config(other, 2, rules="^p$,4;^other$,8")
    story.poll()
    late = story.commit({NEW_A: 30}, hours=100)
    story.poll()
    assert story.found == [(OLD, SUSPECTED, late)]


def test_an_event_reports_a_suspicion_that_a_repair_has_confirmed(story: Story) -> None:
    story.register()
    story.expand()
    late = story.commit({NEW_A: 30})
    story.poll()
    # A repair's own rows may lie in low buckets.
    story.commit({NEW_A: 30}, extra={REPAIRED_KEY: late})
    story.poll()
    assert story.found == [(OLD, REPAIRED, late)]
    assert story.published == ["incident_opened", "incident_closed"]
