from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

from jobs.dataplane.driver_processes import ProcessDiedError, run_beside_driver
from jobs.errors import CancelledError, HudiError
from jobs.storage_errors import StorageFullError

pytestmark = pytest.mark.slow  # These tests start processes.


def square(number: int) -> int:
    return number * number


def exit_process(number: int) -> int:
    os._exit(number)


def fail(number: int) -> int:
    raise RuntimeError(f"not {number}")


def write_to_full_disk() -> None:
    with pa.OSFile("/dev/full", "wb") as file:
        file.write(b"row")


def write_slowly(path: Path) -> None:
    time.sleep(1)
    path.touch()


def go_on() -> None:
    pass


def test_results_come_in_the_order_of_the_pieces_from_other_processes() -> None:
    done: list[int] = []
    found = run_beside_driver(square, [(number,) for number in range(20)], go_on, done.append)
    assert found == [number * number for number in range(20)]
    assert sorted(done) == list(range(20))
    assert os.getpid() not in run_beside_driver(os.getpid, [(), ()], go_on)


def test_an_exception_of_the_function_becomes_an_error_with_its_text() -> None:
    with pytest.raises(HudiError, match="RuntimeError: not 3"):
        run_beside_driver(fail, [(3,)], go_on)


def test_a_full_disk_is_told_as_such() -> None:
    with pytest.raises(StorageFullError, match="No space left") as failed:
        run_beside_driver(write_to_full_disk, [()], go_on)
    assert not failed.value.problem().retriable


def test_after_a_process_has_died_there_are_new_ones() -> None:
    with pytest.raises(ProcessDiedError):
        run_beside_driver(exit_process, [(9,)], go_on)
    assert run_beside_driver(square, [(5,)], go_on) == [25]


def test_a_cancelled_run_ends_when_no_process_writes_any_more(tmp_path: Path) -> None:
    begun = time.monotonic()

    def checkpoint() -> None:
        if time.monotonic() > begun + 0.2:
            raise CancelledError

    with pytest.raises(CancelledError):
        run_beside_driver(write_slowly, [(tmp_path / str(number),) for number in range(50)], checkpoint)
    written = len(list(tmp_path.iterdir()))
    assert 0 < written < 50
    time.sleep(1.2)
    assert len(list(tmp_path.iterdir())) == written


def test_the_processes_end_with_the_worker_that_is_killed() -> None:
    script = (
        "import os, signal\nfrom jobs.dataplane.driver_processes import run_beside_driver\n"
        "if __name__ == '__main__':\n"
        "    print(*run_beside_driver(os.getpid, [()] * 4, lambda: None), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60)
    pids = {int(pid) for pid in ran.stdout.split()}
    assert pids, ran.stderr
    deadline = time.monotonic() + 60
    while alive := [pid for pid in pids if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.05)
