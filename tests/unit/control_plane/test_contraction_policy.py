"""Tests when a table gets fewer buckets, how many, in which partitions, and that no expansion follows at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.contract import JobKind
from service.lake.snapshot import PartitionState, TableSnapshot
from service.policies.bucket_settings import ContractionSettings, ExpansionSettings
from service.policies.policy import Policy
from service.policies.settings import Mode
from service.scheduling import bucket_expansion
from service.scheduling.bucket_contraction import decide
from service.scheduling.decision import Run, Skip, Suggest
from service.scheduling.trigger_context import Calendar, TriggerContext
from service.scheduling.writer_hazard import Obstacle, WriterHazard
from tests.unit.control_plane.snapshots import MIB, NOW, a_snapshot, plan

AUTO = ContractionSettings(mode=Mode.AUTO, min_bucket_bytes=10 * MIB)
LIMIT = 1000 * MIB
PLAIN = TriggerContext(NOW)
HOW = {
    "on_active_writers": "wait",
    "wait_seconds": 300,
    "lock_seconds": 20,
    "hand_over_seconds": 3600,
    "settle_seconds": 15,
}


def partition(path: str, average: float, *, buckets: int = 16, largest: float | None = None) -> PartitionState:
    """Returns a partition; sizes are in MiB. The largest bucket has the average size by default."""
    return PartitionState(
        path,
        base_bytes=int(buckets * average * MIB),
        buckets=buckets,
        num_buckets=buckets,
        largest_bucket=1,
        largest_bucket_bytes=int((average if largest is None else largest) * MIB),
    )


def table(*partitions: PartitionState, **changes: Any) -> TableSnapshot:
    return a_snapshot(*partitions, **{"num_buckets": 16, **changes})


CASES = [
    ("the whole table", table(partition("", 3)), {"factor": 4},
     "the average bucket of the table has 3.0 MiB, 10.0 MiB are wanted; 4 buckets become one everywhere"),
    ("at most eight", table(partition("", 0.1)), {"factor": 8},
     "the average bucket of the table has 102.4 KiB, 10.0 MiB are wanted; 8 buckets become one everywhere"),
    ("a number that only two divides", table(partition("", 1, buckets=6)), {"factor": 2},
     "the average bucket of the table has 1.0 MiB, 10.0 MiB are wanted; 2 buckets become one everywhere"),
    ("some partitions", table(partition("a", 2), partition("b", 50), partition("c", 2)),
     {"factor": 8, "partitions": ["a", "c"]},
     "the average bucket of partition a has 2.0 MiB, 10.0 MiB are wanted; 8 buckets become one in 2 partitions of 3"),
    ("one factor at a time", table(partition("a", 2), partition("b", 6)), {"factor": 8, "partitions": ["a"]},
     "the average bucket of partition a has 2.0 MiB, 10.0 MiB are wanted; 8 buckets become one in 1 partition of 2"),
    ("one large bucket", table(partition("", 5, largest=100)), {"factor": 2},
     "the average bucket of the table has 5.0 MiB, 10.0 MiB are wanted; 2 buckets become one everywhere"),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "params", "because"), [pytest.param(*c, id=i) for i, *c in CASES])
def test_buckets_that_are_far_too_small_become_one(
    snapshot: TableSnapshot, params: dict[str, Any], because: str
) -> None:
    assert decide(AUTO, snapshot, PLAIN, limit=LIMIT) == Run(JobKind.BUCKET_CONTRACTION, {**params, **HOW}, because)
    suggest = replace(AUTO, mode=Mode.SUGGEST)
    assert decide(suggest, snapshot, PLAIN, limit=LIMIT) == Suggest(
        JobKind.BUCKET_CONTRACTION, {**params, **HOW}, because
    )


SMALL = partition("", 1)
NO_FACTOR = (
    "; but the number of buckets is odd, or two together would have more than a fourth of the 1000.0 MiB allowed"
)
SKIPS = [
    ("off", ContractionSettings(), table(SMALL), PLAIN, Skip("off", "bucket contraction is switched off")),
    ("no buckets", AUTO, a_snapshot(SMALL), PLAIN, Skip("no-bucket-index", "the table has no simple bucket index")),
    ("large enough", AUTO, table(partition("", 10)), PLAIN,
     Skip("large-enough", "no average bucket has less than 10.0 MiB")),
    ("a single bucket", AUTO, table(partition("", 1, buckets=1)), PLAIN,
     Skip("large-enough", "no average bucket has less than 10.0 MiB")),
    ("empty", AUTO, table(), PLAIN, Skip("large-enough", "no average bucket has less than 10.0 MiB")),
    ("odd", AUTO, table(partition("", 1, buckets=7)), PLAIN,
     Skip("no-factor", "the average bucket of the table has 1.0 MiB, 10.0 MiB are wanted" + NO_FACTOR)),
    ("one key has nearly all the rows", AUTO, table(partition("", 9, largest=126)), PLAIN,
     Skip("no-factor", "the average bucket of the table has 9.0 MiB, 10.0 MiB are wanted" + NO_FACTOR)),
    ("plans come first", AUTO, table(SMALL, pending=(plan(),)), PLAIN,
     Skip("plans-pending", "the average bucket of the table has 1.0 MiB, 10.0 MiB are wanted; but 001 (compaction,"
          " requested, 6 min old, probably made by a writer) goes first. Execute it: `groundskeeper jobs run compaction"
          " tbl_1 --param 'plans=[\"001\"]'`")),
    ("calendar says later", AUTO, table(SMALL), TriggerContext(NOW, Calendar(False, NOW + timedelta(hours=1))),
     Skip("not-yet", "its next scheduled time is 2026-01-01 13:00 UTC", NOW + timedelta(hours=1))),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "snapshot", "context", "skip"), [pytest.param(*c, id=i) for i, *c in SKIPS])
def test_nothing_is_contracted(
    settings: ContractionSettings, snapshot: TableSnapshot, context: TriggerContext, skip: Skip
) -> None:
    assert decide(settings, snapshot, context, limit=LIMIT) == skip


def test_contraction_is_off_by_default() -> None:
    assert Policy().bucket_contraction.mode is Mode.OFF


def test_statements_that_would_miss_rows_hold_it_back() -> None:
    hazard = WriterHazard(Obstacle("sql-statements-lose-rows", "Spark SQL writes the table"))
    held = decide(AUTO, table(SMALL), PLAIN, limit=LIMIT, hazard=hazard)
    assert isinstance(held, Skip)
    assert held.because.endswith(". But Spark SQL writes the table")


SIZES = st.sampled_from([2, 4, 12, 32]).flatmap(
    lambda number: st.lists(st.integers(1, 100), min_size=number, max_size=number)
)


@given(SIZES, st.integers(100, 20_000), st.integers(800, 4000))
def test_a_contraction_is_never_followed_by_an_expansion(sizes: list[int], wanted: int, limit: int) -> None:
    contraction = decide(
        ContractionSettings(mode=Mode.AUTO, min_bucket_bytes=wanted), with_buckets(sizes), PLAIN, limit=limit
    )
    assume(isinstance(contraction, Run))
    assert isinstance(contraction, Run)
    number = len(sizes) // int(contraction.params["factor"])
    after = with_buckets([sum(sizes[bucket::number]) for bucket in range(number)])
    expansion = bucket_expansion.decide(ExpansionSettings(mode=Mode.AUTO, max_bucket_bytes=limit), after, PLAIN)
    assert isinstance(expansion, Skip)


@given(SIZES, st.integers(1, 20_000), st.integers(1, 60), st.data())
def test_an_expansion_is_never_followed_by_a_contraction(
    sizes: list[int], wanted: int, limit: int, data: st.DataObject
) -> None:
    settings = ExpansionSettings(mode=Mode.AUTO, max_bucket_bytes=limit)
    expansion = bucket_expansion.decide(settings, with_buckets(sizes), PLAIN)
    assume(isinstance(expansion, Run))
    assert isinstance(expansion, Run)
    factor = int(expansion.params["factor"])
    after: list[int] = [0] * (len(sizes) * factor)
    for bucket, rows in enumerate(sizes):
        # Each child bucket gets at least its share if no key has many rows.
        for child in range(factor):
            after[bucket + child * len(sizes)] = -(-rows // factor) + data.draw(st.integers(0, 3))
    contraction = decide(
        ContractionSettings(mode=Mode.AUTO, min_bucket_bytes=wanted), with_buckets(after), PLAIN, limit=limit
    )
    assert isinstance(contraction, Skip)


def with_buckets(sizes: list[int]) -> TableSnapshot:
    """Returns a snapshot of buckets with these bytes each."""
    state = PartitionState(
        "",
        base_bytes=sum(sizes),
        buckets=len(sizes),
        num_buckets=len(sizes),
        largest_bucket=sizes.index(max(sizes)),
        largest_bucket_bytes=max(sizes),
    )
    return a_snapshot(state, num_buckets=len(sizes))
