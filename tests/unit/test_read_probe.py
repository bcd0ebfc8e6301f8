"""Tests the probe by which a worker measures what reads cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jobs.worker import read_probe
from service.outcome.read_cost import RatesBasis, ReadRates

if TYPE_CHECKING:
    import pytest


def test_a_probe_takes_less_than_a_second_and_finds_what_the_service_believes() -> None:
    begun = time.process_time()
    found = read_probe.read_rates()
    assert time.process_time() - begun < 1.0
    assert found is not None
    rates = ReadRates.from_json(found)
    assert rates is not None
    assert rates.basis is RatesBasis.PROBE
    # To merge a record takes far longer than to scan a row of a column store.
    assert rates.merge_seconds_per_gib > 2 * rates.scan_seconds_per_gib


def test_a_machine_on_which_nothing_can_be_measured_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_rows: object) -> bytes:
        raise OSError("no space left")

    monkeypatch.setattr(read_probe, "_base_file", fails)
    assert read_probe.read_rates() is None
