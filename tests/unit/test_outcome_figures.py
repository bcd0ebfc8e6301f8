"""Tests the comparison of ways to decide about jobs."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks.beside.outcome_figures import Figures, settled_inline, tell_verdict, verdict
from tests.benchmarks.beside.zipf_load import EventKind, reads_per_day, schedule
from tests.benchmarks.outcome import Result

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [[9, "sum"]]


def figures(variant: str, service_cpu: float, cpu_p95: float, writer_cpu: float = 100.0) -> Figures:
    cpu = 0.5, cpu_p95
    return Figures(variant, 1, service_cpu, writer_cpu, 9, 0, 9, *cpu, *cpu, [], {}, 0, 0.0, 0.0, {})


@pytest.mark.parametrize(
    ("service_cpu", "cpu_p95", "is_kept"), [(60.0, 1.1, True), (61.0, 1.0, False), (30.0, 1.12, False)]
)
def test_ours_is_compared_with_the_variant_whose_services_cost_least(
    service_cpu: float, cpu_p95: float, is_kept: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    others = [figures("default", 100.0, 1.0), figures("open_house", 300.0, 0.8), figures("none", 0.0, 9.0, 95.0)]
    found = {each.variant: each for each in (figures("inline", 0.0, 1.0, 90.0), *others)}
    found["objective"] = figures("objective", service_cpu, cpu_p95)
    found = settled_inline(found)
    # The same writes without services took longer, so nobody knows what the inline services cost.
    assert found["inline"].service_cpu == -5.0
    told = verdict(found)
    assert (told["best_other"], told["goal_kept"]) == ("default", is_kept)
    assert "inline" not in told["ours_vs"]
    tell_verdict({"seed": 1, **told})
    said = capsys.readouterr().out
    assert f"ours compared with default (the best other): services {service_cpu / 100} of the CPU" in said
    assert f"goal {'kept' if is_kept else 'missed'}" in said


def test_a_variant_that_fails_loses_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.json"
    found = Result(Namespace(tables=8, results=results))
    found.add(figures("default", 100.0, 1.0), ROWS)
    assert list(json.loads(results.read_text())["seeds"][0]["variants"]) == ["default"]
    found.failed(1, "open_house", ValueError("rows differ"))
    found.add(figures("objective", 50.0, 1.0), ROWS)
    written = json.loads(results.read_text())
    assert written["seeds"][0]["goal_kept"]
    assert written["failures"] == ["seed 1, open_house: ValueError: rows differ"]
    found.tell()
    said = capsys.readouterr().out
    assert "0.5 1.0" in said
    assert "failed: seed 1, open_house" in said


def test_a_run_adds_the_variants_that_an_earlier_one_lacks(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    first = Result(Namespace(tables=8, variants=["inline"], results=results))
    first.add(figures("inline", 0.0, 1.0, writer_cpu=150.0), ROWS)
    assert json.loads(results.read_text())["seeds"][0]["variants"]["inline"]["service_cpu"] == 0.0
    found = Result(Namespace(tables=8, variants=["default", "inline", "objective"], results=results))
    assert [each for each in ("default", "inline", "objective") if found.has(1, each)] == ["inline"]
    assert not found.has(2, "inline")
    found.add(figures("default", 100.0, 1.0), ROWS)
    with pytest.raises(AssertionError, match="objective: rows differ"):
        found.add(figures("objective", 30.0, 1.0), [[7, "other"]])
    found.add(figures("objective", 30.0, 1.0), ROWS)
    # The cost of inline services follows from the writes of all variants.
    again = Result(Namespace(tables=8, variants=[], results=results))
    assert again.as_json()["seeds"] == found.as_json()["seeds"]
    assert again.as_json()["seeds"][0]["ours_vs"]["inline"]["service_cpu"] == 0.6
    with pytest.raises(SystemExit, match="other options"):
        Result(Namespace(tables=20, variants=[], results=results))


def test_tables_are_read_as_often_as_their_owners_declare() -> None:
    events = schedule(8, 86_400.0, {EventKind.WRITE: 2.0, EventKind.QUERY: 3.0}, seed=1)
    assert events == schedule(8, 86_400.0, {EventKind.WRITE: 2.0, EventKind.QUERY: 3.0}, seed=1)
    for table, declared in enumerate(reads_per_day(8, 3.0, seed=1)):
        read = sum(each.table == table for each in events if each.kind is EventKind.QUERY)
        assert read == pytest.approx(declared, rel=0.1)
