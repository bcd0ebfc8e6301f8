"""Tests what the cost model learns about cold and busy workers, from attempts whose true cost is known."""

from __future__ import annotations

import math
from random import Random
from statistics import median

import pytest

from jobs.kinds.results import Work
from service.queue.circumstances import UNKNOWN, Circumstances, Slowness, slowness
from service.queue.cost import CostPart, Ended
from service.queue.cost_model import CostModel

MIB, GIB = 2**20, 2**30
WARM = Circumstances(50, 0.0)


class Fleet:
    """Jobs take up to 2.5 times as long in a cold worker, and 35 % more for each job beside them."""

    def __init__(self, seed: int, cold: float = 1.5, busy: float = 0.35) -> None:
        self._rng, self._cold, self._busy = Random(seed), cold, busy

    def ended(self, table: str, *, is_known: bool = True) -> Ended:
        rng = self._rng
        work = Work(int(2 ** rng.uniform(20, 30)), rng.randint(1, 60))
        given = Circumstances(rng.randint(0, 60), rng.choice([0.0, 0.0, 1.0, 1.0, 1.5, 2.0, 3.0]))
        assert given.jobs_before is not None
        assert given.jobs_beside is not None
        slower = (1 + self._cold * math.exp(-given.jobs_before / 4)) * (1 + self._busy * given.jobs_beside)
        true = (1.2 + 15 * work.bytes / GIB + 0.01 * work.files) * slower
        seconds = true * math.exp(rng.gauss(0, 0.1)) * (10 if rng.random() < 0.03 else 1)
        moved = {"bytes_read": float(work.bytes), "cpu_seconds": seconds / 2}
        return Ended(
            table, "compaction", False, seconds, work, 3.0, circumstances=given if is_known else UNKNOWN, **moved
        )


def model_and_fleet(seed: int, *, is_known: bool = True, **more: float) -> tuple[CostModel, Fleet]:
    fleet, model = Fleet(seed, **more), CostModel()
    for number in range(200):
        model.learn(fleet.ended(f"t{number % 50}", is_known=is_known))
    return model, fleet


def error(model: CostModel, fleet: Fleet, *, is_known: bool = True) -> float:
    """Returns the median error for tables that the model does not know."""
    found = []
    for number in range(200):
        job = fleet.ended(f"new {number}", is_known=is_known)
        cost = model.expected(job.table_id, job.kind, job.work, dry_run=False, circumstances=job.circumstances)
        found.append(abs(cost.seconds / job.seconds - 1))
    return median(found)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_known_circumstances_reduce_the_error_of_the_expected_duration(seed: int) -> None:
    with_them, without = error(*model_and_fleet(seed)), error(*model_and_fleet(seed, is_known=False), is_known=False)
    assert with_them < 0.15 < without
    assert with_them < 0.6 * without


def test_the_shown_model_tells_how_much_slower_cold_and_busy_workers_are() -> None:
    [found] = model_and_fleet(1)[0].learned()
    fit, accuracy = found.parts[CostPart.SECONDS]
    assert 1.3 < fit.slowness.first_job < 2.5
    assert fit.slowness.beside_another == pytest.approx(1.35, rel=0.1)
    # The fit is that of a warm worker with no other job.
    assert fit.per_gib == pytest.approx(15, rel=0.1)
    assert accuracy.of_other_tables is not None
    assert accuracy.of_other_tables < 0.15
    assert found.parts[CostPart.BYTES_READ][0].slowness == Slowness()


def test_circumstances_without_an_effect_have_no_part_in_the_model() -> None:
    [found] = model_and_fleet(1, cold=0.0, busy=0.0)[0].learned()
    assert found.parts[CostPart.SECONDS][0].slowness == Slowness()


def test_eight_of_ten_jobs_are_in_the_interval_whether_circumstances_are_known_or_not() -> None:
    for is_known in (True, False):
        model, fleet = model_and_fleet(2)
        inside = 0
        for number in range(300):
            job = fleet.ended(f"t{number % 50}")
            given = job.circumstances if is_known else UNKNOWN
            told = model.expected(job.table_id, job.kind, job.work, dry_run=False, circumstances=given)
            inside += told.low <= job.seconds <= told.high
        assert 200 <= inside <= 285, is_known


def test_a_tables_own_factor_does_not_take_a_cold_worker_for_a_slow_table() -> None:
    model, fleet = model_and_fleet(3)
    for _ in range(5):
        cold = Circumstances(0, 0.0)
        seconds = 1.2 * 2.5 + 15 * 2.5
        model.learn(Ended("x", "compaction", False, seconds, Work(GIB, 1), 3.0, circumstances=cold))
    told = model.expected("x", "compaction", Work(GIB, 1), dry_run=False, circumstances=WARM)
    assert told.seconds < 0.8 * seconds
    assert fleet is not None


def test_a_colder_or_busier_worker_is_never_expected_to_be_faster() -> None:
    rng = Random(5)
    known = [(Circumstances(rng.randint(0, 99), rng.uniform(0, 6)), rng.gauss(0, 2)) for _ in range(300)]
    found = slowness(known)
    assert list(found.cold) == sorted(found.cold, reverse=True)
    assert list(found.busy) == sorted(found.busy)
    assert min(*found.cold, *found.busy) == 0
    assert max(*found.cold, *found.busy) <= math.log(8)


def test_circumstances_that_only_a_broken_service_notes_are_harmless() -> None:
    model = CostModel()
    for given in (Circumstances(2**49, 2.0**49), Circumstances(0, None), Circumstances(None, 0.0)):
        model.learn(Ended("a", "compaction", False, 5.0, Work(MIB, 1), circumstances=given))
    told = model.expected("a", "compaction", Work(MIB, 1), dry_run=False, circumstances=Circumstances(2**60, 1e300))
    assert told.seconds == pytest.approx(5.0)
