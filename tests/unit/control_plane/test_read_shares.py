"""Tests which tables wait for a compaction because few of all reads concern them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest

from jobs.contract import JobKind
from service.outcome.objective import check
from service.outcome.read_share import CostlyTable, ReadShare
from service.outcome.reads import Reads, ReadSource
from service.outcome.table_objective import TableObjective
from service.policies.objective import ObjectiveSettings
from service.policies.policy import Policy
from service.policies.settings import CleaningSettings
from service.scheduling.decision import Run, Skip
from service.scheduling.trigger_context import TriggerContext
from service.simulation.fleet import Fleet
from service.simulation.simulator import simulated
from service.simulation.table_past import Write
from tests.unit.control_plane.past_fleet import BEGIN, DAY, MIB, a_past, cost
from tests.unit.control_plane.snapshots import NOW, ago
from tests.unit.control_plane.test_objectives import RATES, compacts, logs

if TYPE_CHECKING:
    from service.simulation.outcome import Outcome

COMPACTION = JobKind.COMPACTION
LEVEL = "pattern *"


def costly(table_id: str, reads: float, price: float) -> CostlyTable:
    return CostlyTable(table_id, reads, price)


def test_the_reads_of_a_table_are_added_to_those_of_waiting_tables_with_a_higher_cost() -> None:
    share = ReadShare(LEVEL, 100.0, [costly("a", 2.0, 9.0), costly("b", 3.0, 5.0), costly("c", 4.0, 1.0)])
    assert share.with_costlier(costly("d", 1.0, 7.0)) == pytest.approx(0.03)
    assert share.with_costlier(costly("d", 1.0, 0.5)) == pytest.approx(0.10)
    # A table that waits itself counts once, wherever it is now.
    assert share.with_costlier(costly("b", 3.0, 0.5)) == pytest.approx(0.09)
    assert share.with_costlier(costly("b", 3.0, 99.0)) == pytest.approx(0.03)
    # No table has more than all reads, and one without reads has none of them.
    assert ReadShare(LEVEL).with_costlier(costly("a", 5.0, 1.0)) == 1.0
    assert ReadShare(LEVEL).with_costlier(costly("a", 0.0, 1.0)) == 0.0


def test_tables_of_lower_cost_stop_waiting_if_tables_of_higher_cost_have_to_wait() -> None:
    share = ReadShare(LEVEL, 100.0, [costly("a", 3.0, 2.0), costly("b", 2.0, 1.0), costly("x", 9.0, 0.5)])
    assert share.displaced() == []
    share.may_wait = 0.05
    assert share.displaced() == ["x"]
    assert share.displaced() == []
    share.note("c", costly("c", 2.0, 3.0))
    assert share.displaced() == ["b"]
    # A table that no longer fits is named once; a table with fewer reads may still wait.
    assert share.displaced() == []
    share.note("d", costly("d", 0.0, 0.5))
    assert share.displaced() == []
    share.note("a", None)
    assert share.with_costlier(costly("b", 2.0, 1.0)) == pytest.approx(0.04)


def test_the_share_is_the_same_whatever_was_noted_before() -> None:
    draw = Random(1)
    share = ReadShare(LEVEL, 1000.0)
    kept: dict[str, CostlyTable] = {}
    for _ in range(500):
        name = f"t{draw.randrange(30)}"
        found = None if draw.random() < 0.3 else costly(name, draw.randrange(9), draw.randrange(5))
        share.note(name, found)
        kept.pop(name, None)
        if found:
            kept[name] = found
        asked = costly(f"t{draw.randrange(40)}", 4.0, draw.randrange(5))
        expected = ReadShare(LEVEL, 1000.0, kept.values()).with_costlier(asked)
        others = [each for each in kept.values() if each.table_id != asked.table_id]
        costlier = [each for each in others if (-each.price, each.table_id) < (-asked.price, asked.table_id)]
        reads = 4 + sum(each.reads_per_day for each in costlier)
        assert share.with_costlier(asked) == expected == pytest.approx(reads / 1000)


def test_a_table_that_just_fits_stays() -> None:
    draw = Random(2)
    for _ in range(300):
        reads = [draw.random() for _ in range(draw.randrange(2, 9))]
        share = ReadShare(LEVEL, draw.uniform(10, 20))
        # The last table fits to the last digit.
        tables = [costly(f"t{number}", each, 9.0 - number) for number, each in enumerate(reads)]
        for each in tables:
            share.may_wait = share.with_costlier(each)
            share.note(each.table_id, each)
        assert share.displaced() == []


def shared(per_day: float = 3.0, *waiting: CostlyTable, total: float = 100.0, **more: object) -> TriggerContext:
    """A table whose logs of an hour make reads cost too much, among tables that are read `total` times a day."""
    settings = ObjectiveSettings(read_overhead=1.2, of_reads=0.95, **more)  # type: ignore[arg-type]
    objective = TableObjective(
        settings,
        RATES,
        Reads(per_day, ReadSource.LINEAGE),
        oldest_log_at=ago(hours=1),
        work_seconds={COMPACTION: 2.0},
        share=ReadShare(LEVEL, total, waiting),
    )
    return TriggerContext(NOW, objective=objective)


def test_a_table_that_few_read_waits_and_misses_nothing() -> None:
    given = shared(3.0)
    found = compacts(logs(50, 5), given)
    assert isinstance(found, Skip)
    assert found.because == (
        "a read costs 6.00 times what it would right after a compaction, 1.2 allowed; 3 reads a day (by OpenLineage);"
        " this table and those that need more work per read have 3 % of all reads of pattern *, 5 % may cost more"
    )
    assert found.until == NOW + timedelta(hours=23)
    checked = check(given.objective, logs(50, 5), NOW, merges_files=False)
    assert (checked.missed, checked.waiting is not None) == (None, True)
    # After a day the logs are compacted, whoever reads them.
    later = replace(given, now=found.until)
    assert isinstance(compacts(logs(50, 5), later), Run)
    assert check(later.objective, logs(50, 5), found.until, merges_files=False).missed is not None


def test_a_table_that_many_read_is_compacted_at_its_limit_and_not_before() -> None:
    due = compacts(logs(2, 3), shared(6.0))
    assert isinstance(due, Run)
    assert due.because.endswith("have 6 % of all reads of pattern *, 5 % may cost more")
    assert isinstance(compacts(logs(1, 2), shared(6.0)), Skip)
    assert check(shared(6.0).objective, logs(50, 5), NOW, merges_files=False).missed is not None
    # A table that does not reach its limit takes no reads from those that wait.
    assert check(shared(3.0).objective, logs(1, 2), NOW, merges_files=False).waiting is None


def test_the_tables_that_wait_are_those_with_the_most_work_for_a_read() -> None:
    costliest, cheapest = costly("x", 4.0, 1e9), costly("x", 4.0, 1e-9)
    assert isinstance(compacts(logs(50, 5), shared(3.0, costliest)), Run)
    assert isinstance(compacts(logs(50, 5), shared(3.0, cheapest)), Skip)


@pytest.mark.parametrize("costlier", ["fewer reads", "more commits", "larger logs", "slower jobs"])
def test_work_for_a_read_grows_with_commits_and_seconds_and_falls_with_reads(costlier: str) -> None:
    def price(per_day: float = 3.0, mib: int = 50, commits: int = 50, work: float = 2.0) -> float:
        given = shared(per_day).objective
        given = replace(given, work_seconds={COMPACTION: work})
        found = given.waiting(logs(mib, commits, hours=10), NOW)
        assert found is not None
        return found.price

    changed = {
        "fewer reads": price(per_day=1.0),
        "more commits": price(mib=100, commits=100),
        "larger logs": price(mib=100),
        "slower jobs": price(work=4.0),
    }
    assert changed[costlier] > 1.5 * price()
    # A compaction of two seconds is due every two commits, which take 0.4 of an hour.
    assert price() == pytest.approx(2.0 / (3.0 * 0.4 / 24), rel=0.01)


def test_a_table_whose_writers_stop_has_its_turn_by_and_by() -> None:
    other = costly("x", 4.0, 30.0)
    given = replace(shared(3.0, other), now=NOW)
    # At first there is a commit a minute, and then none.
    assert isinstance(compacts(logs(50, 60), given), Skip)
    later = replace(given, now=NOW + timedelta(hours=20))
    assert isinstance(compacts(logs(50, 60), later), Run)


@pytest.mark.parametrize(("per_day", "kind"), [(3.0, Skip), (6.0, Run)])
def test_a_burst_of_writes_is_compacted_at_once_where_many_read(per_day: float, kind: type) -> None:
    assert isinstance(compacts(logs(5000, 100), shared(per_day)), kind)


def test_unknown_reads_are_assumed_and_said() -> None:
    given = shared(total=1000.0)
    given = replace(given, objective=replace(given.objective, reads=Reads()))
    found = compacts(logs(50, 5), given)
    assert isinstance(found, Skip)
    assert "reads unknown: 24 a day assumed; this table and those" in found.because
    assert "have 2.4 % of all reads" in found.because


def test_the_age_of_logs_counts_whoever_reads_them() -> None:
    assert isinstance(compacts(logs(50, 5), shared(3.0, log_age_seconds=900)), Run)


@pytest.mark.parametrize("reads", [0.0, 1e-300, 1e12, 1e300])
def test_reads_that_cannot_be_true_let_no_table_wait_for_ever(reads: float) -> None:
    """The cases are a table whose reads stop, and a table whose lineage claims more reads than all tables have
    together."""
    given = shared(reads)
    found = compacts(logs(50, 5), given)
    assert isinstance(found, Run if reads > 5 else Skip)
    assert "of all reads of pattern *" in found.because
    later = replace(given, now=NOW + timedelta(days=1))
    if reads > 0.1:
        assert isinstance(compacts(logs(50, 5), later), Run)
    # Beside such a table every other table waits for a day at most.
    beside = shared(3.0, costly("x", reads, 1.0), total=max(100.0, reads))
    assert isinstance(compacts(logs(50, 5), replace(beside, now=NOW + timedelta(days=1))), Run)


def outcome(of_reads: float | None, *per_day: float, levels: bool = True) -> tuple[Outcome, list[int]]:
    """Returns the outcome of half a day of tables with the same writers, and the number of compactions of each."""
    policy = Policy(objective=ObjectiveSettings(read_overhead=1.05, of_reads=of_reads))
    policy = replace(policy, cleaning=CleaningSettings(enabled=False))
    pasts = [
        a_past(number, policy=policy, objective=TableObjective(reads=Reads(each, ReadSource.LINEAGE)))
        for number, each in enumerate(per_day)
    ]
    fleet = Fleet({"default": 2}, levels={each.id: LEVEL for each in pasts} if levels else {})
    found = simulated(pasts, fleet, cost, BEGIN, BEGIN + DAY / 2)
    return found, [found.tables[each.id].jobs for each in pasts]


def test_a_simulation_compacts_those_tables_that_most_read() -> None:
    rates = (2.0, 500.0, 40.0, 3.0, 455.0)
    _, every = outcome(None, *rates)
    found, some = outcome(0.95, *rates)
    # Three tables together have 4.5 % of the reads, so their compactions may wait.
    assert [each > 2 for each in some] == [False, True, False, False, True]
    assert [some[1], some[4]] == [every[1], every[4]]
    assert found.kept is not None
    assert found.kept > 0.9
    # At 4.2 % the third table does not wait: the two with fewer reads cost more for each read, and go first.
    _, more = outcome(0.958, *rates)
    assert [each > 2 for each in more] == [False, True, True, False, True]
    # If tables share no total of reads, each table has all reads of its own total, and none waits.
    assert outcome(0.95, *rates, levels=False)[1] == every


def test_a_simulation_compacts_a_table_at_once_that_has_to_make_room() -> None:
    def jobs_of_first(later: int) -> int:
        """Returns the jobs of a table whose writers stop, before so many commits to a costlier one."""
        policy = Policy(objective=ObjectiveSettings(read_overhead=1.05, of_reads=0.95))
        policy = replace(policy, cleaning=CleaningSettings(enabled=False))
        rates, writes = (40.0, 30.0, 930.0), ((0, 40), (40_000, later), (0, 0))
        pasts = [
            a_past(
                number,
                policy=policy,
                objective=TableObjective(reads=Reads(each, ReadSource.LINEAGE)),
                writes=[Write(BEGIN + begin + 100.0 * place, MIB, 4) for place in range(1, count + 1)],
            )
            for number, (each, (begin, count)) in enumerate(zip(rates, writes, strict=True))
        ]
        fleet = Fleet({"default": 2}, levels={each.id: LEVEL for each in pasts})
        return simulated(pasts, fleet, cost, BEGIN, BEGIN + DAY / 2).tables["tbl_0"].jobs

    assert jobs_of_first(40) == jobs_of_first(0) + 1
