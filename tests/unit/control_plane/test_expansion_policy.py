"""Tests the decision table of expansions: when a table gets more buckets, in which partitions and how many."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jobs.contract import JobKind, WriterEngine
from service.catalog.registration import Registration, Writers
from service.lake.engine_sighting import Sighting
from service.lake.snapshot import PartitionState, TableSnapshot
from service.policies.bucket_settings import ContractionSettings, ExpansionSettings
from service.policies.settings import Mode
from service.scheduling import bucket_contraction
from service.scheduling.bucket_expansion import decide, factor_for
from service.scheduling.bucket_growth import BucketGrowth, Largest, foreseen
from service.scheduling.decision import Decision, Run, Skip, Suggest, Verdict
from service.scheduling.decision_inputs import has_waited
from service.scheduling.trigger_context import Calendar, TriggerContext
from service.scheduling.writer_hazard import NO_HAZARD, writer_hazard
from tests.unit.control_plane.snapshots import MIB, NOW, a_snapshot, plan

AUTO = ExpansionSettings(mode=Mode.AUTO, max_bucket_bytes=100 * MIB)
SUGGEST = ExpansionSettings(mode=Mode.SUGGEST, max_bucket_bytes=100 * MIB)
PLAIN = TriggerContext(NOW)
HOW = {
    "on_active_writers": "wait",
    "wait_seconds": 300,
    "lock_seconds": 20,
    "hand_over_seconds": 3600,
    "settle_seconds": 15,
}


def partition(path: str, largest: float, *, average: float | None = None) -> PartitionState:
    """Returns a partition with four buckets; sizes are in MiB. The average is the size of the largest bucket by
    default."""
    total = 4 * (largest if average is None else average)
    return PartitionState(
        path,
        base_bytes=int(total * MIB),
        buckets=4,
        num_buckets=4,
        largest_bucket=2,
        largest_bucket_bytes=int(largest * MIB),
    )


def table(*partitions: PartitionState, **changes: Any) -> TableSnapshot:
    return a_snapshot(*partitions, **{"num_buckets": 4, **changes})


@pytest.mark.parametrize(
    ("largest", "factor"), [(101, 2), (200, 2), (201, 4), (400, 4), (401, 8), (800, 8), (801, 8), (1_000_000, 8)]
)
def test_the_factor_is_the_smallest_power_of_two_that_makes_buckets_small_enough(largest: int, factor: int) -> None:
    assert factor_for(largest, 100) == factor


CASES = [
    ("the whole table", table(partition("", 150)), {"factor": 2},
     "bucket 2 of the table has 150.0 MiB, 100.0 MiB are allowed; 2 times as many buckets everywhere"),
    ("half of the partitions", table(partition("a", 350), partition("b", 1)), {"factor": 4, "partitions": ["a"]},
     "bucket 2 of partition a has 350.0 MiB, 100.0 MiB are allowed; 4 times as many buckets in 1 partition of 2"),
    ("a few partitions", table(*(partition(f"p{n}", 150 if n in (3, 1) else 5) for n in range(9))),
     {"factor": 2, "partitions": ["p1", "p3"]},
     "bucket 2 of partition p1 has 150.0 MiB, 100.0 MiB are allowed; 2 times as many buckets in 2 partitions of 9"),
    ("most partitions", table(partition("a", 150), partition("b", 150), partition("c", 5)), {"factor": 2},
     "bucket 2 of partition a has 150.0 MiB, 100.0 MiB are allowed; 2 times as many buckets everywhere"),
    ("an uneven partition beside", table(partition("a", 300, average=10), partition("b", 150), partition("c", 5)),
     {"factor": 2, "partitions": ["b"]},
     "bucket 2 of partition b has 150.0 MiB, 100.0 MiB are allowed; 2 times as many buckets in 1 partition of 3"),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "params", "because"), [pytest.param(*c, id=i) for i, *c in CASES])
def test_buckets_that_are_too_large_are_split(snapshot: TableSnapshot, params: dict[str, Any], because: str) -> None:
    assert decide(AUTO, snapshot, PLAIN) == Run(JobKind.BUCKET_EXPANSION, {**params, **HOW}, because)
    assert decide(SUGGEST, snapshot, PLAIN) == Suggest(JobKind.BUCKET_EXPANSION, {**params, **HOW}, because)


LARGE = partition("", 150)
SKIPS = [
    ("off", ExpansionSettings(mode=Mode.OFF), table(LARGE), PLAIN,
     Skip("off", "bucket expansion is switched off")),
    ("no buckets", AUTO, a_snapshot(LARGE), PLAIN,
     Skip("no-bucket-index", "the table has no simple bucket index")),
    ("just right", AUTO, table(partition("", 100)), PLAIN,
     Skip("small-enough", "the largest bucket has 100.0 MiB, 100.0 MiB are allowed")),
    ("empty", AUTO, table(), PLAIN, Skip("small-enough", "the largest bucket has 0 B, 100.0 MiB are allowed")),
    ("one key has all the rows", AUTO, table(partition("", 90_000, average=24)), PLAIN,
     Skip("uneven-keys", "bucket 2 of the table has 87.9 GiB, 100.0 MiB are allowed; but an average bucket has "
               "24.0 MiB, so more buckets would not separate its few keys")),
    ("plans come first", AUTO, table(LARGE, pending=(plan(),)), PLAIN,
     Skip("plans-pending", "bucket 2 of the table has 150.0 MiB, 100.0 MiB are allowed; but 001 (compaction, "
          "requested, 6 min old, probably made by a writer) goes first. Execute it: `groundskeeper jobs run compaction "
          "tbl_1 --param 'plans=[\"001\"]'`")),
    ("a plan of this service is executed by it", AUTO, table(LARGE, pending=(plan(),)),
     TriggerContext(NOW, own_instants=frozenset({"001"})),
     Skip("plans-pending", "bucket 2 of the table has 150.0 MiB, 100.0 MiB are allowed; but 001 (compaction, "
          "requested, 6 min old, made by this service) goes first")),
    ("a plan that Flink has begun", AUTO, table(LARGE, pending=(plan(state="inflight", hours=3),)),
     TriggerContext(NOW, has_flink=True),
     Skip("plans-pending", "bucket 2 of the table has 150.0 MiB, 100.0 MiB are allowed; but 001 (compaction, "
          "inflight, 3 h old, probably made by a Flink job) goes first. If the Flink job that began the plan is "
          "stopped, execute it: `groundskeeper jobs run compaction tbl_1 --param 'plans=[\"001\"]' --param "
          "take_over=true`, or start that job again with `compaction.async.enabled=true`, which executes the plan, "
          "but may leave another one. Otherwise wait: two executions of a plan corrupt the table. A process without "
          "heartbeats counts as dead an hour after its last file; then any compaction executes the plan")),
    ("calendar says later", AUTO, table(LARGE), TriggerContext(NOW, Calendar(False, NOW + timedelta(hours=1))),
     Skip("not-yet", "its next scheduled time is 2026-01-01 13:00 UTC", NOW + timedelta(hours=1))),
]  # fmt: skip


@pytest.mark.parametrize(("given", "snapshot", "context", "skip"), [pytest.param(*c, id=i) for i, *c in SKIPS])
def test_nothing_is_split(
    given: ExpansionSettings, snapshot: TableSnapshot, context: TriggerContext, skip: Skip
) -> None:
    assert decide(given, snapshot, context) == skip


def test_a_schedule_only_decides_when_sizes_are_checked() -> None:
    due = TriggerContext(NOW, Calendar(is_due=True))
    assert isinstance(decide(AUTO, table(LARGE), due), Run)
    assert isinstance(decide(AUTO, table(partition("", 5)), due), Skip)


@pytest.mark.parametrize("is_declared", [True, False])
def test_statements_that_would_miss_rows_hold_back_a_first_expansion_and_are_warned_about_after_it(
    is_declared: bool,
) -> None:
    writers = Writers(engines=(WriterEngine.SPARK_SQL,) if is_declared else (WriterEngine.SPARK,))
    seen = {} if is_declared else {WriterEngine.SPARK_SQL: Sighting(NOW, NOW, "7", "UPDATE_PREPPED")}
    sales = Registration("t", "/lake/sales", "sales", NOW, NOW, writers=writers)

    held = decide(AUTO, table(LARGE), PLAIN, writer_hazard(sales, seen, has_hashing_config=False))
    assert isinstance(held, Skip)
    assert held.code == "sql-statements-lose-rows"
    assert "query_pruning_off" in held.because
    assert held.warning is None

    for settings in (AUTO, ExpansionSettings(mode=Mode.OFF)):
        warned = decide(settings, table(LARGE), PLAIN, writer_hazard(sales, seen, has_hashing_config=True))
        warning = (
            "Spark SQL writes the table, which has a hashing config: set hoodie.bucket.index.query.pruning=false in"
            " every such session, and declare it (`writers.query_pruning_off`)."
        )
        assert warned == replace(decide(settings, table(LARGE), PLAIN), warning=warning)

    remedied = sales.evolve(writers=replace(writers, query_pruning_off=True))
    for has_hashing_config in (True, False):
        assert writer_hazard(remedied, seen, has_hashing_config=has_hashing_config) == NO_HAZARD


@pytest.mark.parametrize(
    ("table_version", "writers", "is_refused"),
    [
        (8, Writers(), True),
        (6, Writers(hudi_version="1.0.2"), True),
        (6, Writers(hudi_version="0.15.0", stopped=True), False),
        (8, Writers(hudi_version="1.1.0"), False),
        (9, Writers(), False),
    ],
)
def test_writers_that_may_be_too_old_are_no_reason_to_suggest_an_expansion(
    table_version: int, writers: Writers, is_refused: bool
) -> None:
    trips = Registration(
        "t", "/lake/trips", "trips", NOW, NOW, writers=writers, profile={"table_version": table_version}
    )
    hazard = writer_hazard(trips, {}, has_hashing_config=False)
    for settings in (AUTO, SUGGEST):
        decision = decide(settings, table(LARGE), PLAIN, hazard)
        assert (isinstance(decision, Skip) and decision.code == "writers-too-old") == is_refused


def test_a_table_that_only_dataframes_write_has_no_writer_hazard() -> None:
    trips = Registration("t", "/lake/trips", "trips", NOW, NOW, writers=Writers(engines=(WriterEngine.SPARK,)))
    assert writer_hazard(trips, {}, has_hashing_config=True) == NO_HAZARD
    assert writer_hazard(trips, {}, has_hashing_config=False) == NO_HAZARD


def growing(largest: float, per_day: float, quiet_hours: float, time_zone: str = "UTC") -> BucketGrowth:
    """Returns the forecast of a bucket of so many MiB, which grows by so many MiB a day."""
    quiet_at = NOW + timedelta(hours=quiet_hours)
    found = foreseen(per_day / largest, Largest(int(largest * MIB), 4, 100 * MIB), NOW, quiet_at, time_zone)
    assert found
    return found


def test_an_expansion_starts_in_the_quiet_hour_before_the_limit_and_lasts_for_90_days() -> None:
    before = table(partition("", 96))
    # The limit is reached in 16 hours, and in 90 days there would be 636 MiB.
    waits = decide(AUTO, before, PLAIN, growth=growing(96, 6, 5))
    assert isinstance(waits, Skip)
    assert (waits.code, waits.until) == ("not-quiet", NOW + timedelta(hours=5))
    runs = decide(AUTO, before, PLAIN, growth=growing(96, 6, 0))
    assert isinstance(runs, Run)
    assert runs.params == {"factor": 8, **HOW}
    assert runs.because == (
        "bucket 2 of the table has 96.0 MiB, 100.0 MiB are allowed and expected by 2026-01-02 04:00 UTC;"
        " 8 times as many buckets everywhere, which last for 90 days"
    )
    assert isinstance(decide(SUGGEST, before, PLAIN, growth=growing(96, 6, 5)), Suggest)


def test_the_times_in_reasons_are_those_of_the_zone_of_the_quiet_hours() -> None:
    found = decide(AUTO, table(partition("", 96)), PLAIN, growth=growing(96, 6, 5, "Asia/Kolkata"))
    assert isinstance(found, Skip)
    assert found.because == (
        "bucket 2 of the table has 96.0 MiB, 100.0 MiB are allowed and expected by 2026-01-02 09:30 Asia/Kolkata;"
        " 8 times as many buckets everywhere, which last for 90 days; best at 2026-01-01 22:30 Asia/Kolkata, a quiet"
        " time"
    )


def test_an_expansion_waits_while_the_limit_is_days_ahead_but_not_once_it_is_far_exceeded() -> None:
    early = decide(AUTO, table(partition("", 80)), PLAIN, growth=growing(80, 2, 0))
    assert isinstance(early, Skip)
    assert (early.code, early.until) == ("small-enough", NOW + timedelta(days=9))
    assert isinstance(decide(AUTO, table(partition("", 110)), PLAIN, growth=growing(110, 2, 5)), Skip)
    urgent = decide(AUTO, table(partition("", 130)), PLAIN, growth=growing(130, 2, 5))
    assert isinstance(urgent, Run)
    assert urgent.params == {"factor": 4, **HOW}


def test_a_schedule_counts_more_than_the_quiet_hour() -> None:
    scheduled = TriggerContext(NOW, Calendar(is_due=True))
    assert isinstance(decide(AUTO, table(partition("", 110)), scheduled, growth=growing(110, 2, 5)), Run)


@pytest.mark.parametrize("per_day", [0.5, 2, 6, 20])
def test_buckets_for_90_days_are_not_merged_again(per_day: float) -> None:
    found = decide(AUTO, table(partition("", 100)), PLAIN, growth=growing(100, per_day, 0))
    assert isinstance(found, Run)
    factor = found.params["factor"]
    after = replace(partition("", 100 / factor), buckets=4 * factor, num_buckets=4 * factor, base_bytes=400 * MIB)
    contraction = bucket_contraction.decide(
        ContractionSettings(mode=Mode.AUTO, min_bucket_bytes=90 * MIB),
        table(after),
        PLAIN,
        limit=100 * MIB,
        growth=growing(100 / factor, per_day / factor, 0),
    )
    assert isinstance(contraction, Skip)


def test_an_expansion_that_has_waited_waits_for_no_other_quiet_hour() -> None:
    near, later = table(partition("", 96)), growing(96, 6, 5)
    assert isinstance(decide(AUTO, near, PLAIN, growth=later), Skip)
    assert isinstance(decide(AUTO, near, replace(PLAIN, has_waited=True), growth=later), Run)
    # An expansion that is not due stays so.
    small = decide(AUTO, table(partition("", 50)), replace(PLAIN, has_waited=True), growth=growing(50, 1, 5))
    assert isinstance(small, Skip)


@pytest.mark.parametrize(
    ("verdict", "code", "hours", "expected"),
    [
        (Verdict.SKIP, "not-quiet", 23, False),
        (Verdict.SKIP, "not-quiet", 24, True),
        (Verdict.WAIT, "kind-limit-reached", 1, True),
        (Verdict.SKIP, "small-enough", 99, False),
        (Verdict.RUN, "due", 1, False),
    ],
)
def test_an_expansion_counts_as_waiting_after_a_day_or_behind_other_jobs(
    verdict: Verdict, code: str, hours: int, expected: bool
) -> None:
    last = Decision(JobKind.BUCKET_EXPANSION, verdict, code, "", NOW - timedelta(hours=hours), NOW)
    assert has_waited(last, NOW) is expected
