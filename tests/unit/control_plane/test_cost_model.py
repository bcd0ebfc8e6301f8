"""Tests the cost of jobs that the model learns from attempts whose true cost is known."""

from __future__ import annotations

import math
from random import Random
from statistics import median

import pytest

from jobs.kinds.kind import WorksOn
from jobs.kinds.registry import KINDS
from jobs.kinds.results import Work
from service.lake.snapshot import Totals
from service.queue.cost import Basis, Cost, CostPart, Ended
from service.queue.cost_fit import Observation, fitted
from service.queue.cost_model import CostModel
from service.queue.cost_store import work_of

MIB, GIB = 2**20, 2**30
KIND = "compaction"


class Fleet:
    """Tables of very different sizes. A job takes 1.2 s, 15 s for each GiB and 10 ms for each file; a table's own jobs
    take always a little more or less, and each job differs by some percent."""

    def __init__(self, seed: int = 38, noise: float = 0.05) -> None:
        self.rng, self.noise = Random(seed), noise
        self.factors: dict[str, float] = {}

    def work(self) -> Work:
        return Work(int(2 ** self.rng.uniform(20, 36)), self.rng.randint(1, 400))

    def seconds(self, table: str, work: Work) -> float:
        factor = self.factors.setdefault(table, math.exp(self.rng.gauss(0, 0.1)))
        true = 1.2 + 15 * work.bytes / GIB + 0.01 * work.files
        return true * factor * math.exp(self.rng.gauss(0, self.noise))

    def ended(self, table: str) -> Ended:
        work = self.work()
        return Ended(table, KIND, dry_run=False, seconds=self.seconds(table, work), work=work, gib=3.0)


def _expected(model: CostModel, table: str, work: Work = Work(MIB, 4)) -> Cost:  # noqa: B008
    return model.expected(table, KIND, work, dry_run=False)


def test_tables_without_history_get_the_cost_of_the_fleet() -> None:
    fleet, model = Fleet(), CostModel()
    for number in range(200):
        model.learn(fleet.ended(f"t{number % 40}"))
    errors = []
    for number in range(100):
        work = fleet.work()
        told = _expected(model, f"new {number}", work)
        assert (told.basis, told.is_guess) == (Basis.KIND, True)
        errors.append(abs(told.seconds / fleet.seconds(f"new {number}", work) - 1))
    assert median(errors) < 0.15
    [learned] = model.learned()
    _, accuracy = learned.parts[CostPart.SECONDS]
    assert (accuracy.jobs, accuracy.tables) == (200, 40)
    assert accuracy.of_other_tables is not None
    assert abs(accuracy.of_other_tables - median(errors)) < 0.05
    # The jobs of one table are similar, which the figures of the whole fleet do not show.
    assert accuracy.of_known_tables is not None
    assert accuracy.of_known_tables < accuracy.of_other_tables


def test_a_table_with_history_has_a_factor_of_its_own() -> None:
    fleet, model = Fleet(), CostModel()
    for number in range(100):
        model.learn(fleet.ended(f"t{number % 20}"))
    fleet.factors["slow"] = 4.0
    for _ in range(3):
        model.learn(fleet.ended("slow"))
    work = Work(4 * GIB, 100)
    told = _expected(model, "slow", work)
    assert told.basis is Basis.TABLE
    assert told.seconds == pytest.approx(4 * (1.2 + 60 + 1), rel=0.15)
    assert told.gb_hours == pytest.approx([3 * each / 3600 for each in (told.seconds, told.low, told.high)])
    assert told.gb_hours.low < told.gb_hours.expected < told.gb_hours.high


def test_eight_of_ten_jobs_are_in_the_interval() -> None:
    fleet, model = Fleet(noise=0.2), CostModel()
    for number in range(300):
        model.learn(fleet.ended(f"t{number % 50}"))
    inside = 0
    for number in range(200):
        ended = fleet.ended(f"t{number % 50}")
        told = _expected(model, ended.table_id, ended.work)
        inside += told.low <= ended.seconds <= told.high
    assert 140 <= inside <= 195


def test_single_outliers_change_little() -> None:
    fleet, model = Fleet(), CostModel()
    for number in range(100):
        model.learn(fleet.ended(f"t{number % 10}"))
    before = _expected(model, "t3"), _expected(model, "new")
    for number in range(10):
        model.learn(Ended(f"t{number}", KIND, dry_run=False, seconds=9000.0, work=Work(MIB, 4)))
    after = _expected(model, "t3"), _expected(model, "new")
    for old, new in zip(before, after, strict=True):
        assert new.seconds == pytest.approx(old.seconds, rel=0.25)


def test_figures_that_are_read_after_a_restart_give_the_same_model() -> None:
    fleet = Fleet()
    history = [fleet.ended(f"t{number % 17}") for number in range(200)]
    kept, read = CostModel(), CostModel()
    for each in history:
        kept.learn(each)
    for each in reversed(history):
        read.learn_older(each)
    for table in ("t0", "t16", "new"):
        assert _expected(read, table).seconds == pytest.approx(_expected(kept, table).seconds, rel=0.05)
    assert read.learned() == kept.learned()


def test_an_attempt_that_failed_counts_if_it_took_longer_than_those_that_succeed() -> None:
    model = CostModel()
    for seconds, is_good in ((10.0, True), (0.5, False), (0.5, False)):
        model.learn(Ended("a", KIND, dry_run=False, seconds=seconds, is_good=is_good))
    assert _expected(model, "a", Work()).seconds == pytest.approx(10.0)
    for _ in range(3):
        model.learn(Ended("a", KIND, dry_run=False, seconds=3600.0, is_good=False))
    assert _expected(model, "a", Work()).seconds == pytest.approx(3600.0)
    model = CostModel()
    model.learn(Ended("b", KIND, dry_run=False, seconds=3600.0, is_good=False))
    assert _expected(model, "b", Work()).seconds == pytest.approx(3600.0)
    assert _expected(model, "other", Work()).basis is Basis.DEFAULT


def test_nothing_is_learned_across_kinds_or_from_dry_runs() -> None:
    model = CostModel()
    model.learn(Ended("a", KIND, dry_run=True, seconds=0.5))
    told = _expected(model, "a")
    assert (told.seconds, told.basis, told.is_guess) == (30.0, Basis.DEFAULT, True)
    assert model.expected("a", "audit", Work(), dry_run=True).basis is Basis.DEFAULT
    assert model.expected("a", KIND, Work(), dry_run=True).seconds == pytest.approx(0.5)


def test_tables_of_another_storage_have_another_cost() -> None:
    fleet = Fleet()
    model = CostModel({**{f"s{number}": "s3" for number in range(30)}, "new": "s3"})
    for number in range(30):
        fleet.factors[f"s{number}"] = 3.0
        model.learn(fleet.ended(f"s{number}"))
        model.learn(fleet.ended(f"t{number}"))
    on_s3, local = _expected(model, "new", Work(GIB, 10)), _expected(model, "other", Work(GIB, 10))
    assert (on_s3.basis, local.basis) == (Basis.SHAPE, Basis.SHAPE)
    assert 2 < on_s3.seconds / local.seconds < 4


def test_beyond_the_largest_known_job_the_interval_grows() -> None:
    model = CostModel()
    for number in range(20):
        model.learn(Ended(f"t{number}", KIND, dry_run=False, seconds=2.0, work=Work((number + 1) * MIB, 4)))
    inside, beyond = _expected(model, "new", Work(10 * MIB, 4)), _expected(model, "new", Work(2000 * MIB, 4))
    assert beyond.high / beyond.seconds > 50 * inside.high / inside.seconds


def test_broken_figures_are_harmless() -> None:
    model = CostModel()
    for ended in (
        Ended("a", KIND, dry_run=False, seconds=0.0),
        Ended("a", KIND, dry_run=False, seconds=-5.0, work=Work(2**50, 2**50)),
        Ended("b", KIND, dry_run=False, seconds=1e9, work=Work(0, 2**50)),
    ):
        model.learn(ended)
    for table in ("a", "b", "c"):
        told = _expected(model, table)
        assert 0 <= told.low <= told.seconds <= told.high
        assert math.isfinite(told.high)


def test_jobs_that_vary_a_lot_are_expected_in_the_middle() -> None:
    rng = Random(1)
    known = [Observation(Work(6 * MIB, 12), 10 * math.exp(rng.gauss(0, 0.7))) for _ in range(300)]
    assert fitted(known).of(Work(6 * MIB, 12)) == pytest.approx(median(each.amount for each in known), rel=0.15)


def test_a_coefficient_without_evidence_is_zero() -> None:
    fit = fitted([Observation(Work(6 * MIB, 12), 1.3)] * 10)
    assert (fit.per_job, fit.per_gib, fit.per_file) == (pytest.approx(1.3), 0.0, 0.0)


def test_each_kind_works_on_files_that_polls_have_counted() -> None:
    totals = Totals(
        base_files=10, base_bytes=1000, log_files=4, log_bytes=40, logged_bytes=440, freed_files=7, freed_bytes=70
    )
    found = {declared.works_on: work_of(kind, totals) for kind, declared in KINDS.items()}
    assert found == {
        WorksOn.EVERYTHING: Work(1040, 14),
        WorksOn.LOGGED: Work(440, 8),
        WorksOn.OUT_OF_USE: Work(70, 7),
        WorksOn.TIMELINE: Work(),
    }
