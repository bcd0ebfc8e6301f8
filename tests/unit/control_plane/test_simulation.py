"""Tests the replay of commits under a policy, on a virtual clock."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import JobKind
from jobs.job_params import CleaningPolicy
from service.lake.table import TableType
from service.outcome.reads import Reads, ReadSource
from service.outcome.table_objective import TableObjective
from service.policies.bucket_settings import ExpansionSettings
from service.policies.freeze import Freeze
from service.policies.objective import ObjectiveSettings
from service.policies.policy import Policy, Window
from service.policies.settings import (
    AuditSettings,
    CleaningSettings,
    ClusteringSettings,
    CompactionSettings,
    Mode,
    Trigger,
)
from service.queue.cost import Basis, Cost
from service.scheduling.admission import Limits
from service.simulation import advice, simulator
from service.simulation.fleet import Fleet
from service.simulation.growth import Growth, Merged, PolledSizes, fitted
from service.simulation.out_of_use import left_by
from service.simulation.outcome import KindOutcome, Outcome
from service.simulation.simulated_table import SimulatedTable
from service.simulation.simulator import simulated
from service.simulation.table_past import Beginning, Freed, Ran, Write
from service.simulation.what_if import WhatIf
from tests.unit.control_plane.past_fleet import BEGIN, DAY, HOUR, MIB, a_fleet, a_past, cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.simulation.table_past import TablePast

COMPACTION, CLEANING, AUDIT = JobKind.COMPACTION, JobKind.CLEANING, JobKind.AUDIT


def outcome(pasts: Sequence[TablePast], days: float = 1.0, expected: Any = cost, **fleet: Any) -> Outcome:
    return simulated(pasts, Fleet(**{"slots": {"default": 2}, **fleet}), expected, BEGIN, BEGIN + days * DAY)


def jobs(found: Outcome) -> Counter[JobKind]:
    return Counter({each.kind: each.jobs for each in found.kinds})


def compaction_policy(commits: int, **more: Any) -> Policy:
    return Policy(compaction=CompactionSettings(commits=commits, **more))


def at_night(hour: int) -> Policy:
    return Policy(windows=(Window(time(hour), time(hour + 1)),))


def test_a_table_is_compacted_as_often_as_its_threshold_says() -> None:
    # 144 commits; no poll sees the last one before the end.
    assert jobs(outcome([a_past(policy=compaction_policy(5))]))[COMPACTION] == 28
    assert jobs(outcome([a_past(policy=compaction_policy(12))]))[COMPACTION] == 11
    assert jobs(outcome([a_past(policy=compaction_policy(200))]))[COMPACTION] == 0


def test_fewer_compactions_rewrite_less_and_leave_more_logs() -> None:
    often, seldom = (outcome([a_past(policy=compaction_policy(each))]) for each in (5, 20))
    assert seldom.rewritten_bytes < often.rewritten_bytes / 2
    assert seldom.gb_hours < often.gb_hours
    assert seldom.read_overhead is not None
    assert often.read_overhead is not None
    assert seldom.read_overhead > often.read_overhead > 1
    assert max(each.log_bytes for each in seldom.points) <= 21 * MIB


def test_a_simulation_begins_with_the_state_of_the_table() -> None:
    writes = [Write(BEGIN + 60, MIB, 4)]
    begun = {COMPACTION: Ran(BEGIN - HOUR, 4, 4 * MIB)}
    past = a_past(writes=writes, ran=begun, beginning=Beginning(8, 1024 * MIB, 16, 4 * MIB))
    found = outcome([past])
    assert jobs(found)[COMPACTION] == 1
    assert found.points[-1].log_bytes == 0
    assert jobs(outcome([replace(past, ran={})]))[COMPACTION] == 0


def a_policy(rng: Random) -> Policy:
    """Returns a policy whose kinds are due by commits, by time, by both, by an objective or by a schedule."""
    compaction = CompactionSettings(
        trigger=rng.choice(list(Trigger)),
        commits=rng.choice([1, 5, 12]),
        seconds=rng.choice([600, 20_000]),
        log_ratio=rng.choice([None, None, 0.02]),
        cron=rng.choice([None, None, "30 */6 * * *"]),
        limit_file_groups=rng.choice([None, 5]),
    )
    cleaning = CleaningSettings(
        enabled=rng.random() < 0.8, trigger=rng.choice(list(Trigger)), commits=rng.choice([1, 10]), seconds=7200
    )
    clustering = ClusteringSettings(enabled=rng.random() < 0.4, min_interval_seconds=600)
    objective = ObjectiveSettings(rng.choice([None, None, 1.5]), storage_overhead=rng.choice([None, 1.3]))
    audit = AuditSettings(enabled=rng.random() < 0.8, seconds=7200, cron=rng.choice([None, "15 * * * *"]))
    return Policy(
        compaction=compaction,
        cleaning=cleaning,
        clustering=clustering,
        objective=objective,
        audit=audit,
        windows=rng.choice([(), (), (Window(time(3), time(9)),)]),
    )


@pytest.mark.parametrize(
    "seed",
    [
        *(3, 5),
        *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 7, 23)),
        *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (0, 1, 4, 6)),
    ],
)
def test_skipping_commits_that_change_no_decision_changes_no_outcome(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Without skipping, each kind is decided about at each poll with a new commit."""
    rng = Random(seed)
    growth = Growth(kept=0.2, new_files=rng.choice([0.0, 3.0]), small_files=rng.choice([0.0, 2.0]))
    fleet = [replace(each, policy=a_policy(rng), growth=growth) for each in a_fleet(7, 0.5, seed=seed)[2:]]
    fleet.append(a_past(99, policy=a_policy(rng), first_commit_at=None))
    _check_that_skipping_changes_nothing(monkeypatch, fleet, rng)


def test_skipping_while_the_limit_is_reached_changes_no_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = a_fleet(12, 0.5, seed=7)
    limited = _check_that_skipping_changes_nothing(monkeypatch, fleet, Random(0), Limits(active=3))
    assert limited.jobs < outcome(fleet, 0.5, slots={"default": 4}).jobs


def _check_that_skipping_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, fleet: Sequence[TablePast], rng: Random, limits: Limits | None = None
) -> Outcome:
    given: dict[str, Any] = {
        "slots": {"default": rng.choice([1, 2])},
        "limits": limits or Limits(active=rng.choice([2, 100])),
    }
    skipping = outcome(fleet, 0.5, **given)

    class NothingLasts(dict[JobKind, Any]):
        def __setitem__(self, kind: JobKind, lasting: Any) -> None:
            pass

    class Slow(SimulatedTable):
        def decide(self, *given: Any) -> Any:
            self._lasting = NothingLasts()
            return super().decide(*given)

        def likely_idle(self) -> None:
            return None

        def still_limited(self, now: float) -> None:
            return None

        def _commits_to_go(self, kind: JobKind) -> int:
            return 0

    monkeypatch.setattr(simulator, "SimulatedTable", Slow)
    assert outcome(fleet, 0.5, **given) == skipping
    assert skipping.jobs
    return skipping


def test_a_kind_that_is_switched_off_is_not_awaited_at_its_scheduled_times() -> None:
    policy = compaction_policy(5, cron="30 */6 * * *", enabled=False)
    assert jobs(outcome([a_past(policy=policy)]))[COMPACTION] == 0


def test_the_same_past_has_the_same_outcome() -> None:
    assert outcome(a_fleet(6, 1)) == outcome(a_fleet(6, 1))


def test_jobs_start_in_windows_only_and_in_no_freeze() -> None:
    found = outcome([a_past(policy=at_night(3))])
    # Each of the compactions is in the open hour, after the minimum interval, and so is a cleaning.
    assert 1 <= jobs(found)[COMPACTION] <= 2
    before, after = (
        [each.log_bytes for each in found.points if (each.at.hour < 3) is early] for early in (True, False)
    )
    assert max(before) > 15 * MIB
    assert min(after) < 2 * MIB
    begin = datetime.fromtimestamp(BEGIN, UTC)
    frozen = Freeze("sale", begin, begin.replace(hour=20), ("t*",), "", "ada", begin, begin)
    assert jobs(outcome([a_past()], freezes=[frozen]))[COMPACTION] < 10
    assert not outcome([a_past(policy=Policy(paused=True))]).jobs


def test_jobs_that_no_worker_takes_before_the_window_closes_or_a_freeze_begins_are_withdrawn() -> None:
    def slow(*given: Any, **more: Any) -> Cost:
        return Cost(HOUR * 0.75, 1.0, HOUR, Basis.TABLE, 1.0)

    nightly = replace(
        compaction_policy(5), windows=(Window(time(3), time(4)),), cleaning=CleaningSettings(enabled=False)
    )
    nightly = replace(nightly, audit=AuditSettings(enabled=False))
    fleet = [a_past(number, policy=nightly) for number in range(8)]
    # One slot takes two jobs in the window: one at three, and one that ends after four.
    assert jobs(outcome(fleet, expected=slow, slots={"default": 1}))[COMPACTION] == 2
    # A withdrawn job is due again in the next night, also a job of a schedule.
    for given in (nightly, replace(nightly, compaction=CompactionSettings(cron="0 3 1 * *"))):
        fleet = [a_past(number, policy=given) for number in range(4)]
        assert jobs(outcome(fleet, days=2.0, expected=slow, slots={"default": 1}))[COMPACTION] == 4
    begin = datetime.fromtimestamp(BEGIN, UTC)
    frozen = Freeze("sale", begin + timedelta(hours=4), begin + timedelta(days=2), ("t*",), "", "ada", begin, begin)
    fleet = [a_past(number, policy=replace(nightly, windows=())) for number in range(20)]
    found = outcome(fleet, expected=slow, slots={"default": 1}, freezes=[frozen])
    assert jobs(found)[COMPACTION] == 5
    assert (found.longest_wait or 0) < 4 * HOUR


def test_a_schedule_or_elapsed_time_also_triggers_jobs() -> None:
    assert jobs(outcome([a_past(policy=compaction_policy(5, cron="30 */6 * * *"))]))[COMPACTION] == 4
    by_time = compaction_policy(5, trigger=Trigger.SECONDS, seconds=int(2 * HOUR))
    assert jobs(outcome([a_past(policy=by_time)]))[COMPACTION] in (11, 12)
    assert jobs(outcome([a_past(ended={AUDIT: BEGIN - DAY / 2})]))[AUDIT] == 1
    assert jobs(outcome([a_past(policy=Policy(audit=AuditSettings(enabled=False)))]))[AUDIT] == 0


def test_a_copy_on_write_table_is_cleaned_and_keeps_what_is_retained() -> None:
    policy = Policy(cleaning=CleaningSettings(commits=20, retain=10))
    past = a_past(table_type=TableType.COPY_ON_WRITE, growth=Growth(logged=0.0, kept=0.25), policy=policy)
    found = outcome([past])
    assert jobs(found)[COMPACTION] == 0
    assert jobs(found)[CLEANING] == 7
    # Three quarters of each commit replace older files; 10 to 31 of them are kept.
    assert 7 * MIB <= found.points[-1].freed_bytes <= 25 * MIB
    assert found.points[-1].base_bytes == pytest.approx(1024 * MIB + 36 * MIB, abs=MIB)


@pytest.mark.parametrize("policy", list(CleaningPolicy))
def test_a_cleaning_keeps_what_a_consumer_needs_and_waits_for_it(policy: CleaningPolicy) -> None:
    settings = CleaningSettings(commits=1, retain=2, policy=policy, min_interval_seconds=0)
    past = a_past(table_type=TableType.COPY_ON_WRITE, policy=Policy(cleaning=settings))
    alone, needed, all_needed = (outcome([replace(past, behind=behind)], 0.5) for behind in (0, 60, 999))
    assert jobs(all_needed)[CLEANING] == 0 < jobs(needed)[CLEANING] < jobs(alone)[CLEANING]
    # Each of the 72 commits takes as many bytes out of use, and the consumer is 60 commits behind.
    kept = needed.points[-1].freed_bytes / all_needed.points[-1].freed_bytes
    assert kept == pytest.approx(60 / 72, abs=0.03)


def test_a_cleaning_waits_until_the_first_old_version_is_older_than_the_retained_commits() -> None:
    often = CleaningSettings(commits=1, retain=10, min_interval_seconds=0)
    past = a_past(
        table_type=TableType.COPY_ON_WRITE, growth=Growth(logged=0.0, kept=0.25), policy=Policy(cleaning=often)
    )
    # Each commit after the tenth makes a version removable. No poll sees the last of the 144.
    assert jobs(outcome([past]))[CLEANING] == 133
    known = replace(past.beginning, freed_files=4, freed_bytes=8 * MIB, freed=(Freed(8, 0.0), Freed(4, 0.0)))
    found = outcome([replace(past, beginning=known, writes=past.writes[:2])])
    # The first part of the old files may be deleted ten commits after it went out of use; the other part is kept.
    assert jobs(found)[CLEANING] == 1
    assert found.points[-1].freed_bytes == pytest.approx(4 * MIB + 0.75 * 2 * MIB)


@pytest.mark.parametrize(
    ("commits", "has_sessions", "cleanings"), [(13, False, 0), (14, False, 1), (14, True, 0), (15, True, 1)]
)
def test_a_cleaning_retains_compactions_too_but_not_beside_sessions_of_spark_sql(
    commits: int, has_sessions: bool, cleanings: int
) -> None:
    # The first compaction follows five commits, the second one is among the ten after it.
    past = a_past(writes=a_past().writes[:commits], policy=compaction_policy(5), has_sessions=has_sessions)
    found = jobs(outcome([past]))
    assert (found[COMPACTION], found[CLEANING]) == (commits // 5, cleanings)


@dataclass
class Made:
    on_timeline: str
    run: JobKind | None = None
    at: float = 0.0


def test_a_simulation_knows_from_commits_which_old_files_earlier_cleanings_have_left() -> None:
    two = CleaningSettings(retain=2)
    before = [Made("1"), Made("2"), Made("4", COMPACTION), Made("5"), Made("7", COMPACTION, 9.0), Made("8")]
    assert left_by(before, two, is_merge_on_read=True) == [Freed(3, 0.0), Freed(1, 9.0)]
    # A commit that completed before the cleaning was requested counts, one that came later does not.
    assert left_by([*before, Made("6", CLEANING)], two, is_merge_on_read=True) == [Freed(3, 0.0), Freed(1, 9.0)]
    assert left_by([*before, Made("9", CLEANING)], two, is_merge_on_read=True) == [Freed(1, 9.0)]
    assert left_by([Made("1"), Made("2")], two, is_merge_on_read=False) == [Freed(1, 0.0), Freed(0, 0.0)]
    # Beside sessions of Spark SQL only the commits of writers count.
    freed = left_by(before, two, is_merge_on_read=True, has_sessions=True)
    assert freed == [Freed(2, 0.0), Freed(1, 9.0)]
    # The known commits took no files out of use, so the files that are out of use come from earlier commits.
    assert left_by([Made("1"), Made("2")], two, is_merge_on_read=True) == [Freed(2, 0.0)]


def test_small_files_are_merged_and_a_large_bucket_is_split() -> None:
    growth = Growth(logged=0.0, kept=1.0, new_files=4, small_files=4)
    policy = Policy(clustering=ClusteringSettings(enabled=True, min_interval_seconds=600))
    past = a_past(table_type=TableType.COPY_ON_WRITE, growth=growth, policy=policy)
    assert jobs(outcome([past]))[JobKind.CLUSTERING] > 10
    split = Policy(bucket_expansion=ExpansionSettings(mode=Mode.AUTO, max_bucket_bytes=200 * MIB))
    beginning = Beginning(8, 1024 * MIB, largest_bucket_bytes=210 * MIB)
    past = a_past(policy=split, num_buckets=8, beginning=beginning)
    assert jobs(outcome([past]))[JobKind.BUCKET_EXPANSION] == 1
    assert jobs(outcome([replace(past, policy=Policy())]))[JobKind.BUCKET_EXPANSION] == 0
    # One expansion by eight, as the policy decides, and not three that double the number.
    often = replace(split, bucket_expansion=replace(split.bucket_expansion, min_interval_seconds=0))
    huge = replace(past, policy=often, beginning=Beginning(8, 8192 * MIB, largest_bucket_bytes=1300 * MIB))
    assert jobs(outcome([huge]))[JobKind.BUCKET_EXPANSION] == 1


def test_with_too_few_slots_jobs_wait_and_those_with_priority_wait_less() -> None:
    slow = lambda *given, **more: replace(cost(*given, **more), seconds=400.0)  # noqa: E731
    tables = [a_past(number) for number in range(12)]
    free, busy = (outcome(tables, expected=slow, slots={"default": slots}) for slots in (12, 2))
    assert free.longest_wait is not None
    assert busy.longest_wait is not None
    assert free.longest_wait < 400 < busy.longest_wait
    assert busy.jobs < free.jobs
    first = replace(tables[0], policy=Policy(priority=10))
    preferred = outcome([first, *tables[1:]], expected=slow, slots={"default": 2})
    done = {each.id: each.jobs for each in preferred.tables.values()}
    assert done["tbl_0"] > max(each for table_id, each in done.items() if table_id != "tbl_0")


def test_no_more_jobs_are_active_than_the_limits_allow_and_all_tables_get_their_turn() -> None:
    slow = lambda *given, **more: replace(cost(*given, **more), seconds=300.0)  # noqa: E731
    tables = [a_past(number) for number in range(10)]
    found = outcome(tables, expected=slow, slots={"default": 10}, limits=Limits(active=1))
    assert found.seconds <= DAY
    assert found.jobs > 200
    assert min(each.jobs for each in found.tables.values()) > 10


def test_a_burst_starves_no_table_and_ends_with_its_logs_compacted() -> None:
    burst = [Write(BEGIN + 6 * HOUR + each, 10 * MIB, 8) for each in range(10_000)]
    quiet = [a_past(number) for number in range(1, 5)]
    noisy = a_past(0, writes=sorted([*a_past().writes, *burst], key=lambda each: each.at))
    found = outcome([noisy, *quiet], slots={"default": 1})
    assert all(each.jobs > 25 for each in found.tables.values())
    # A compaction each time that a poll has seen the commits, not one for each five of them.
    assert found.tables["tbl_0"].jobs < 400
    assert found.points[-1].log_bytes < 200 * MIB


def test_writes_that_stop_need_no_more_jobs() -> None:
    found = outcome([a_past()], 5)
    assert jobs(found)[COMPACTION] == 28
    assert jobs(found)[AUDIT] == 5
    assert found.points[-1].log_bytes <= 5 * MIB


def test_a_cost_model_that_is_wrong_ends_no_simulation() -> None:
    for seconds in (0.0, 1e9):
        found = outcome([a_past(number) for number in range(3)], expected=lambda *_, s=seconds, **__: _costs(s))
        assert (found.jobs == 0) is (seconds > DAY)
    assert outcome([]).jobs == 0
    assert outcome([a_past(writes=[])]).tables["tbl_0"].overhead == 1.0


def _costs(seconds: float) -> Cost:
    return Cost(seconds, seconds, seconds, Basis.DEFAULT)


def test_growth_is_fitted_from_what_polls_have_seen() -> None:
    # Commits of 100 bytes, of which 80 become logs; each fifth commit is compacted, which keeps a half of the logs.
    seen = [
        PolledSizes(
            log_bytes=80 * (number % 5),
            base_bytes=10_000 + 20 * number + 200 * (number // 5),
            base_files=100,
            small_files=0,
            written=100 * number,
            unmerged=100 * (number % 5),
            commits=number,
        )
        for number in range(51)
    ]
    found = fitted(seen, [], is_merge_on_read=True)
    assert (found.logged, found.kept) == (pytest.approx(0.8), pytest.approx(0.5))
    assert fitted([], [], is_merge_on_read=True) == Growth()


@pytest.mark.parametrize(("rewritten", "groups"), [(10, 10), (41, 100)])
def test_hot_file_groups_are_found_by_what_compactions_rewrote(rewritten: int, groups: int) -> None:
    # Five commits of 10 file groups each: always the same ones, or any of 100.
    seen = [PolledSizes(0, 1000, 100, 0, 0, None, number) for number in range(2)]
    found = fitted(seen, [Merged(rewritten, 20 * rewritten, [10] * 5)] * 3, is_merge_on_read=True)
    assert (found.hot_groups, found.weight) == (pytest.approx(groups, rel=0.03), 2.0)


def test_a_simulation_says_how_far_it_is_from_what_happened() -> None:
    begin = datetime.fromtimestamp(BEGIN, UTC)
    ten, twelve, twenty = (Outcome([KindOutcome(COMPACTION, jobs, 60.0, 0.1)]) for jobs in (10, 12, 20))
    found = WhatIf(begin, begin + timedelta(days=14), {"t": "t"}, 9, begin, now=ten, new=twelve, actual=twelve)
    assert (found.error, found.caution) == (pytest.approx(1 / 6), None)
    late = replace(found, known_since=begin + timedelta(days=13), actual=twenty)
    assert late.caution == (
        "commits are known since 1 day only; the present policy has 10 jobs in the simulation and had 20"
    )
    assert replace(found, actual=Outcome()).error is None


def test_objectives_are_kept_for_a_share_of_the_time() -> None:
    strict = Policy(objective=ObjectiveSettings(read_overhead=1.05))
    kept = outcome([a_past(policy=strict)])
    assert kept.kept is not None
    assert kept.kept > 0.9
    missed = outcome([a_past(policy=replace(strict, compaction=CompactionSettings(enabled=False)))])
    assert missed.kept is not None
    assert missed.kept < 0.6
    assert outcome([a_past()]).kept is None


def weighing(least_worth: float, per_day: float) -> tuple[float, float, int]:
    """Returns the seconds of all jobs, those that readers pay for logs, and the number of compactions of a day."""
    policy = Policy(objective=ObjectiveSettings(least_worth=least_worth), cleaning=CleaningSettings(enabled=False))
    reads = TableObjective(reads=Reads(per_day, ReadSource.LINEAGE))
    found = outcome([a_past(policy=policy, objective=reads)])
    return found.seconds, found.tables["tbl_0"].logs_seconds * per_day, jobs(found)[COMPACTION]


def test_jobs_and_readers_together_pay_least_if_a_job_waits_until_readers_have_paid_as_much() -> None:
    totals = {each: sum(weighing(each, 240.0)[:2]) for each in (0.1, 1.0, 10.0)}
    assert 1.3 * totals[1.0] < min(totals[0.1], totals[10.0])


def test_a_table_is_compacted_more_often_the_more_it_is_read() -> None:
    numbers = [weighing(1.0, per_day)[2] for per_day in (0.0, 2.4, 24.0, 240.0, 2400.0)]
    assert numbers == sorted(set(numbers))
    # A table that nobody reads is compacted once a day.
    assert numbers[0] == 0


def test_a_table_with_too_many_commits_gets_a_reason_instead_of_advice() -> None:
    writes = [Write(BEGIN + each, MIB, 1) for each in range(1, advice.MOST_COMMITS + 2)]
    found = advice.advised(a_past(writes=writes), Fleet(), cost, BEGIN, datetime.fromtimestamp(BEGIN + 7 * DAY, UTC))
    assert found.setting is None
    assert found.because == (
        "the table has more than 25000 commits in 7 days, which are too many to simulate each setting; compare a few"
        " settings over a shorter time with `groundskeeper policy simulate`"
    )
