"""Tests each problem of a table: the service's own functions cause it in a real database, it is listed, and it
disappears."""

from __future__ import annotations

import shutil

from jobs.contract import Outcome, Result
from service.db.engine import writing
from service.queue import job_store
from tests.integration.control_plane.operated import DAY, GIB, HOUR, MIB, Operated
from tests.integration.control_plane.watching import A, B
from tests.support.pages import pages
from tests.support.small_table import base_file, bucket_id, log_file

CLUSTERING_ON = {"clustering": {"enabled": True}}


def test_a_table_whose_folder_has_vanished_is_unreadable_until_it_is_back(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    operated.poll()
    assert operated.problems() == []
    away = table.files.base.rename(operated.folder / "away")
    operated.poll()
    found = operated.one("table-unreadable")
    since = operated.clock().isoformat().replace("+00:00", "Z")
    assert (found["severity"], found["since"], found["table_id"]) == ("critical", since, table.id)
    assert found["about"] == {"type": "table", "id": table.id, "name": "t"}
    assert found["evidence"]["error"] == "path-not-found"
    assert str(table.files.base) in found["detail"]
    operated.poll(2 * HOUR)
    again = operated.one("table-unreadable")
    assert (again["since"], again["id"], again["evidence"]["failures"]) == (since, found["id"], 2)
    away.rename(table.files.base)
    operated.poll(2 * HOUR)
    assert operated.problems() == []


def test_a_table_with_a_damaged_timeline_is_unreadable_until_it_is_put_right(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    operated.poll()
    instant = table.instant()
    table.files.complete(instant, "deltacommit", b"no avro")
    for _ in range(3):
        operated.poll(2 * HOUR)
    found = operated.one("table-unreadable")
    assert f"{instant}" in found["detail"]
    assert found["command"] == "groundskeeper jobs run diagnosis tbl_t"
    assert "storage is up" not in found["remedy"]
    job = operated.press(found, 202)
    operated.call("POST", f"/v1/jobs/{job['id']}/cancel", 202)
    next(table.files.timeline.glob(f"{instant}_*")).unlink()
    operated.poll(2 * HOUR)
    assert operated.problems() == []


def test_a_table_that_nobody_polls_is_listed_until_it_is_polled(operated: Operated) -> None:
    operated.table()
    operated.poll()
    operated.clock.advance(HOUR)
    assert operated.one("table-not-polled")["evidence"]["overdue_seconds"] > 3000
    operated.poll()
    assert operated.problems() == []


def test_commits_that_were_missed_are_listed_for_a_day(operated: Operated) -> None:
    table = operated.table(version=6)
    first = table.commit()
    operated.poll()
    gone = table.commit()
    table.commit()
    table.files.archive(first, gone)
    shutil.rmtree(table.files.base / ".hoodie" / "archived")
    operated.poll()
    assert operated.one("commits-missed")["since"] == operated.clock().isoformat().replace("+00:00", "Z")
    operated.poll(DAY + 1)
    assert operated.problems() == []


def test_commits_that_vanish_from_the_timeline_are_critical_until_they_are_back(operated: Operated) -> None:
    """Commits that were rolled back or archived have not vanished."""
    table = operated.table()
    instants = [table.commit({base_file(A, str(number)): 10}) for number in range(8)]
    operated.poll()
    table.files.rollback(table.instant(), instants[6])
    table.files.archive(*instants[:2])
    operated.poll()
    table.commit()
    operated.poll(HOUR)
    assert operated.problems() == []
    lost = [path for each in (instants[3], instants[4]) for path in table.files.timeline.glob(f"{each}*")]
    contents = {path: path.read_bytes() for path in lost}
    for path in lost:
        path.unlink()
    operated.poll()
    assert operated.problems() == []
    operated.poll(HOUR)
    found = operated.one("commits-vanished")
    assert (found["severity"], found["evidence"]["instants"]) == ("critical", instants[3:5])
    since = found["since"]
    table.commit()
    operated.poll()
    assert operated.one("commits-vanished")["since"] == since
    for path, content in contents.items():
        path.write_bytes(content)
    operated.poll()
    assert operated.problems() == []


def test_stale_writes_are_critical_until_they_are_undone(operated: Operated) -> None:
    table = operated.table(buckets=2)
    table.commit({base_file(A, "1"): 10, base_file(B, "1"): 10})
    operated.poll()
    table.commit(
        {base_file(bucket_id(0, tail=2), "2"): 10},
        action="replacecommit",
        operation="CLUSTER",
        replaced={"p": [A]},
    )
    stale = table.commit({log_file(A, "1"): 10}, rows=7)
    operated.poll()
    found = operated.one("incident-standing")
    assert (found["severity"], found["evidence"]["instants"]) == ("critical", [stale])
    assert found["evidence"] | {"incident_kind": "stale-write", "open": 1} == found["evidence"]
    job = operated.press(found, 202)
    assert (job["kind"], job["params"]["instants"]) == ("repair", [stale])
    table.files.rollback(table.instant(), stale, ("p",))
    operated.poll()
    assert operated.kinds() == []


def test_a_dead_writer_is_listed_after_an_hour_until_its_write_is_rolled_back(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    dead = table.instant()
    table.files.begin(dead, heartbeat=operated.clock().timestamp())
    operated.poll()
    operated.poll(1800)
    assert operated.problems() == []
    operated.poll(HOUR)
    found = operated.one("dead-writer")
    assert found["evidence"]["instants"] == [dead]
    assert operated.press(found, 202)["kind"] == "cleaning"
    table.files.rollback(table.instant(), dead)
    operated.poll()
    assert operated.kinds() == []


def test_a_replacecommit_that_nobody_has_begun_is_listed_after_an_hour(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    requested = table.instant()
    table.files.schedule(requested, "replacecommit")
    operated.poll()
    operated.poll(1800)
    assert operated.problems() == []
    operated.poll(HOUR)
    found = operated.one("dead-writer")
    assert found["evidence"] == {"instants": [requested], "writes": 1}
    assert found["detail"].startswith(f"{requested} was requested ")
    assert operated.press(found, 202)["kind"] == "cleaning"


def test_a_plan_is_stuck_after_the_time_of_the_policy_until_it_is_executed(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    plan = table.instant()
    table.files.schedule(plan, "compaction")
    operated.poll()
    operated.poll(5 * HOUR)
    assert operated.problems() == []
    operated.poll(2 * HOUR)
    found = operated.one("plan-stuck")
    assert found["evidence"] == {
        "service": "compaction",
        "plans": 1,
        "instants": [plan],
        "allowed_seconds": 6 * 3600,
    }
    assert operated.press(found, 202)["kind"] == "compaction"
    table.commit({base_file(A, plan): 10}, instant=plan, action="commit", operation="COMPACT")
    operated.poll()
    assert "plan-stuck" not in operated.kinds()


def test_a_stuck_plan_of_a_table_that_flink_writes_is_probably_one_of_flink(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    aux = table.files.base / ".hoodie" / ".aux"
    aux.mkdir(exist_ok=True)
    (aux / "view_storage_conf").touch()
    plan = table.instant()
    table.files.schedule(plan, "compaction")
    operated.poll()
    operated.poll(7 * HOUR)
    found = operated.one("plan-stuck")
    assert found["detail"].endswith(f"(6 h allowed): {plan}. A Flink job has probably made it."), found
    assert "while no Flink job executes compactions of the table" in found["remedy"]
    assert operated.press(found, 202)["kind"] == "compaction"


def test_a_writer_that_compacts_beside_the_policy_is_listed_for_a_day(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    operated.poll()
    ours, first, last = (table.instant() for _ in range(3))
    table.compacted(ours)
    table.commit({base_file(A, ours): 10}, instant=ours, action="commit", operation="COMPACT")
    operated.poll()
    assert operated.kinds() == []
    for instant in (first, last):
        table.commit({base_file(A, instant): 10}, instant=instant, action="commit", operation="COMPACT")
        operated.poll()
    found = operated.one("other-runner")
    assert (found["evidence"]["service"], found["evidence"]["instant"]) == ("compaction", last)
    assert "hoodie.datasource.compaction.async.enable=false" in found["remedy"]
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"compaction": {"enabled": False}})
    assert operated.kinds() == []
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {})
    assert operated.kinds() == ["other-runner"]
    operated.poll(DAY)
    assert operated.kinds() == []


def test_a_clustering_plan_on_a_table_with_buckets_is_to_be_rolled_back(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    plan = table.instant()
    table.files.schedule(plan, "clustering")
    operated.poll()
    operated.poll(7 * HOUR)
    job = operated.press(operated.one("plan-stuck"), 202)
    assert (job["kind"], job["params"]["instant"]) == ("rollback", plan)


def test_compaction_is_behind_at_three_times_the_threshold_until_it_has_run(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    for number in range(13):
        table.commit({log_file(A, "1", number + 1): 10})
    operated.poll()
    assert operated.problems() == []
    table.commit({log_file(A, "1", 14): 10})
    operated.poll()
    found = operated.one("compaction-behind")
    assert found["evidence"] == {"commits": 15, "threshold": 5, "log_bytes": 140, "base_bytes": 10, "enabled": True}
    assert operated.press(found, 202)["kind"] == "compaction"
    plan = table.instant()
    table.files.begin(plan, "compaction")
    table.commit({base_file(A, plan): 10}, instant=plan, action="commit", operation="COMPACT")
    operated.poll()
    assert "compaction-behind" not in operated.kinds()


def test_logs_that_outgrow_the_base_files_count_whatever_the_policy_says(operated: Operated) -> None:
    table = operated.table()
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"compaction": {"enabled": False}})
    table.commit({base_file(A, "1"): MIB})
    table.commit({log_file(A, "1"): GIB})
    operated.poll()
    assert "switched off" in operated.one("compaction-behind")["detail"]


def test_cleaning_is_behind_until_the_old_versions_are_gone(operated: Operated) -> None:
    table = operated.table()
    old = []
    for number in range(1, 31):
        instant = table.instant()
        old.append(base_file(A, instant))
        table.commit({old[-1]: 10}, instant=instant)
        if number == 29:
            operated.poll()
            assert operated.problems() == []
    operated.poll()
    found = operated.one("cleaning-behind")
    assert (found["evidence"]["commits"], found["evidence"]["freed_files"]) == (30, 29)
    assert operated.press(found, 202)["kind"] == "cleaning"
    for name in old[:29]:
        (table.files.base / "p" / name).unlink()
    table.files.clean(table.instant(), ("p",))
    operated.poll()
    assert operated.kinds() == []


def test_the_timeline_is_too_long_until_it_is_archived(operated: Operated) -> None:
    table = operated.table()
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"archival": {"enabled": True, "commits": 10}})
    instants = [table.commit() for _ in range(20)]
    operated.poll()
    assert operated.problems() == []
    table.commit()
    operated.poll()
    found = operated.one("timeline-long")
    assert found["evidence"] == {"timeline_commits": 21, "allowed": 20, "archival_enabled": True}
    assert operated.press(found, 202)["kind"] == "archival"
    table.files.archive(*instants[:15])
    operated.poll()
    assert operated.kinds() == []


def test_the_metadata_table_is_behind_until_it_is_compacted_and_lacks_a_commit_until_that_is_undone(
    operated: Operated,
) -> None:
    table = operated.table()
    for _ in range(2):
        table.commit()
    operated.poll()
    # A metadata table that is built later has none of the commits of before.
    own = table.files.add_metadata_table()
    own.complete("00000000000000000", "deltacommit", b"")
    group = "files-0000-0"

    def commit(number: int) -> None:
        instant = table.instant()
        own.file("files", f".{group}_{instant}.log.1_0-1-1", 10)
        own.complete(instant, "deltacommit", b"")
        table.commit(instant=instant)
        operated.poll(400 if number % 10 == 9 else 1)

    for number in range(30):
        commit(number)
    found = operated.one("metadata-table-behind")
    assert found["evidence"] == {"commits": 31, "allowed": 30, "log_files": 30, "log_bytes": 300, "pending": 0}
    seen = operated.call("GET", f"/v1/tables/{table.id}/snapshot", 200)["metadata_table"]
    assert (seen["commits"], seen["log_files"], seen["missing"]) == (31, 30, [])
    trend = operated.call("GET", f"/v1/tables/{table.id}/history", 200)["items"]
    figures = [(each["metadata_commits"], each["metadata_log_files"], each["metadata_bytes"]) for each in trend]
    assert figures == [(None, None, None), *((number + 1, number, number * 10) for number in (10, 20, 30))], figures
    assert operated.press(found, 202)["params"]["action"] == "compact"
    compaction = table.instant()
    own.file("files", f"{group}_0-1-1_{compaction}.hfile", 100)
    own.complete(compaction, "commit", b"")
    operated.worker.report(operated.worker.must_lease(), Result(Outcome.SUCCEEDED))
    assert operated.kinds() == []

    lacking = table.commit()
    operated.poll(400)
    found = operated.one("metadata-table-incomplete")
    assert found["evidence"] == {"instants": [lacking]}
    own.complete(lacking, "deltacommit", b"")
    commit(9)
    assert operated.kinds() == []
    # The table is also polled if its metadata table cannot be read.
    own.complete("9" * 40, "deltacommit", b"")
    commit(9)
    assert operated.kinds() == []
    assert operated.call("GET", f"/v1/tables/{table.id}/snapshot", 200)["metadata_table"] is None


def test_a_bucket_is_too_large_until_it_has_shrunk(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 4 * GIB, base_file(B, "1"): 4 * GIB})
    operated.poll()
    found = operated.one("bucket-too-large")
    assert found["evidence"] == {
        "partition": "p",
        "bucket": 0,
        "bucket_bytes": 4 * GIB,
        "num_buckets": 4,
        "allowed_bytes": 3 * GIB,
    }
    job = operated.press(found, 202)
    assert (job["kind"], job["params"]["factor"]) == ("bucket_expansion", 2)
    table.commit({base_file(A, "2"): GIB, base_file(B, "2"): GIB})
    operated.poll()
    assert operated.kinds(severity=["critical", "warning"]) == []


def test_uneven_buckets_are_listed_until_they_are_even(operated: Operated) -> None:
    table = operated.table(buckets=8)
    table.commit({base_file(A, "1"): GIB, base_file(B, "1"): MIB})
    operated.poll()
    found = operated.one("buckets-skewed")
    assert (found["severity"], found["evidence"]["skew"]) == ("notice", 7.99)
    table.commit({base_file(bucket_id(number), "2"): GIB for number in range(1, 8)})
    operated.poll()
    assert operated.kinds() == []


def test_small_files_are_listed_until_they_are_merged(operated: Operated) -> None:
    table = operated.table(buckets=0, table_type="COPY_ON_WRITE")
    small = [bucket_id(0, tail=number) for number in range(1, 102)]
    table.commit({base_file(file_id, "1"): 10 for file_id in small}, action="commit")
    operated.poll()
    found = operated.one("small-files")
    assert (found["evidence"]["small_files"], found["evidence"]["base_files"]) == (101, 101)
    assert operated.press(found, 202)["kind"] == "clustering"
    merged = {base_file(bucket_id(0, tail=200), "2"): 200 * MIB}
    table.commit(merged, action="replacecommit", operation="CLUSTER", replaced={"p": small})
    operated.poll()
    assert operated.kinds() == []


def test_a_policy_that_cannot_act_is_listed_at_once_until_it_can(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    operated.poll()
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, CLUSTERING_ON)
    found = operated.one("policy-cannot-act")
    assert found["evidence"]["code"] == "no-sort-columns"
    sorted_by = {"clustering": {"enabled": True, "sort_by": ["city"]}}
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, sorted_by)
    assert operated.problems() == []


def test_a_plan_that_no_policy_may_execute_is_one_of_a_policy_that_cannot_act(operated: Operated) -> None:
    table = operated.table()
    table.commit({base_file(A, "1"): 10})
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"clustering": {"enabled": True, "sort_by": ["city"]}})
    plan = table.instant()
    table.files.schedule(plan, "clustering")
    operated.poll()
    operated.service.plan()
    assert operated.one("policy-cannot-act")["evidence"]["code"] == "plan-unusable"
    table.files.rollback(table.instant(), plan)
    operated.poll()
    operated.service.plan()
    assert operated.problems() == []


def test_a_job_that_is_due_for_hours_and_does_not_start_is_listed_until_it_may(operated: Operated) -> None:
    table = operated.table()
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"paused": True})
    table.commit({base_file(A, "1"): 10})
    for number in range(5):
        table.commit({log_file(A, "1", number + 1): 10})
    operated.poll()
    operated.service.plan()
    operated.poll(7 * HOUR)
    operated.service.plan()
    found = operated.one("jobs-held-up")
    assert (found["evidence"]["service"], found["evidence"]["code"]) == ("compaction", "paused")
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"paused": False})
    operated.service.plan()
    assert operated.kinds() == []


def test_a_warning_of_a_policy_is_listed_while_it_holds(operated: Operated) -> None:
    table = operated.table()
    instant = table.commit({base_file(A, "1"): 10})
    operated.poll()
    # The table's daily job would wait for a worker.
    operated.call("PUT", f"/v1/tables/{table.id}/policy", 200, {"audit": {"enabled": False}})
    consumer = f"/v1/tables/{table.id}/consumers/warehouse"
    operated.call("PUT", consumer, 201, {"instant": instant})
    operated.poll(8 * DAY)
    operated.service.plan()
    found = operated.one("policy-warning")
    assert (found["severity"], found["evidence"]["service"]) == ("notice", "cleaning")
    assert "warehouse" in found["detail"]
    operated.call("PUT", consumer, 200, {"instant": instant})
    operated.poll()
    operated.clock.advance(HOUR + 1)
    operated.poll()
    operated.service.plan()
    assert operated.problems() == []


def test_problems_are_filtered_and_paged_the_most_serious_first(operated: Operated) -> None:
    for number in range(3):
        table = operated.table(f"t{number}", buckets=8)
        table.commit({base_file(A, "1"): GIB, base_file(B, "1"): MIB})
    operated.poll()
    (operated.folder / "t1").rename(operated.folder / "away")
    operated.poll()
    operated.call("PUT", "/v1/tables/tbl_t2/policy", 200, CLUSTERING_ON)
    ordered = operated.problems()
    assert [each["severity"] for each in ordered] == ["critical", "warning", "notice", "notice"]
    whole = operated.client.get("/v1/problems").json()
    assert whole["counts"] == {"critical": 1, "warning": 1, "notice": 2}
    seen: list[str] = []
    for page in pages(operated.client, "/v1/problems", limit=1):
        assert page["counts"] == whole["counts"]
        seen += [each["id"] for each in page["items"]]
    assert seen == [each["id"] for each in ordered]
    assert operated.kinds(table_id="tbl_t2") == ["policy-cannot-act", "buckets-skewed"]
    assert operated.kinds(severity=["critical", "warning"]) == ["table-unreadable", "policy-cannot-act"]
    assert operated.kinds(kind="buckets-skewed", table_id="tbl_t0") == ["buckets-skewed"]
    assert operated.kinds(table_id="tbl_none") == []
    since = sorted(each["since"] for each in ordered)
    assert since[0] < since[-1]
    for bound in (*since, "2999-01-01T00:00:00Z"):
        assert operated.problems(since=bound) == [each for each in ordered if each["since"] >= bound]
        assert operated.problems(until=bound) == [each for each in ordered if each["since"] < bound]
    later = operated.client.get("/v1/problems", params={"since": since[-1]}).json()
    assert sum(later["counts"].values()) == len(later["items"]) < 4
    for refused in (
        {"kind": "none"},
        {"severity": "bad"},
        {"limit": 0},
        {"cursor": "x"},
        {"since": "x"},
        {"cursor": "W10"},
    ):
        assert operated.client.get("/v1/problems", params=refused).status_code == 422


def test_the_tables_own_problems_disappear_with_the_table(operated: Operated) -> None:
    table = operated.table(buckets=8)
    table.commit({base_file(A, "1"): GIB})
    operated.poll()
    assert operated.kinds() == ["buckets-skewed"]
    operated.call("DELETE", f"/v1/tables/{table.id}", 204)
    assert operated.problems() == []
    with writing(operated.engine) as connection:
        assert job_store.begun(connection) == []
