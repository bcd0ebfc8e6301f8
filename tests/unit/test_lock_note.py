"""Tests when the process that signed a lock file counts as dead."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.hudi.lock_note import has_died, process

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


def test_a_process_is_dead_when_it_is_gone_or_another_one_has_its_id() -> None:
    here = process()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not has_died(here)
    assert has_died({**here, "pid": gone.pid})
    assert has_died({**here, "started": here["started"] - 1})
    # Notes of an earlier version have no start.
    assert not has_died({name: value for name, value in here.items() if name != "started"})


@pytest.mark.parametrize("damage", [{"pid": "x"}, {"pid": None}, {"started": "x", "host": "elsewhere"}, {"boot": 7}])
def test_a_process_of_another_machine_or_of_a_damaged_note_does_not_count_as_dead(damage: dict[str, object]) -> None:
    assert not has_died({**process(), **damage})
