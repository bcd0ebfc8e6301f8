"""Tests concurrent conversions of new types, which crash the interpreter without a lock."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import dataclasses, sys, threading
from jobs.contract import converted

sys.setswitchinterval(0.00001)
members = [(f"f{number}", dict | None, dataclasses.field(default=None)) for number in range(20)]
for number in range(300):
    inner = dataclasses.make_dataclass(f"Inner{number}", members)
    outer = dataclasses.make_dataclass(f"Outer{number}", [*members, ("inner", inner | None, None)])
    together = threading.Barrier(4)

    def convert():
        together.wait()
        assert converted({"f1": {"a": 1}, "inner": {"f2": {}}}, outer).inner.f2 == {}

    threads = [threading.Thread(target=convert) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


# The client is a separate distribution, so it has its own function for this.
_PROGRAM_OF_CLIENT = """
import sys, threading
import msgspec
from groundskeeper_client.call import Call

sys.setswitchinterval(0.00001)
for number in range(300):
    inner = msgspec.defstruct(f"Inner{number}", [(f"f{each}", dict | None, None) for each in range(20)])
    outer = msgspec.defstruct(f"Outer{number}", [("inner", inner | None, None), ("others", list[inner], [])])
    call, together = Call("GET", "/", outer), threading.Barrier(4)

    def parse():
        together.wait()
        assert call.parsed(b'{"inner": {"f2": {}}}', "it").inner.f2 == {}

    threads = [threading.Thread(target=parse) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [_PROGRAM, _PROGRAM_OF_CLIENT], ids=["service", "client"])
def test_threads_that_meet_a_new_type_at_once_get_its_values(program: str) -> None:
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, b"")
