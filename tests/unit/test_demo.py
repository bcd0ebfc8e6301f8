"""Tests what the demo prints when a step fails."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import httpx
import pytest
from rich.console import Console

from service.demo.processes import DemoFailedError
from service.demo.story import _Demo
from tests.support.commands import called

if TYPE_CHECKING:
    from pathlib import Path


def test_a_failed_job_is_told_by_its_detail_and_its_hint(tmp_path: Path) -> None:
    job = {
        "id": "job_1",
        "state": "failed",
        "error": {"type": "/problems/job-failed", "detail": "No module named 'x'", "hint": "The log has the details."},
    }
    answering = httpx.MockTransport(lambda _: httpx.Response(202, json=job))
    demo = _Demo(Console(quiet=True), tmp_path, 100, keep=False)
    with httpx.Client(transport=answering, base_url="http://service") as api, pytest.raises(DemoFailedError) as failed:
        demo._job(api, "tbl_1", "audit", {})
    assert str(failed.value) == "the audit failed.\n  No module named 'x'\n  The log has the details."


@pytest.mark.slow
def test_a_demo_that_could_not_start_says_why_and_gives_no_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ran = called(["demo"], env={"GROUNDSKEEPER_SLOTS": "[/red]"})
    assert ran.exit_code == 1
    assert "The demo failed: the service has ended with code 2" in ran.stdout
    assert "GROUNDSKEEPER_SLOTS" in ran.stdout
    assert "duplicates" not in ran.stdout
    assert f"The logs and the table are in {tmp_path}/groundskeeper-demo-" in ran.stdout
