"""The benchmarks whose figures are in the documents still run; each one checks the rows of its tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param("expansion.py --rows 20000 --buckets 2", id="expansion"),
        pytest.param("compaction.py --rows 20000 --buckets 2 --without-expansion", id="compaction"),
        pytest.param("prepared_expansion.py --rows 20000", id="prepared"),
        pytest.param("outcome.py --tables 3 --minutes 0.5 --warm-up 2", id="outcome"),
    ],
)
def test_a_benchmark_of_a_small_table_comes_to_its_end(arguments: str) -> None:
    script, *options = arguments.split()
    command = [sys.executable, str(ROOT / "tests" / "benchmarks" / script), *options]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr[-4000:]
