"""An operator's bad day: everything is wrong at once on a real service, is seen on the page, and goes by itself."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import httpx
import pytest
from playwright.sync_api import expect

from jobs.contract import WAITS_FOR, BucketIndex, Outcome, Problem, Result
from service.catalog import table_store
from service.catalog.registration import Registration
from service.db import schema
from service.db.engine import writing
from service.model.clock import utc_now
from service.standing.problem import StandingKind
from tests.integration.receiver import Receiver, Reply
from tests.integration.serving import Serving, eventually
from tests.small_table import SmallTable, base_file, bucket_id, instant_at, log_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import sqlalchemy as sa
    from playwright.sync_api import Page

    # Makes a problem of one object real, yields its name on the page, and puts it right.
    Scene = Callable[["Fleet"], Iterator[str]]

A, B = bucket_id(0), bucket_id(1)
MIB, GIB = 1024**2, 1024**3
_REFUSAL = Problem("column-unknown", "There is no such column", "nope", "Its columns are id and city.")


class Fleet:
    """A real service that polls its tables every second, and starts nothing by itself."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service = Serving(folder, AUTOMATIC="false", POLL_SECONDS="1", LEASE_SECONDS="900")
        self.api = httpx.Client(
            base_url=f"{self.service.url}/v1", headers={"Content-Type": "application/json"}, timeout=30
        )

    def close(self) -> None:
        self.api.close()
        self.service.__exit__()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.api.request(method, path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def table(self, name: str, *, buckets: int = 4, **more: Any) -> Table:
        return Table(self, name, buckets, SmallTable(self.folder / name, **more))

    def submit(self, table: Table, kind: str = "audit") -> str:
        return str(self.call("POST", f"/tables/{table.id}/jobs", {"kind": kind})["id"])

    def lease(self, worker: str, group: str) -> Any:
        asked = {"worker_id": worker, "worker": {"group": group}, "wait_seconds": 0}
        return self.call("POST", "/worker/leases", asked)["plan"]

    def age(self, rows: sa.Table, condition: sa.ColumnElement[bool], by: timedelta, *columns: str) -> None:
        """Hours need not be waited for: what was written now was written then."""
        with writing(self.service.engine) as connection:
            for row in connection.execute(rows.select().where(condition)).mappings().all():
                then = {name: row[name] - by for name in columns if row[name] is not None}
                connection.execute(rows.update().where(rows.c.id == row["id"]).values(then))


class Table:
    """Its instants are two seconds apart and began a day ago, unless a scene says otherwise."""

    def __init__(self, fleet: Fleet, name: str, buckets: int, files: SmallTable) -> None:
        self.name, self.files, self.id, self._fleet = name, files, f"tbl_{name}", fleet
        self._at = utc_now() - timedelta(days=1)
        now = utc_now()
        index = BucketIndex(buckets, ("id",)) if buckets else None
        with writing(fleet.service.engine) as connection:
            table_store.register(connection, Registration(self.id, str(files.base), name, now, now, index=index))

    def instant(self) -> str:
        self._at += timedelta(seconds=2)
        return instant_at(self._at)

    def commit(self, files: Mapping[str, int] | None = None, *, instant: str | None = None, **more: Any) -> str:
        at = instant or self.instant()
        completed = instant_at(self._at + timedelta(seconds=1))
        self.files.commit(at, {"p": dict(files or {})}, completed=completed, modified=self._at.timestamp(), **more)
        return at

    def policy(self, **wanted: Any) -> None:
        self._fleet.call("PUT", f"/tables/{self.id}/policy", wanted)


def path_gone(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("vanished")
    away = table.files.base.rename(fleet.folder / "away")
    yield table.name
    away.rename(table.files.base)


def timeline_corrupt(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("corrupt")
    instant = table.instant()
    table.files.complete(instant, "deltacommit", b"no avro")
    yield table.name
    next(table.files.timeline.glob(f"{instant}_*")).unlink()


def dead_writer(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("deserted")
    dead = table.instant()
    table.files.begin(dead, heartbeat=(utc_now() - timedelta(hours=3)).timestamp())
    yield table.name
    table.files.rollback(table.instant(), dead)


def lock_held(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("locked")
    job = fleet.submit(table, "compaction")
    order = fleet.lease("patient", "default")
    assert order["job_id"] == job

    def beat(step: str) -> None:
        body = {"attempt": 1, "progress": {"step": step}}
        fleet.call("POST", f"/worker/leases/{job}/heartbeat", body)

    beat(f"planning{WAITS_FOR}the table's lock, held for 3 h by writer-7")
    fleet.age(schema.jobs, schema.jobs.c.id == job, timedelta(minutes=10), "leased_at", "started_at", "created_at")
    yield table.name
    beat("executing")


def compaction_behind(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("piled_up")
    table.commit({base_file(A, "1"): 10})
    for number in range(14):
        table.commit({log_file(A, "1", number + 1): 10})
    yield table.name
    plan = table.instant()
    table.files.begin(plan, "compaction")
    table.commit({base_file(A, plan): 10}, instant=plan, action="commit", operation="COMPACT")


def plan_stuck(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("stuck")
    table.commit({base_file(A, "1"): 10})
    plan = table.instant()
    table.files.schedule(plan, "compaction")
    yield table.name
    table.commit({base_file(A, plan): 10}, instant=plan, action="commit", operation="COMPACT")


def cleaning_behind(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("hoarding")
    old = []
    for _ in range(31):
        instant = table.instant()
        old.append(base_file(A, instant))
        table.commit({old[-1]: 10}, instant=instant)
    yield table.name
    for name in old[:-1]:
        (table.files.base / "p" / name).unlink()
    table.files.clean(table.instant(), ("p",))


def timeline_long(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("unarchived")
    table.policy(archival={"enabled": True, "commits": 10})
    instants = [table.commit() for _ in range(21)]
    yield table.name
    table.files.archive(*instants[:15])


def bucket_too_large(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("overfull")
    table.commit({base_file(A, "1"): 4 * GIB, base_file(B, "1"): 4 * GIB})
    yield table.name
    table.commit({base_file(A, "2"): GIB, base_file(B, "2"): GIB})


def buckets_skewed(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("uneven", buckets=8)
    table.commit({base_file(A, "1"): GIB, base_file(B, "1"): MIB})
    yield table.name
    table.commit({base_file(bucket_id(number), "2"): GIB for number in range(1, 8)})


def small_files(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("crumbs", buckets=0, table_type="COPY_ON_WRITE")
    small = [bucket_id(0, tail=number) for number in range(1, 102)]
    table.commit({base_file(file_id, "1"): 10 for file_id in small}, action="commit")
    yield table.name
    merged = {base_file(bucket_id(0, tail=200), "2"): 200 * MIB}
    table.commit(merged, action="replacecommit", operation="CLUSTER", replaced={"p": small})


def policy_cannot_act(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("unsorted")
    table.commit({base_file(A, "1"): 10})
    table.policy(clustering={"enabled": True})
    yield table.name
    table.policy(clustering={"enabled": True, "sort_by": ["city"]})


def group_without_worker(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("waiting")
    table.policy(worker_group="large")
    job = fleet.submit(table)
    fleet.age(schema.jobs, schema.jobs.c.id == job, timedelta(minutes=10), "not_before", "created_at")
    yield "large"
    fleet.call("POST", "/worker/announcements", {"worker_id": "big", "worker": {"group": "large"}})


def worker_lost(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("dropped")
    table.policy(worker_group="lost")
    job = fleet.submit(table)
    assert fleet.lease("gone-for-good", "lost")["job_id"] == job
    fleet.age(schema.workers, schema.workers.c.id == "gone-for-good", timedelta(minutes=5), "last_seen", "first_seen")
    yield "gone-for-good"
    fleet.call("POST", "/worker/announcements", {"worker_id": "in-its-place", "worker": {"group": "lost"}})


def webhook_failing(fleet: Fleet) -> Iterator[str]:
    receiver = Receiver(Reply(500))
    wanted = {"url": receiver.url, "types": ["job.*"], "description": "cache"}
    hook = fleet.call("POST", "/webhooks", wanted)["id"]
    fleet.submit(fleet.table("announced"))
    assert eventually(lambda: bool(receiver.received), 20)
    is_it = schema.webhooks.c.id == hook
    fleet.age(schema.webhooks, is_it, timedelta(minutes=20), "failing_since", "created_at", "updated_at")
    yield "cache"
    receiver.answer = Reply()
    fleet.call("POST", f"/webhooks/{hook}/enable")
    assert eventually(lambda: fleet.call("GET", f"/webhooks/{hook}")["last_success_at"] is not None, 20)
    receiver.close()


def job_failing(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("failing")
    table.policy(worker_group="f")

    def run(result: Result) -> None:
        job = fleet.submit(table)
        assert fleet.lease("unlucky", "f")["job_id"] == job
        fleet.call("POST", f"/worker/leases/{job}/result", {"attempt": 1, "result": result.to_json()})

    for _ in range(3):
        run(Result(Outcome.FAILED, error=_REFUSAL))
    yield table.name
    run(Result(Outcome.SUCCEEDED))


def commits_missed(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("overtaken", version=6)
    first = table.commit()
    path = f"/commits?table_id={table.id}"
    assert eventually(lambda: bool(fleet.call("GET", path)["items"]), 20)
    gone = [table.commit() for _ in range(2)]
    table.files.archive(first, gone[0])
    yield table.name
    with writing(fleet.service.engine) as connection:
        rows = schema.watches
        [row] = connection.execute(rows.select().where(rows.c.table_id == table.id)).mappings()
        then = row["gap_at"] - timedelta(days=1)
        connection.execute(rows.update().where(rows.c.table_id == table.id).values(gap_at=then))


SCENES: dict[Scene, StandingKind] = {
    path_gone: StandingKind.TABLE_UNREADABLE,
    timeline_corrupt: StandingKind.TABLE_UNREADABLE,
    dead_writer: StandingKind.DEAD_WRITER,
    lock_held: StandingKind.LOCK_AWAITED,
    compaction_behind: StandingKind.COMPACTION_BEHIND,
    plan_stuck: StandingKind.PLAN_STUCK,
    cleaning_behind: StandingKind.CLEANING_BEHIND,
    timeline_long: StandingKind.TIMELINE_LONG,
    bucket_too_large: StandingKind.BUCKET_TOO_LARGE,
    buckets_skewed: StandingKind.BUCKETS_SKEWED,
    small_files: StandingKind.SMALL_FILES,
    policy_cannot_act: StandingKind.POLICY_CANNOT_ACT,
    group_without_worker: StandingKind.GROUP_WITHOUT_WORKER,
    worker_lost: StandingKind.WORKER_LOST,
    webhook_failing: StandingKind.WEBHOOK_FAILING,
    job_failing: StandingKind.JOB_FAILING,
    commits_missed: StandingKind.COMMITS_MISSED,
}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    yield made
    made.close()


@pytest.mark.exhaustive
def test_everything_that_is_wrong_is_on_the_page_until_it_is_put_right(fleet: Fleet, page: Page) -> None:
    standing = [(kind, scene(fleet)) for scene, kind in SCENES.items()]
    wrong = [(kind, next(scene), scene) for kind, scene in standing]

    def listed() -> dict[tuple[str, str], Any]:
        items = fleet.call("GET", "/problems?limit=500")["items"]
        return {(each["kind"], each["about"]["name"]): each for each in items}

    assert eventually(lambda: listed().keys() >= {(kind, name) for kind, name, _ in wrong}, 30), listed().keys()
    problems = listed()
    open_overview(page, fleet)
    for kind, name, _ in wrong:
        found = problems[kind, name]
        # Ranked, with what it is, what follows and what to do.
        shown = notice(page, name, found["title"])
        expect(shown).to_have_count(1)
        expect(shown).to_contain_text(found["severity"])
        for words in (found["consequence"], found["remedy"]):
            expect(shown).to_contain_text(words)
        if found["action"]:
            role: Literal["link", "button"] = "link" if found["action"]["method"] == "GET" else "button"
            expect(shown.get_by_role(role, name=found["action"]["label"])).to_be_visible()
            expect(shown).to_contain_text(found["action"]["path"], use_inner_text=False)
    ranks = [each for each in page.locator("li.problem").all_inner_texts() if each]
    order = [re.match(r"\s*(critical|warning|notice)", each) for each in ranks]
    severities = [found.group(1) for found in order if found]
    assert severities == sorted(severities, key=["critical", "warning", "notice"].index)

    for _, _, scene in wrong:
        assert next(scene, None) is None
    assert eventually(lambda: not listed().keys() & {(kind, name) for kind, name, _ in wrong}, 60), listed().keys()
    open_overview(page, fleet)
    for kind, name, _ in wrong:
        expect(notice(page, name, problems[kind, name]["title"])).to_have_count(0, timeout=15_000)


def open_overview(page: Page, fleet: Fleet) -> None:
    page.goto("about:blank")
    page.goto(fleet.service.url)
    page.wait_for_selector("#pulse.live")
    every = page.get_by_role("button", name=re.compile("Show all"))
    if every.count():
        every.first.click()


def notice(page: Page, name: str, title: str) -> Any:
    return page.locator("li.problem").filter(has_text=title).filter(has_text=name)
