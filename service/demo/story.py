"""The steps of the demo, and its measurements."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from service.demo import ledger, processes, receiver
from service.demo.processes import DemoFailedError
from service.demo.receiver import Inbox
from service.demo.writer import NUM_BUCKETS

if TYPE_CHECKING:
    import httpx

DELTA_COMMITS = 3
COMMITS_AFTERWARDS = 2
EXPANDED = 8
# When a conflict ends a batch, the batch's instant stays on the timeline until the writer is known to be dead. Without
# `retry_conflicts`, a job that replaces file groups would wait for minutes for this instant.
WRITERS = {"hudi_version": "1.2.0", "retry_conflicts": True}
MESSAGE_SECONDS = 90.0
ENDED = {"succeeded", "failed", "cancelled"}


@dataclass
class Findings:
    """The summary that `--json` prints. `jobs` has the seconds from start to end of each job."""

    rows: int = 0
    lost: int = 0
    duplicates: int = 0
    misplaced: int = 0
    batches: int = 0
    written_again: int = 0
    buckets: list[int] = field(default_factory=list)
    jobs: dict[str, float] = field(default_factory=dict)
    received: int = 0
    verified: int = 0
    missing: int = 0
    is_clean: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        wrong = self.lost + self.duplicates + self.misplaced
        is_announced = self.received == self.verified > 0 and not self.missing
        return self.is_clean and not wrong and is_announced and self.buckets == [NUM_BUCKETS, EXPANDED]

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "table": {
                "rows": self.rows,
                "lost": self.lost,
                "duplicates": self.duplicates,
                "misplaced": self.misplaced,
                "buckets": self.buckets,
            },
            "webhooks": {"received": self.received, "verified": self.verified, "missing": self.missing},
            "writer": {"batches": self.batches, "written_again": self.written_again},
            "jobs": self.jobs,
            "seconds": round(self.seconds, 1),
        }


def run(*, rows: int, keep: bool, as_json: bool) -> int:
    """Runs the demo. Returns 0 only if the audit is clean and the table has every row that the writer wrote."""
    # Only the JSON goes to stdout if --json is given.
    console = Console(stderr=as_json)
    folder = Path(tempfile.mkdtemp(prefix="groundskeeper-demo-"))
    # Both signals must also end the service, the worker and the writer.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.default_int_handler)
    try:
        findings = _Demo(console, folder, rows, keep=keep).play()
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    except DemoFailedError as error:
        console.print(f"[red]The demo failed:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        findings = Findings()
    if findings.ok:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        console.print(f"The logs and the table are in {folder}.", highlight=False, soft_wrap=True)
    if as_json:
        sys.stdout.write(json.dumps(findings.to_json()) + "\n")
    return 0 if findings.ok else 1


class _Demo:
    def __init__(self, console: Console, folder: Path, rows: int, *, keep: bool) -> None:
        self._console = console
        self._folder = folder
        self._rows = rows
        self._keep = keep
        self._base_path = folder / "trips"
        self._findings = Findings()
        self._inbox = Inbox()

    def play(self) -> Findings:
        started = time.monotonic()
        with ExitStack() as stack:
            port = _free_port()
            self._say(f"Starting the service and a Spark worker; logs and table are in {self._folder}")
            api = stack.enter_context(processes.service(self._folder, port))
            self._say(f"Dashboard: [link]http://127.0.0.1:{port}/[/link]   API: http://127.0.0.1:{port}/docs")
            self._subscribe(api, stack.enter_context(receiver.running(self._inbox)))
            self._say(f"Starting a writer: {self._rows:,} rows, merge-on-read, {NUM_BUCKETS} buckets, then upserts")
            callback = f"http://127.0.0.1:{port}/v1/callbacks/hudi"
            with processes.writer(self._folder, self._base_path, self._rows, callback) as ledger_path:
                table_id = self._register(api)
                before = self._completed()
                self._wait_for_commits(ledger_path, DELTA_COMMITS)
                self._job(api, table_id, "compaction", {})
                self._job(api, table_id, "clustering", {"sort_by": ["city"], "lock_seconds": 60})
                expansion = self._job(api, table_id, "bucket_expansion", {"num_buckets": EXPANDED, "lock_seconds": 60})
                self._findings.buckets = expansion["buckets"]
                self._say(f"The writer goes on, and still has {NUM_BUCKETS} buckets in its options")
                self._wait_for_commits(ledger_path, COMMITS_AFTERWARDS)
            self._job(api, table_id, "cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1})
            audit = self._job(api, table_id, "audit", {})
            self._judge(ledger.read(ledger_path), audit)
            self._count_messages(self._completed() - before)
            self._findings.seconds = time.monotonic() - started
            _summarise(self._console, self._findings)
            if self._keep:
                self._say("Press Ctrl-C to end the service.")
                _sleep_until_interrupted()
        return self._findings

    def _subscribe(self, api: httpx.Client, url: str) -> None:
        answer = api.post("/v1/webhooks", json={"url": url, "types": ["commit.published"], "description": "demo"})
        if not answer.is_success:
            raise DemoFailedError(f"the webhook was not accepted: {answer.text}")
        self._inbox.secret = answer.json()["secret"]
        self._say(f"A receiver of webhooks listens at {url}; it accepts only signed messages")

    def _completed(self) -> set[str]:
        """Returns the completed instants of the table's timeline. The name of a completed instant's file has two
        times."""
        timeline = self._base_path / ".hoodie" / "timeline"
        return {path.name.partition("_")[0] for path in timeline.glob("[0-9]*_*")}

    def _count_messages(self, expected: set[str]) -> None:
        """Waits for the messages of all instants that completed since the registration, and counts the missing ones."""
        deadline = time.monotonic() + MESSAGE_SECONDS
        while (missing := expected - self._inbox.instants()) and time.monotonic() < deadline:
            time.sleep(0.2)
        self._findings.received = self._inbox.received
        self._findings.verified = self._inbox.verified
        self._findings.missing = len(missing)
        self._say(
            f"[green]webhooks[/green]: {self._inbox.verified} of {self._inbox.received} messages verified, "
            f"{len(missing)} of {len(expected)} instants missing"
        )

    def _register(self, api: httpx.Client) -> str:
        index = {"type": "bucket", "num_buckets": NUM_BUCKETS, "hash_fields": ["id"]}
        body = {"base_path": str(self._base_path), "index": index, "writers": WRITERS}
        answer = api.post("/v1/tables", json=body)
        if not answer.is_success:
            raise DemoFailedError(f"the table could not be registered: {answer.text}")
        checked = answer.json()["profile"]["bucket_layout"]["keys_checked"]
        self._say(f"Registered the table; its {NUM_BUCKETS} buckets are verified on {checked} record keys")
        return str(answer.json()["id"])

    def _wait_for_commits(self, path: Path, count: int) -> None:
        seen = len(ledger.read(path))
        with self._console.status(f"Waiting for {count} more commits of the writer"):
            deadline = time.monotonic() + processes.START_SECONDS
            while len(ledger.read(path)) < seen + count:
                if time.monotonic() > deadline:
                    raise DemoFailedError(f"the writer no longer commits, see {self._folder / 'writer.log'}")
                time.sleep(0.2)

    def _job(self, api: httpx.Client, table_id: str, kind: str, params: dict[str, Any]) -> dict[str, Any]:
        """Submits a job, shows its progress, and returns its result."""
        answer = api.post(f"/v1/tables/{table_id}/jobs", json={"kind": kind, "params": params})
        if not answer.is_success:
            raise DemoFailedError(f"the {kind} was not accepted: {answer.text}")
        job: dict[str, Any] = answer.json()
        bar = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(30), TimeElapsedColumn())
        with Progress(*bar, console=self._console, transient=True) as progress:
            shown = progress.add_task(kind, total=None)
            while job["state"] not in ENDED:
                time.sleep(0.2)
                job = api.get(f"/v1/jobs/{job['id']}").json()
                now = job["progress"] or {"step": job["state"], "tasks_done": 0, "tasks_total": 0}
                total = now["tasks_total"] or None
                progress.update(shown, description=f"{kind}: {now['step']}", completed=now["tasks_done"], total=total)
        if job["state"] != "succeeded":
            error = job["error"] or {}
            texts = [f"the {kind} {job['state']}.", *(error[each] for each in ("detail", "hint") if error.get(each))]
            raise DemoFailedError("\n  ".join(texts))
        seconds = _seconds(job)
        self._findings.jobs[kind] = seconds
        self._say(f"[green]{kind.replace('_', ' ')}[/green] in {seconds:.1f} s: {_describe(kind, job['result'])}")
        result: dict[str, Any] = job["result"]
        return result

    def _judge(self, batches: list[ledger.Batch], audit: dict[str, Any]) -> None:
        found = ledger.compare(batches, self._base_path)
        self._findings.rows = found.rows
        self._findings.lost = found.lost
        self._findings.duplicates = max(found.duplicates, audit["duplicates"])
        self._findings.misplaced = audit["misplaced"]
        self._findings.batches = sum(batch.error is None for batch in batches)
        self._findings.written_again = sum(batch.error is not None for batch in batches)
        self._findings.is_clean = audit["clean"] and not found.unknown and audit["rows"] == found.rows

    def _say(self, text: str) -> None:
        self._console.print(f"[dim]{time.strftime('%H:%M:%S')}[/dim] {text}", highlight=False, soft_wrap=True)


def _describe(kind: str, result: dict[str, Any]) -> str:
    groups: Any = result.get("file_groups")
    match kind:
        case "compaction":
            return f"{result['log_files']} log files merged into their base files, {groups} file groups"
        case "cleaning":
            return f"{result['files_deleted']} old files deleted"
        case "clustering":
            return f"rows sorted inside {groups['after']} buckets' files, {result['left_out']} skipped"
        case "bucket_expansion":
            before, after = result["buckets"]
            again, locked = result["rewritten_again"], result["locked_seconds"]
            return (
                f"{before} -> {after} buckets, {result['rows']:,} rows, {again} file groups split again because the "
                f"writer had changed them; writers waited {locked:.1f} s"
            )
        case _:
            return f"{result['rows']:,} rows, {result['misplaced']} misplaced, {result['duplicates']} duplicates"


def _summarise(console: Console, findings: Findings) -> None:
    verdict = "[green]The table is correct[/green]" if findings.ok else "[red]The demo found an error[/red]"
    console.print(
        f"\n{verdict}: {findings.rows:,} rows, {findings.lost} lost, {findings.duplicates} duplicates, "
        f"{findings.misplaced} misplaced; {findings.batches} batches of the writer, {findings.written_again} had to be "
        f"written again; {findings.verified} of {findings.received} webhook messages verified, {findings.missing} "
        f"missing; "
        f"{findings.seconds:.0f} s.",
        highlight=False,
        soft_wrap=True,
    )


def _seconds(job: dict[str, Any]) -> float:
    started, finished = (datetime.fromisoformat(job[name]) for name in ("started_at", "finished_at"))
    return round((finished - started).total_seconds(), 2)


def _free_port(wanted: int = 8080) -> int:
    """Returns the port that the README's commands use by default, or another one if it is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return _free_port(0)
        return int(probe.getsockname()[1])


def _sleep_until_interrupted() -> None:
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return
