"""Tests when jobs are due by an objective, and whether the objective is met."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from jobs.contract import JobKind
from service.lake.snapshot import PartitionState, TableSnapshot
from service.outcome.gain import gain_of
from service.outcome.objective import Kept, check
from service.outcome.read_cost import RatesBasis, ReadRates, ReadWork, read_cost
from service.outcome.reads import Reads, ReadSource
from service.outcome.table_objective import TableObjective
from service.policies.objective import ObjectiveSettings
from service.policies.settings import CleaningSettings, ClusteringSettings, CompactionSettings
from service.scheduling import cleaning, clustering, compaction
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import Calendar, TriggerContext
from tests.unit.control_plane.snapshots import MIB, NOW, a_snapshot, ago, since

# A GiB is read in one second from base files, in ten seconds from logs; a query and a file are opened in no time.
RATES = ReadRates(open_seconds=0.0, scan_seconds_per_gib=1.0, merge_seconds_per_gib=10.0, start_seconds=0.0)
_KNOWN = ("oldest_log_at", "gb_hours", "spent_until", "work_seconds")
OFTEN, NEVER = Reads(240.0, ReadSource.LINEAGE), Reads(0.0, ReadSource.LINEAGE)


def context(
    reads: Reads = OFTEN, calendar: Calendar | None = None, rates: ReadRates = RATES, **more: object
) -> TriggerContext:
    known = {name: more.pop(name) for name in _KNOWN if name in more}
    objective = TableObjective(ObjectiveSettings(**more), rates, reads, **known)  # type: ignore[arg-type]
    return TriggerContext(NOW, calendar, objective=objective)


def logs(mib: int, commits: int, hours: int = 1) -> TableSnapshot:
    part = PartitionState("", file_groups=4, base_files=4, base_bytes=100 * MIB, log_files=4, log_bytes=mib * MIB)
    return a_snapshot(part, since_compaction=since(commits, hours=hours))


def compacts(snapshot: TableSnapshot, given: TriggerContext) -> Run | Skip:
    return compaction.decide(CompactionSettings(commits=1000), snapshot, given)


def test_logs_are_compacted_before_a_read_costs_too_much() -> None:
    # A MiB of logs adds a tenth: two commits have added 0.1, and the next one would add 0.05.
    assert isinstance(compacts(logs(1, 2), context(read_overhead=1.2)), Skip)
    due = compacts(logs(2, 3), context(read_overhead=1.2))
    assert isinstance(due, Run)
    assert due.because == (
        "a read costs 1.20 times what it would right after a compaction, 1.2 allowed; 240 reads a day (by OpenLineage)"
    )
    # The thresholds are ignored if there is an objective.
    given = context(read_overhead=1.2)
    assert isinstance(compaction.decide(CompactionSettings(commits=1), logs(1, 3), given), Skip)
    assert isinstance(compaction.decide(CompactionSettings(commits=1), logs(1, 3), context()), Run)


def test_logs_that_matter_little_beside_the_start_of_a_query_wait() -> None:
    asked = context(read_overhead=1.2)
    small = PartitionState("", file_groups=2, base_files=2, base_bytes=4 * MIB, log_files=2, log_bytes=MIB)
    assert isinstance(compacts(a_snapshot(small, since_compaction=since(3)), asked), Run)
    starts = context(read_overhead=1.2, rates=replace(RATES, start_seconds=0.4))
    assert isinstance(compacts(a_snapshot(small, since_compaction=since(3)), starts), Skip)
    # A large table is compacted as before.
    for given in (asked, starts):
        part = PartitionState("", file_groups=4, base_files=4, base_bytes=100 * 1024 * MIB, log_bytes=2048 * MIB)
        assert isinstance(compacts(a_snapshot(part, since_compaction=since(3)), given), Run)


def test_logs_are_compacted_before_a_read_takes_too_many_seconds() -> None:
    # Base files take 0.098 s, a MiB of logs 0.0098 s: the next of these commits would reach 0.196 s.
    given = context(read_seconds=0.19)
    assert isinstance(compacts(logs(8, 8), given), Skip)
    due = compacts(logs(9, 9), given)
    assert isinstance(due, Run)
    assert due.because == (
        "a read costs 0.186 s, 0.0977 s right after a compaction, 0.19 s allowed; 240 reads a day (by OpenLineage)"
    )
    # The stricter of two limits counts.
    assert isinstance(compacts(logs(2, 3), context(read_seconds=0.19, read_overhead=1.2)), Run)
    assert isinstance(compacts(logs(9, 9), context(read_seconds=0.19, read_overhead=5.0)), Run)
    assert check(given.objective, logs(9, 9), NOW, merges_files=False).missed is None
    missed = check(given.objective, logs(10, 10), NOW, merges_files=False).missed
    assert missed == "a read costs 0.195 s, 0.0977 s after a compaction, 0.19 s allowed"


def test_a_limit_that_no_compaction_can_keep_lets_logs_double_the_cost() -> None:
    given = context(read_seconds=0.1)
    waits = compacts(logs(8, 8), given)
    assert isinstance(waits, Skip)
    assert "0.1 s allowed (no job can keep that: the next one is due at 0.195 s)" in waits.because
    assert isinstance(compacts(logs(10, 10), given), Run)
    assert check(given.objective, logs(1, 1), NOW, merges_files=False).missed is not None


def test_a_burst_of_writes_is_compacted_at_once() -> None:
    assert isinstance(compacts(logs(200, 1), context(read_overhead=1.2)), Run)


def test_unknown_reads_are_assumed_and_said() -> None:
    found = compacts(logs(1, 9), context(Reads(), read_overhead=1.2))
    assert found.because.endswith("reads unknown: 24 a day assumed")


def test_logs_of_a_table_that_nobody_reads_wait_for_a_day() -> None:
    given = context(NEVER, read_overhead=1.2, oldest_log_at=ago(hours=3))
    found = compacts(logs(50, 5), given)
    assert isinstance(found, Skip)
    assert "but nobody reads the table" in found.because
    assert found.until == NOW + timedelta(hours=21)
    later = replace(given, now=NOW + timedelta(hours=21))
    assert isinstance(compacts(logs(50, 5), later), Run)
    assert check(given.objective, logs(50, 5), NOW, merges_files=False).missed is None


def weighs(per_day: float, **more: object) -> TriggerContext:
    """Returns the inputs for logs of an hour, which a compaction of two seconds would merge."""
    work = {JobKind.COMPACTION: 2.0, JobKind.CLUSTERING: 2.0}
    return context(Reads(per_day, ReadSource.LINEAGE), oldest_log_at=ago(hours=1), work_seconds=work, **more)


def test_a_compaction_waits_until_readers_have_paid_enough_for_it() -> None:
    # 50 MiB of logs cost each read half a second, so in this hour 240 reads a day have paid 2.4 seconds.
    enough = compacts(logs(50, 5), weighs(240.0, least_worth=1.0))
    assert isinstance(enough, Run)
    assert enough.because == (
        "a read costs 6.00 times what it would right after a compaction; 240 reads a day (by OpenLineage);"
        " readers have paid 1.2 s for each second of its work"
    )
    given = weighs(24.0, least_worth=1.0, read_overhead=1.2)
    found = compacts(logs(50, 5), given)
    assert isinstance(found, Skip)
    assert found.because == (
        "a read costs 6.00 times what it would right after a compaction, 1.2 allowed; 24 reads a day (by OpenLineage);"
        " but readers have paid 0.12 s for each second of its work, 1 s wanted"
    )
    # After eight hours readers have paid enough.
    assert found.until is not None
    assert found.until - NOW == timedelta(hours=1) * (1 / 0.1220703125 - 1)
    assert isinstance(compacts(logs(50, 5), replace(given, now=found.until)), Run)
    # Reads that are too few for a job miss nothing.
    assert check(given.objective, logs(50, 5), NOW, merges_files=False).missed is None
    assert check(given.objective, logs(50, 5), found.until, merges_files=False).missed is not None


def test_the_age_of_logs_and_the_limit_of_reads_count_beside_their_worth() -> None:
    assert isinstance(compacts(logs(50, 5), weighs(24.0, least_worth=1.0, log_age_seconds=900)), Run)
    assert isinstance(compacts(logs(50, 5), weighs(9000.0, least_worth=1.0, read_overhead=20.0)), Skip)
    assert isinstance(compacts(logs(0, 5), weighs(9000.0, least_worth=1.0)), Skip)


@pytest.mark.parametrize("per_day", [0.0, 0.01, 0.2])
def test_logs_that_hardly_anybody_reads_wait_for_a_day(per_day: float) -> None:
    given = weighs(per_day, least_worth=1.0)
    found = compacts(logs(50, 5), given)
    assert isinstance(found, Skip)
    assert found.until == NOW + timedelta(hours=23)
    assert isinstance(compacts(logs(50, 5), replace(given, now=found.until)), Run)


def test_small_files_wait_until_readers_have_paid_enough_for_them() -> None:
    part = PartitionState(
        "", file_groups=100, base_files=100, base_bytes=100 * MIB, small_files=100, small_bytes=100 * MIB
    )
    snapshot = a_snapshot(part, since_clustering=since(5, hours=1))
    settings, rates = ClusteringSettings(enabled=True), replace(RATES, open_seconds=0.01)
    for per_day, kind in ((2.0, Skip), (2000.0, Run)):
        assert isinstance(clustering.decide(settings, snapshot, weighs(per_day, rates=rates, least_worth=1.0)), kind)


def test_logs_are_compacted_before_they_are_too_old() -> None:
    given = context(log_age_seconds=900, oldest_log_at=ago(minutes=10))
    found = compacts(logs(1, 2), given)
    assert isinstance(found, Skip)
    assert found.because == "the oldest log file is about 10 min old, 15 min allowed"
    assert found.until is not None
    assert isinstance(compacts(logs(1, 2), replace(given, now=found.until)), Run)
    # After a clock was set back, a log file may have a later time than now.
    assert isinstance(compacts(logs(1, 2), context(log_age_seconds=900, oldest_log_at=NOW + timedelta(days=1))), Skip)


def test_the_first_member_of_an_objective_that_is_missed_makes_a_job_due() -> None:
    old = context(read_overhead=100.0, log_age_seconds=900, oldest_log_at=ago(hours=1))
    assert isinstance(compacts(logs(1, 2), old), Run)
    costly = context(read_overhead=1.01, log_age_seconds=9000, oldest_log_at=ago(minutes=1))
    assert isinstance(compacts(logs(1, 2), costly), Run)


def test_the_daily_budget_overrides_all_other_members() -> None:
    spent = {"max_gb_hours_per_day": 2.0, "gb_hours": 2.1, "spent_until": NOW + timedelta(hours=3)}
    for given in (context(read_overhead=1.2, **spent), context(calendar=Calendar(is_due=True), **spent)):
        found = compacts(logs(50, 5), given)
        assert isinstance(found, Skip)
        assert found.because.endswith("; but the table's jobs have taken 2.1 GB-hours in 24 hours, 2 allowed")
        assert found.until == NOW + timedelta(hours=3)
    assert isinstance(compacts(logs(50, 5), context(read_overhead=1.2, max_gb_hours_per_day=2.2, gb_hours=2.1)), Run)


def test_a_calendar_counts_before_the_objective() -> None:
    waits = context(calendar=Calendar(is_due=False), read_overhead=1.2)
    assert isinstance(compacts(logs(50, 5), waits), Skip)


def test_small_files_are_merged_when_they_cost_too_much() -> None:
    part = PartitionState(
        "", file_groups=100, base_files=100, base_bytes=100 * MIB, small_files=100, small_bytes=100 * MIB
    )
    given = context(rates=replace(RATES, open_seconds=0.01), read_overhead=1.2)
    settings = ClusteringSettings(enabled=True)
    found = clustering.decide(settings, a_snapshot(part), given)
    assert isinstance(found, Run)
    assert found.because.startswith("a read costs 10.20 times what it would with small files merged, 1.2 allowed; ")
    # Buckets cannot be merged, and an objective says nothing about the order of rows.
    assert ReadWork.of(a_snapshot(part, num_buckets=4)).mergeable_files == 0
    ordered = ClusteringSettings(enabled=True, sort_by=("city",), small_file_share=None)
    assert isinstance(clustering.decide(ordered, a_snapshot(part), given), Skip)


def test_old_versions_are_deleted_when_they_take_too_much() -> None:
    settings = CleaningSettings(commits=1000)
    part = PartitionState("", base_files=1, base_bytes=100 * MIB, freed_files=3, freed_bytes=60 * MIB)
    assert isinstance(cleaning.decide(settings, a_snapshot(part), context(storage_overhead=1.5)), Run)
    assert isinstance(cleaning.decide(settings, a_snapshot(part), context(storage_overhead=1.7)), Skip)


@pytest.mark.parametrize(
    ("objective", "missed"),
    [
        (
            {"read_overhead": 1.2},
            "a read costs 1.50 times what it would after a compaction and a clustering, 1.2 allowed",
        ),
        ({"log_age_seconds": 900}, "the oldest log file is 1 h old, 15 min allowed"),
        ({"read_overhead": 2.0, "log_age_seconds": 9000}, None),
        ({"storage_overhead": 1.5}, None),
    ],
)
def test_the_read_overhead_and_the_missed_objective_are_named(objective: dict[str, float], missed: str | None) -> None:
    found = check(context(oldest_log_at=ago(hours=1), **objective).objective, logs(5, 5), NOW, merges_files=True)
    assert (found.overhead, found.missed) == (pytest.approx(1.5), missed)


def test_an_empty_table_costs_nothing_and_misses_nothing() -> None:
    given = context(read_overhead=1.2, storage_overhead=1.2)
    assert check(given.objective, a_snapshot(), NOW, merges_files=True).missed is None
    only_freed = a_snapshot(PartitionState("", freed_files=2, freed_bytes=MIB))
    assert isinstance(cleaning.decide(CleaningSettings(), only_freed, given), Run)
    assert check(given.objective, only_freed, NOW, merges_files=True).missed is not None


def test_the_error_budget_is_the_share_that_may_be_missed() -> None:
    week = Kept(7 * 86_400, 0.6 * 0.01 * 7 * 86_400)
    assert week.burn(99.0) == pytest.approx(0.6)
    assert Kept().burn(99.0) == 0.0


def test_a_gain_is_what_all_reads_of_an_hour_save() -> None:
    cost = read_cost(ReadWork.of(logs(5, 5)), RATES)
    gain = gain_of(JobKind.COMPACTION, cost, OFTEN)
    assert gain is not None
    assert gain.seconds_per_read == pytest.approx(50 / 1024)
    assert gain.seconds_per_hour == pytest.approx(500 / 1024)
    assert replace(gain, seconds_per_read=18.6).text(8.0) == "saves 3.1 reader-minutes an hour for 8 s of work"
    assert gain_of(JobKind.AUDIT, cost, OFTEN) is None


def test_rates_come_from_probes_that_can_be_true() -> None:
    sent = {"open_seconds": 0.002, "scan_seconds_per_gib": 3, "merge_seconds_per_gib": 33.0}
    found = ReadRates.from_json(sent)
    assert found == ReadRates(0.002, 3.0, 33.0, RatesBasis.PROBE)
    for lie in ({**sent, "open_seconds": -1}, {**sent, "scan_seconds_per_gib": float("nan")}, {}, {"open_seconds": []}):
        assert ReadRates.from_json(lie) is None
    slow = replace(found, merge_seconds_per_gib=5000.0)
    assert ReadRates.middle([found, slow, found]) == found
    assert ReadRates.middle([]).basis is RatesBasis.DEFAULT
