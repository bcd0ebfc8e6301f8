"""Runs the shell blocks of the README's five-minute path by bash, and by zsh if it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from jobs.contract import BucketIndex
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db.engine import writing
from service.model.clock import utc_now
from tests.integration.serving import Serving
from tests.support.guides import README, is_installation, is_program, shell_blocks
from tests.support.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_ADDRESS = "http://127.0.0.1:8080\n"


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A service without workers, which has polled its only table."""
    table = SmallTable(tmp_path / "trips")
    table.commit("001", {"p": {base_file(bucket_id(0), "001"): 4096, base_file(bucket_id(1), "001"): 2048}}, rows=7)
    table.commit("003", {"p": {log_file(bucket_id(0), "003"): 1024}})
    with Serving(tmp_path, AUTOMATIC="false") as running:
        now = utc_now()
        with writing(running.engine) as connection:
            table_store.register(
                connection, Registration("tbl_1", str(table.base), "trips", now, now, index=BucketIndex(4, ("id",)))
            )
        deadline = time.monotonic() + 60
        while httpx.get(f"{running.url}/v1/tables/tbl_1/snapshot").status_code != 200:
            assert time.monotonic() < deadline, running.log.read_text()
            time.sleep(0.1)
        yield running


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_five_minute_path_of_the_readme_works(serving: Serving, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    blocks = [block for block in shell_blocks(README) if not (is_installation(block) or is_program(block))]
    assert _SHOWN_ADDRESS in blocks[0]
    # The service has no worker, so the watched job would never end.
    script = "".join(blocks).replace(_SHOWN_ADDRESS, f"{serving.url}\n").replace(" --watch", "")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDSKEEPER_")}
    clean["PATH"] = f"{Path(sys.executable).parent}:{clean['PATH']}"
    ran = subprocess.run(
        [shell, "-ec", script],
        cwd=tmp_path,
        env=clean,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    jobs = httpx.get(f"{serving.url}/v1/jobs").json()["items"]
    assert [(job["kind"], job["dry_run"]) for job in jobs] == [("bucket_expansion", True)]
    assert "trips" in ran.stdout
    assert "hoodie.write.lock.provider" in ran.stdout
