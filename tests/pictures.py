"""Draws the pictures of the README and of the guides, on small tables and with jobs that a worker of this script holds:

python -m tests.pictures
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from jobs.contract import Outcome, Problem, Result
from service.model.clock import utc_now
from tests.dashboard.fleet import Fleet, Table
from tests.integration.serving import eventually
from tests.support.browser import DESKTOP, new_context, running
from tests.support.small_table import base_file, bucket_id, log_file

GUIDES = Path(__file__).resolve().parent.parent / ".docs"
_MIB = 1024**2
# The tables of each team, with the number of commits that wait for a compaction. Five are due for one.
_TEAMS = {
    "shop": {"orders_eu": 2, "orders_us": 6, "returns": 3},
    "pay": {"payments": 7, "invoices": 1},
    "web": {"clicks": 9, "sessions": 4, "inventory": 3},
}
_FULL = Problem("storage-full", "The storage is full", "No space left on device", "Free space on the storage.")
_ASKED = {"worker_id": "spark-1", "worker": {"group": "default", "slots": 2}, "wait_seconds": 0}


def draw() -> None:
    with TemporaryDirectory(prefix="lake-") as folder:
        fleet = Fleet(Path(folder), automatic="true")
        try:
            _photograph(fleet, _prepare(fleet))
        finally:
            fleet.close()


def _prepare(fleet: Fleet) -> Table:
    """Returns the table of the second picture."""
    fleet.call("PUT", "/policies/tag:team=shop", {"cleaning": {"commits": 3}})
    tables = {name: _table(fleet, name, logs) for team in _TEAMS.values() for name, logs in team.items()}
    for team, names in _TEAMS.items():
        label = {"owner": f"{team}@example.com", "tags": {"team": team}}
        fleet.call("POST", "/tables/bulk", {"action": "label", "tables": [f"tbl_{name}" for name in names], **label})
    failed = fleet.submit(tables["inventory"])
    order = fleet.call("POST", "/worker/leases", _ASKED)["plan"]
    while order["job_id"] != failed:
        _end(fleet, order, Outcome.SUCCEEDED)
        order = fleet.call("POST", "/worker/leases", _ASKED)["plan"]
    _end(fleet, order, Outcome.FAILED)
    for done in (3, 8):
        order = fleet.call("POST", "/worker/leases", _ASKED)["plan"]
        progress = {"step": "rewriting", "tasks_done": done, "tasks_total": 16, "bytes_done": done << 24}
        beat = {"attempt": 1, "progress": {**progress, "bytes_total": 16 << 24}}
        fleet.call("POST", f"/worker/leases/{order['job_id']}/heartbeat", beat)
    fleet.submit(tables["sessions"], "audit")
    fleet.submit(tables["orders_eu"], "cleaning")
    shutil.move(tables["invoices"].files.base, fleet.folder / "elsewhere")
    assert eventually(lambda: bool(fleet.call("GET", "/problems?severity=critical")["items"]), 60)
    return tables["orders_eu"]


def _table(fleet: Fleet, name: str, logs: int) -> Table:
    table = fleet.table(name)
    table.at = utc_now() - timedelta(minutes=20)
    table.commit({base_file(bucket_id(number), "1"): 40 * _MIB for number in range(4)})
    for number in range(logs):
        table.commit({log_file(bucket_id(number % 4), "1", number + 1): 3 * _MIB})
    assert eventually(lambda: table.log_bytes() == 3 * _MIB * logs, 60)
    return table


def _end(fleet: Fleet, order: dict[str, str], outcome: Outcome) -> None:
    result = Result(outcome, error=_FULL if outcome is Outcome.FAILED else None)
    fleet.call("POST", f"/worker/leases/{order['job_id']}/result", {"attempt": 1, "result": result.to_json()})


def _photograph(fleet: Fleet, table: Table) -> None:
    with running() as browser:
        page = new_context(browser, size=DESKTOP).new_page()
        for name, address in {"dashboard": "", "table": f"#/tables/{table.id}?tab=policy"}.items():
            page.goto("about:blank")
            page.goto(f"{fleet.service.url}/{address}")
            page.wait_for_selector("#pulse.live")
            page.wait_for_timeout(5000)
            page.screenshot(path=GUIDES / f"{name}.png", full_page=True)


if __name__ == "__main__":
    draw()
