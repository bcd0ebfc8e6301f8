"""Tests the words in which the command line prints the result of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.cli.client import job_watch
from service.cli.client.output import Output

if TYPE_CHECKING:
    import pytest

ENDED = {"verdict": "done", "dry_run": False, "cost": None, "error": None}


def test_values_are_in_words_with_their_units(capsys: pytest.CaptureFixture[str]) -> None:
    result = {
        "seconds": 1.5,
        "lock_wait_seconds": 0.0,
        "bytes_read": 2048,
        "buckets": [8, 16],
        "file_groups": {"before": 24, "after": None},
        "lock": {"provider": "filesystem", "reachable": True, "holder": None},
        "would_roll_back": [],
        "plans": ["001", "002"],
        "unchecked": [{"check": "rows", "reason": {"type": "x", "title": "No", "detail": "none left"}}],
        "metastore": None,
        "warnings": ["Stop Flink."],
        "nothing_to_do": False,
    }
    assert _printed(capsys, result) == [
        "run time         1.5 s",
        "lock wait        0.0 s",
        "bytes read       2.0 KiB",
        "buckets          8 -> 16",
        "file groups      24 -> not known yet",
        "lock             provider filesystem; reachable yes",
        "would roll back  none",
        "plans            001, 002",
        "unchecked        check rows; reason No: none left",
        "Stop Flink.",
    ]


def test_a_finding_has_its_effect_and_the_command_that_repairs_it(capsys: pytest.CaptureFixture[str]) -> None:
    cure = {"kind": "metadata_table", "params": {"mode": "rebuild", "limit": 3}}
    finding = {"type": "x", "title": "Files are missing", "detail": "p/1", "effect": "Readers fail.", "cure": cure}
    error = {"title": "The job failed", "detail": "", "hint": "Try again."}
    assert _printed(capsys, {"findings": [finding]}, error=error) == [
        "The job failed",
        "  Try again.",
        "Files are missing: p/1",
        "  Readers fail.",
        "  `groundskeeper jobs run metadata_table TABLE -p mode=rebuild -p limit=3` repairs it.",
    ]


def _printed(capsys: pytest.CaptureFixture[str], result: dict[str, Any], **more: Any) -> list[str]:
    job_watch.show_outcome(Output(), {**ENDED, "result": result, **more})
    return capsys.readouterr().out.splitlines()
