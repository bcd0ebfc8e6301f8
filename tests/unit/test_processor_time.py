"""Tests the CPU time of attempts on processes of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from jobs.worker.processor_time import ProcessorTime, ProcessTree

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")

_BUSY = "import time\nwhile time.process_time() < {}: pass"


def _work(seconds: float) -> None:
    """Uses the processor in a child of a child process."""
    below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_BUSY.format(seconds)!r}])"
    subprocess.run([sys.executable, "-c", below], check=True)


def test_the_time_of_processes_that_have_ended_counts() -> None:
    clock = ProcessorTime()
    with clock.measured() as spent:
        _work(0.4)
    assert spent.seconds is not None
    assert 0.4 <= spent.seconds < 2.0
    with clock.measured() as idle:
        time.sleep(0.05)
    assert idle.seconds is not None
    assert idle.seconds < 0.2


def test_the_time_of_a_living_process_counts() -> None:
    code = f"{_BUSY.format(0.4)}\ninput()"
    clock = ProcessorTime(ProcessTree(os.getpid(), most_age=0.0))
    with clock.measured() as spent, subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as child:
        deadline = time.monotonic() + 60
        while (ProcessTree(child.pid).seconds() or 0.0) < 0.3 and time.monotonic() < deadline:
            time.sleep(0.02)
        with clock.measured():
            # When another attempt begins, the time of the first attempt is read, too.
            assert spent.seconds is not None
            assert spent.seconds >= 0.3
        child.kill()


def test_attempts_that_run_at_once_share_the_time() -> None:
    clock = ProcessorTime()
    with clock.measured() as long:
        _work(0.3)
        with clock.measured() as short:
            _work(0.4)
        _work(0.3)
    assert long.seconds is not None
    assert short.seconds is not None
    assert 0.2 <= short.seconds < 1.0
    assert long.seconds - short.seconds >= 0.6


def test_a_process_that_is_not_there_has_no_time() -> None:
    assert ProcessTree(2**30).seconds() is None
