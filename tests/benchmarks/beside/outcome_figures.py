"""The figures of the variants of the benchmark of decisions, and their comparison."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.benchmarks.beside.zipf_load import EventKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.benchmarks.beside.zipf_load import Took

INLINE, DEFAULT, OPEN_HOUSE, OBJECTIVE, NONE = "inline", "default", "open_house", "objective", "none"
GOAL_CPU, GOAL_P95 = 0.6, 1.1


@dataclass
class Figures:
    """The figures of a variant. Times of queries are seconds on the clock and CPU seconds; `quarters` has the same CPU
    percentiles for each quarter of the period. `late_seconds` says how far the session was behind its schedule."""

    variant: str
    seed: int
    service_cpu: float
    writer_cpu: float
    writes: int
    conflicts: int
    queries: int
    p50: float
    p95: float
    cpu_p50: float
    cpu_p95: float
    quarters: list[tuple[float, float]]
    jobs: dict[str, int]
    megabytes: int
    late_seconds: float
    load: float
    service_parts: dict[str, float]

    def tell(self) -> None:
        print(
            f"{self.variant:>10} seed {self.seed}: services {self.service_cpu:.1f} CPU s {self.service_parts},"
            f" {self.writes} writes"
            f" {self.writer_cpu:.1f} CPU s, {self.conflicts} conflicts; {self.queries} queries p50 {self.cpu_p50:.2f}"
            f" p95 {self.cpu_p95:.2f} CPU s ({self.p50:.2f}, {self.p95:.2f} s), by quarter {self.quarters};"
            f" jobs {self.jobs}, {self.megabytes} MB, late {self.late_seconds:.0f} s, load {self.load}",
            flush=True,
        )


def figures_of(variant: str, seed: int, took: Sequence[Took], service_cpu: float) -> Figures:
    writes = [each for each in took if each.event.kind is EventKind.WRITE]
    queries = [each for each in took if each.event.kind is EventKind.QUERY]
    cpu = [each.cpu_seconds for each in queries]
    quarter = len(cpu) / 4
    parts = [cpu[int(number * quarter) : int((number + 1) * quarter)] for number in range(4)]
    return Figures(
        variant,
        seed,
        round(service_cpu, 1),
        round(sum(each.cpu_seconds for each in writes), 1),
        len(writes),
        sum(each.conflicts for each in writes),
        len(queries),
        *_percentiles([each.seconds for each in queries]),
        *_percentiles(cpu),
        [_percentiles(each) for each in parts],
        {},
        0,
        0.0,
        round(os.getloadavg()[0], 1),
        {},
    )


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    """Returns the median and the value that 95 % do not exceed."""
    by_percent = statistics.quantiles(values, n=100, method="inclusive") if len(values) > 1 else [*values] * 99
    return round(by_percent[49], 3), round(by_percent[94], 3)


def settled_inline(found: dict[str, Figures]) -> dict[str, Figures]:
    """Returns the figures, and sets the cost of inline services: the CPU seconds of the writes with them, minus those
    of the same writes without them."""
    others = [found[NONE]] if NONE in found else [each for name, each in found.items() if name != INLINE]
    if INLINE not in found or not others:
        return found
    extra = found[INLINE].writer_cpu - statistics.mean(each.writer_cpu for each in others)
    return {**found, INLINE: replace(found[INLINE], service_cpu=round(extra, 1))}


def tell_table(found: dict[str, Figures]) -> None:
    """Prints a row for each variant. The column `ours` has two ratios of our variant to the row's variant: the CPU of
    the services, and the 95th percentile of the CPU of the queries."""
    print(
        f"{'variant':>10} {'services':>9} {'writers':>8} {'conflicts':>9} {'p50':>6} {'p95':>6} {'p50 s':>6}"
        f" {'p95 s':>6} {'jobs':>5} {'late':>5}  ours"
    )
    ours = verdict(found).get("ours_vs", {})
    for name, each in found.items():
        shares = f"{ours[name]['service_cpu']} {ours[name]['cpu_p95']}" if name in ours else "-"
        print(
            f"{name:>10} {each.service_cpu:9.1f} {each.writer_cpu:8.1f} {each.conflicts:9} {each.cpu_p50:6.2f}"
            f" {each.cpu_p95:6.2f} {each.p50:6.2f} {each.p95:6.2f} {sum(each.jobs.values()):5} {each.late_seconds:5.0f}"
            f"  {shares}"
        )


def verdict(found: dict[str, Figures]) -> dict[str, Any]:
    """Compares our variant with each other variant. The best of the others is the variant whose services cost least.
    The cost of inline services is a difference, so it may be negative: then this variant is left out."""
    others = [each for name, each in found.items() if name not in (OBJECTIVE, NONE) and each.service_cpu > 0]
    if OBJECTIVE not in found or not others:
        return {}
    ours, best = found[OBJECTIVE], min(others, key=lambda each: each.service_cpu)
    of = {
        each.variant: {
            "service_cpu": round(ours.service_cpu / each.service_cpu, 3),
            "cpu_p95": round(ours.cpu_p95 / each.cpu_p95, 3),
            "p95": round(ours.p95 / each.p95, 3),
        }
        for each in others
    }
    ratios = of[best.variant]
    is_kept = ratios["service_cpu"] <= GOAL_CPU and ratios["cpu_p95"] <= GOAL_P95
    return {"ours_vs": of, "best_other": best.variant, "goal_kept": is_kept}


def tell_verdict(found: dict[str, Any]) -> None:
    """Prints how our variant compares with each other variant, and whether our variant reaches the goal."""
    for name, ratios in found.get("ours_vs", {}).items():
        best = " (the best other)" if name == found["best_other"] else ""
        print(
            f"seed {found['seed']}: ours compared with {name}{best}: services {ratios['service_cpu']} of the CPU,"
            f" p95 of queries {ratios['cpu_p95']} of the CPU, {ratios['p95']} of the time"
        )
    if "goal_kept" in found:
        words = "kept" if found["goal_kept"] else "missed"
        print(f"seed {found['seed']}: goal {words}: at most {GOAL_CPU} of the CPU, {GOAL_P95} of the p95 of queries")
