"""Tests the order in which the test processes get their files."""

from __future__ import annotations

from tests.conftest import _LONGEST
from tests.support.guides import ROOT


def test_what_is_started_first_exists() -> None:
    assert [name for name in _LONGEST if name.endswith(".py") and not (ROOT / name).exists()] == []
