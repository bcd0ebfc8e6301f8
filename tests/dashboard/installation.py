"""A service with an example of each object, for the pages of the dashboard."""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx

from jobs.contract import BucketIndex, JobKind, Outcome, Problem, Result
from jobs.format.bucket_rules import not_a_multiple
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import schema
from service.db.engine import writing
from service.model.clock import utc_now
from service.policies import store
from service.policies.policy import TableLevel
from service.scheduling import decision_store
from service.scheduling.decision import Decision, Verdict
from tests.integration.serving import Serving, eventually
from tests.support.forked_service import ended
from tests.support.small_table import SmallTable, base_file, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from playwright.sync_api import Page

SPARK = {"application_id": "app-20260101120000-0001", "ui_url": "http://127.0.0.1:4040"}
ORDERS = "tbl_1"
"""The folder of this table does not exist."""
TRIPS = "tbl_2"
"""The table has two buckets, a log and a plan of a compaction."""

_LOCK = {
    "provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "reachable": True,
    "held": False,
    "holder": None,
}
_BESIDE = {"lock": _LOCK, "beside": {"dead_writers": [], "writers": [], "plans": ["005"]}, "would_roll_back": []}
DRY_RUNS: dict[str, tuple[str, dict[str, object], dict[str, object]]] = {
    "ready": (
        "bucket_expansion",
        {"num_buckets": 8},
        {
            "refusals": [],
            "buckets": [4, 8],
            "rules": {"before": "4", "after": "8"},
            "partitions": 1,
            "files": 3,
            "file_groups": {"before": 2, "after": 4},
            "bytes": 7168,
            "estimated_cost": {"bytes_read": 7168, "bytes_written": 7168, "tasks": 2},
            "notes": ["A plan of a compaction is pending: the job would execute it first."],
            **_BESIDE,
        },
    ),
    "refused": ("bucket_expansion", {"num_buckets": 6}, {**_BESIDE, "refusals": [not_a_multiple("p", 4, 6).to_json()]}),
    "idle": (
        "cleaning",
        {},
        {"files": 0, "bytes": 0, "partitions": 0, "nothing_to_do": True, "refusals": [], **_BESIDE},
    ),
}
"""Kind, parameters and plan of each dry run, by its verdict."""


class Installation:
    """Serves two tables, with jobs in several states and a webhook. The service decides nothing by itself."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.service = Serving(folder, AUTOMATIC="false", PRICE_PER_GB_HOUR="0.5", **settings)
        self.url = self.service.url
        self._folder = folder
        self.jobs: dict[str, str] = {}
        """The ids of the jobs by their states."""
        self._beat: tuple[str, dict[str, object]] | None = None
        self._beating = threading.Lock()
        self._closed = threading.Event()
        self._add_tables(folder)
        self.api = httpx.Client(base_url=f"{self.url}/v1", headers={"Content-Type": "application/json"}, timeout=30)
        assert eventually(lambda: self.api.get(f"/tables/{TRIPS}/snapshot").status_code == 200, 60)
        table = f"#/tables/{TRIPS}"
        self.pages = {"overview": "", "table": table, "jobs of a table": f"{table}?tab=jobs"}
        self.pages |= {"decisions": f"{table}?tab=policy"}
        self.pages |= {tab: f"{table}?tab={tab}" for tab in ("writers", "timeline", "files")}
        self._add_jobs()
        wanted = {"url": "https://hooks.example/", "types": ["table.*"], "description": "chat alerts"}
        hook = self.post("/webhooks", wanted)
        self._keeper = threading.Thread(target=self._keep_lease, daemon=True)
        self._keeper.start()
        self.pages |= {
            "failed job": f"#/jobs/{self.jobs['failed']}",
            "jobs": "#/jobs",
            "webhooks": "#/webhooks",
            "webhook": f"#/webhooks/{hook['id']}",
            "policy": f"#/tables/{TRIPS}/policy",
            "workers": "#/workers",
            "report": "#/report",
            "register": "#/register",
            "discover": "#/discover",
            "audit": "#/audit",
            "policies": "#/policies",
            "policy of a pattern": "#/policies/night_*",
            "calendar": "#/calendar",
            "notifications": "#/notifications",
            "new notification": "#/notifications/on-call?type=email",
        }
        night = {"start": "22:00", "end": "04:30", "days": ["fri", "sat"]}
        policy = {"windows": [night], "bucket_expansion": {"max_bucket_bytes": 2 << 30}}
        self.api.put("/policies/night_*", json=policy).raise_for_status()

    def address(self, name: str) -> str:
        """Returns the address of this page of the dashboard."""
        return f"{self.url}/{self.pages[name]}"

    def add(self, names: Iterable[str]) -> None:
        """Registers tables. The tables are not polled, so they have no problems."""
        now = utc_now()
        with writing(self.service.engine) as connection:
            for name in names:
                later = Registration(f"tbl_{name}", f"/lake/{name}", name, now + timedelta(days=1), now)
                table_store.register(connection, later)

    def remove(self, names: Iterable[str]) -> None:
        """Removes tables that were added, without a call for each of them."""
        with writing(self.service.engine) as connection:
            rows = schema.tables
            connection.execute(rows.delete().where(rows.c.id.in_([f"tbl_{name}" for name in names])))

    def post(self, path: str, body: Any) -> Any:
        answer = self.api.post(path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def lease(self, group: str = "default") -> Any:
        """Leases the next job as a worker of the group does."""
        return self.post("/worker/leases", {"worker_id": f"w-{group}", "worker": {"group": group, "slots": 2, **SPARK}})

    def log_in(self, page: Page, role: str) -> None:
        """Opens the overview with a new token. The service requires a token from everybody as soon as one exists."""
        made = ended("token", "create", "--role", role, cwd=self._folder, env=os.environ)
        page.goto(self.address("overview"))
        page.locator("input").fill(made.stdout.split()[-1])
        page.keyboard.press("Enter")
        page.wait_for_selector("#pulse.live")

    def progress(self, job: str, done: int) -> None:
        total = {"tasks_total": 10, "bytes_total": 10 << 20}
        progress = {"step": "rewriting", "tasks_done": done, "bytes_done": done << 20, **total}
        with self._beating:
            self._beat = (job, {"attempt": 1, "progress": progress})
            self._send_beat().raise_for_status()

    def finish(self, job: str, result: Result) -> None:
        with self._beating:
            if self._beat and self._beat[0] == job:
                self._beat = None
        self.post(f"/worker/leases/{job}/result", {"attempt": 1, "result": result.to_json()})

    def run(self) -> None:
        """Submits a compaction that a worker takes at once, with some progress."""
        self.jobs["running"] = job = self.post(f"/tables/{TRIPS}/jobs", {"kind": "compaction"})["id"]
        self.lease()
        self.progress(job, 4)
        self.pages["running job"] = f"#/jobs/{job}"

    def _send_beat(self) -> httpx.Response:
        assert self._beat
        job, beat = self._beat
        return self.api.post(f"/worker/leases/{job}/heartbeat", json=beat)

    def _keep_lease(self) -> None:
        """Sends heartbeats, so that the job runs until the tests end."""
        while not self._closed.wait(10):
            with self._beating:
                if self._beat and self._send_beat().is_error:
                    self._beat = None  # A test has ended it.

    def close(self) -> None:
        self._closed.set()
        self._keeper.join()
        self.api.close()
        self.service.__exit__()

    def _add_tables(self, folder: Path) -> None:
        now = utc_now()
        profile = {"table_type": "MERGE_ON_READ", "table_version": 9, "warnings": ["Something is dangling."]}
        because = "7 commits since the last compaction, threshold 5; but the table's policy has paused it"
        decision = Decision(JobKind.COMPACTION, Verdict.WAIT, "paused", because, now, now, warning="A plan is old.")
        table = SmallTable(folder / "trips")
        files = {base_file(bucket_id(0), "001"): 4096, base_file(bucket_id(1), "001"): 2048}
        table.commit("001", {"p": files}, rows=7)
        table.commit("003", {"p": {log_file(bucket_id(0), "003"): 1024}})
        table.schedule("005", "compaction")
        trips = Registration(TRIPS, str(table.base), "trips", now, now, index=BucketIndex(4, ("id",)))
        with writing(self.service.engine) as connection:
            orders = Registration(ORDERS, "/lake/orders", "<b>orders</b>", now, now, profile=profile)
            table_store.register(connection, orders)
            table_store.register(connection, trips)
            policy = {"cleaning": {"cron": "0 3 * * 6", "retain": 4}, "worker_group": "night"}
            store.put_table(connection, ORDERS, TableLevel(policy, now))
            decision_store.record(connection, ORDERS, [decision], {})

    def _add_jobs(self) -> None:
        def submit(table: str, **wanted: object) -> str:
            return str(self.post(f"/tables/{table}/jobs", wanted)["id"])

        self.jobs["failed"] = submit(ORDERS, kind="clustering", params={"sort_by": ["nope"]})
        self.lease("night")
        refusal = Problem("column-unknown", "The table has no such column", "nope", "Its columns are id and city.")
        details = {"refusals": [refusal.to_json()], "seconds": 1.25}
        self.finish(self.jobs["failed"], Result(Outcome.FAILED, details=details, error=refusal))
        for name, (kind, params, plan) in DRY_RUNS.items():
            self.jobs[name] = submit(TRIPS, kind=kind, params=params, dry_run=True)
            self.lease()
            self.finish(self.jobs[name], Result(Outcome.SUCCEEDED, details=plan))
            self.pages[f"{name} dry run"] = f"#/jobs/{self.jobs[name]}"
        self.run()
        self.jobs["queued"] = submit(ORDERS, kind="audit")
