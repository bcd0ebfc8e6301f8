"""Scenes of an operator's bad day: each scene causes a problem of one object, and repairs it."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING

from jobs.contract import WAITS_FOR, Outcome, Problem, Result
from service.db import schema
from service.db.engine import reading, writing
from service.health.problem import ProblemKind
from service.model.clock import utc_now
from tests.integration.receiver import Receiver, Reply
from tests.integration.serving import eventually
from tests.support.small_table import base_file, bucket_id, log_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.dashboard.fleet import Fleet, Table

    # A scene causes a problem of one object, yields the object's name on the page, and repairs it.
    Scene = Callable[[Fleet], Iterator[str]]

A, B = bucket_id(0), bucket_id(1)
MIB, GIB = 1024**2, 1024**3
_REFUSAL = Problem("column-unknown", "There is no such column", "nope", "Its columns are id and city.")


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


def instant_missing(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("robbed")
    instants = [table.commit() for _ in range(3)]
    assert eventually(lambda: len(fleet.call("GET", f"/commits?table_id={table.id}")["items"]) == 3, 60)
    lost = next(table.files.timeline.glob(f"{instants[1]}_*"))
    content = lost.read_bytes()
    lost.unlink()

    def vanished_since() -> str | None:
        with reading(fleet.service.engine) as connection:
            query = schema.snapshots.select().where(schema.snapshots.c.table_id == table.id)
            return connection.execute(query).one().summary["vanished_since"]

    assert eventually(lambda: vanished_since() is not None, 60)
    with writing(fleet.service.engine) as connection:
        rows = schema.snapshots
        row = connection.execute(rows.select().where(rows.c.table_id == table.id)).one()
        then = (utc_now() - timedelta(minutes=20)).isoformat()
        summary = {**row.summary, "vanished_since": then}
        connection.execute(rows.update().where(rows.c.table_id == table.id).values(summary=summary))
    yield table.name
    lost.write_bytes(content)


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


def lock_held_long(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("bolted")
    table.commit()
    lock = table.files.base / ".hoodie" / "lock"
    lock.touch()
    then = (utc_now() - timedelta(hours=1)).timestamp()
    os.utime(lock, (then, then))
    yield table.name
    lock.unlink()


def compaction_behind(fleet: Fleet) -> Iterator[str]:
    table = piled_up(fleet)
    yield table.name
    compact(table, table.instant())


def piled_up(fleet: Fleet) -> Table:
    """Returns a table whose compaction is behind."""
    table = fleet.table("piled_up")
    table.commit({base_file(A, "1"): 10})
    for number in range(14):
        table.commit({log_file(A, "1", number + 1): 10})
    return table


def compact(table: Table, instant: str) -> None:
    table.files.begin(instant, "compaction")
    table.commit({base_file(A, instant): 10}, instant=instant, action="commit", operation="COMPACT")


def backlog_growing(fleet: Fleet) -> Iterator[str]:
    table = fleet.table("swelling", buckets=1)
    table.commit({base_file(A, "1"): GIB})

    def compacted(left: int) -> None:
        """Writes a compaction and log files that were written meanwhile, and waits for a poll."""
        instant = table.instant()
        table.files.begin(instant, "compaction")
        files = {base_file(A, instant): GIB, log_file(A, instant): left * MIB}
        table.commit(files, instant=instant, action="commit", operation="COMPACT")
        assert eventually(lambda: table.log_bytes() == left * MIB, 60)

    assert eventually(lambda: table.log_bytes() == 0, 60)
    for left in (100, 200, 300, 400):
        compacted(left)
    yield table.name
    compacted(50)


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
    assert eventually(lambda: fleet.call("GET", f"/webhooks/{hook}")["failing_since"] is not None, 60)
    is_it = schema.webhooks.c.id == hook
    fleet.age(schema.webhooks, is_it, timedelta(minutes=20), "failing_since", "created_at", "updated_at")
    yield "cache"
    receiver.answer = Reply()
    fleet.call("POST", f"/webhooks/{hook}/enable")
    assert eventually(lambda: fleet.call("GET", f"/webhooks/{hook}")["last_success_at"] is not None, 60)
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
    assert eventually(lambda: bool(fleet.call("GET", path)["items"]), 60)
    gone = [table.commit() for _ in range(2)]
    table.files.archive(first, gone[0])
    yield table.name
    with writing(fleet.service.engine) as connection:
        rows = schema.watches
        [row] = connection.execute(rows.select().where(rows.c.table_id == table.id)).mappings()
        then = row["gap_at"] - timedelta(days=1)
        connection.execute(rows.update().where(rows.c.table_id == table.id).values(gap_at=then))


SCENES: dict[Scene, ProblemKind] = {
    path_gone: ProblemKind.TABLE_UNREADABLE,
    timeline_corrupt: ProblemKind.TABLE_UNREADABLE,
    instant_missing: ProblemKind.COMMITS_VANISHED,
    dead_writer: ProblemKind.DEAD_WRITER,
    lock_held: ProblemKind.LOCK_AWAITED,
    lock_held_long: ProblemKind.LOCK_HELD_LONG,
    compaction_behind: ProblemKind.COMPACTION_BEHIND,
    backlog_growing: ProblemKind.COMPACTION_BACKLOG_GROWING,
    plan_stuck: ProblemKind.PLAN_STUCK,
    cleaning_behind: ProblemKind.CLEANING_BEHIND,
    timeline_long: ProblemKind.TIMELINE_LONG,
    bucket_too_large: ProblemKind.BUCKET_TOO_LARGE,
    buckets_skewed: ProblemKind.BUCKETS_SKEWED,
    small_files: ProblemKind.SMALL_FILES,
    policy_cannot_act: ProblemKind.POLICY_CANNOT_ACT,
    webhook_failing: ProblemKind.WEBHOOK_FAILING,
    job_failing: ProblemKind.JOB_FAILING,
    commits_missed: ProblemKind.COMMITS_MISSED,
    # The scene is the last one, because a worker counts as alive for a minute after its call.
    group_without_worker: ProblemKind.GROUP_WITHOUT_WORKER,
    worker_lost: ProblemKind.WORKER_LOST,
}
