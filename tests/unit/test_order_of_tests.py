"""Tests the order in which the test processes get their files."""

from __future__ import annotations

from tests.conftest import _LONGEST
from tests.support.guides import ROOT


def test_the_files_that_start_first_exist() -> None:
    assert [name for name in _LONGEST if name.endswith(".py") and not (ROOT / name).exists()] == []
