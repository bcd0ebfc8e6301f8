"""Tests how the benchmarks count the CPU time of processes."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.benchmarks.process_tree import measured


def _of_children() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def test_children_count_once_however_short_they_live() -> None:
    long = "import time\nwhile time.process_time() < 0.9: pass"
    with measured() as cost:
        before = _of_children()
        # The samples are half a second apart: they see the last child only.
        for code in ("sum(range(10**6))", "sum(range(10**6))", long):
            subprocess.run([sys.executable, "-S", "-c", code], check=True)
        spent = _of_children() - before
    # The time of this process is a few hundredths.
    assert cost.cpu_seconds == pytest.approx(spent, abs=0.1)
