"""Tests advice about settings: computed in the background, applied, and taken back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from jobs.contract import BucketIndex, WriterEngine
from service.catalog import commit_store, sample_store, snapshot_store, table_store
from service.catalog.registration import Writers
from service.catalog.sample import Sample
from service.db import schema
from service.db.engine import reading, writing
from service.lake.commit import Commit
from service.lake.snapshot import PartitionState, Since, TableSnapshot, Totals
from service.lake.table import TableType
from service.model.clock import utc_now
from service.model.storage_errors import ReadTimedOutError
from service.policies import policy_registry
from service.simulation import advice_store, adviser, index_choice
from service.simulation.advice import Advice, AdviceState, worse
from service.simulation.fleet import Fleet
from tests.integration.control_plane.command_line import serving_command_line
from tests.integration.control_plane.planning import Service, save_poll
from tests.unit.control_plane.past_fleet import cost

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from fastapi.testclient import TestClient

    from service.policies.policy import Policy
    from tests.integration.control_plane.conftest import FakeClock

MIB, TABLE = 1024**2, "tbl_1"


@pytest.fixture
def service(engine: sa.Engine, clock: FakeClock) -> Service:
    found = Service(engine, clock)
    found.register(TABLE)
    return found


def written(service: Service, table_id: str = TABLE, *, hours: int = 72, size: int = MIB) -> None:
    """Records a commit every ten minutes until now, and a poll."""
    now = service.clock()
    times = [now - timedelta(minutes=10 * each) for each in range(6 * hours, 0, -1)]
    commits = [
        Commit(table_id, f"{at:%Y%m%d%H%M%S}000", "deltacommit", None, at, at, "UPSERT", 9, 0, size, file_groups=4)
        for at in times
    ]
    with writing(service.engine) as connection:
        commit_store.record(connection, commits, now)
        save_poll(connection, snapshot_at(table_id, now))


def snapshot_at(table_id: str, now: datetime, log_bytes: int = MIB) -> TableSnapshot:
    files = PartitionState("", file_groups=8, base_files=8, base_bytes=4096 * MIB, log_bytes=log_bytes)
    return TableSnapshot(
        *(table_id, now, TableType.MERGE_ON_READ, (files,)),
        last_commit_at=now,
        since_compaction=Since(2),
        totals=Totals.of([files]),
    )


@pytest.fixture(autouse=True)
def _learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cost model has learned from jobs that have ended."""
    monkeypatch.setattr(adviser, "learned", lambda _: cost)


def compute(service: Service) -> None:
    def write(table_id: str, now: datetime) -> Advice:
        with reading(service.engine) as connection:
            return adviser.computed(connection, table_id, now, Fleet())

    adviser.run_once(service.database, write)


def advice(service: Service, table_id: str = TABLE) -> Advice:
    with reading(service.engine) as connection:
        found = advice_store.find(connection, table_id)
    assert found is not None
    return found


def policy(service: Service, table_id: str = TABLE) -> Policy:
    with reading(service.engine) as connection:
        return policy_registry.levels_of(connection, table_id)[0].policy


def set_policy(service: Service, **settings: Any) -> None:
    policy_registry.put_table(service.engine, service.clock, TABLE, settings)


def sampled(service: Service, log_bytes: int) -> None:
    """Records what polls have found in the last hours."""
    with writing(service.engine) as connection:
        for hours in range(12):
            at = service.clock() - timedelta(hours=hours)
            sample = replace(Sample.of(snapshot_at(TABLE, at, log_bytes)), delta_commits=1)
            sample_store.record(connection, {TABLE: sample})


@pytest.mark.mostly_sqlite
def test_the_cheapest_setting_that_keeps_reads_cheap_is_advised_and_applied(service: Service) -> None:
    written(service)
    compute(service)
    found = advice(service)
    assert found.state is AdviceState.OPEN
    assert (found.setting, found.before) == ("compaction.commits", 5)
    assert found.because.startswith(f"compaction every {found.after} commits instead of 5: -")
    overheads = [found.figures[name] for name in ("new_overhead", "now_overhead")]
    assert found.because.endswith("GB-hours, read overhead {:.2f} instead of {:.2f}".format(*overheads))
    assert found.figures["new_overhead"] <= 1.2
    assert found.figures["new_seconds"] < 0.9 * found.figures["now_seconds"]
    # The advice is not computed again for a day.
    compute(service)
    assert advice(service) == found
    assert policy(service).compaction.commits == 5
    applied = adviser.apply(service.database, TABLE)
    assert (applied.state, applied.own_before) == (AdviceState.APPLIED, None)
    assert policy(service).compaction.commits == found.after
    with pytest.raises(adviser.AdviceOutdatedError):
        adviser.apply(service.database, TABLE)


@pytest.mark.mostly_sqlite
def test_advice_is_taken_back_when_the_outcome_is_worse_and_does_not_come_again(
    service: Service, clock: FakeClock
) -> None:
    set_policy(service, advice={"mode": "auto"}, compaction={"commits": 5, "enabled": True})
    written(service)
    compute(service)
    applied = advice(service)
    assert applied.state is AdviceState.APPLIED
    assert policy(service).compaction.commits == applied.after
    # The writes burst: logs are as large as half of the table.
    clock.advance(12 * 3600)
    sampled(service, 2048 * MIB)
    compute(service)
    taken = advice(service)
    assert taken.state is AdviceState.TAKEN_BACK
    assert taken.because.startswith("taken back: the read overhead is ")
    assert policy(service).compaction.commits == 5
    events = [each for each in published_types(service) if each.startswith("advice.")]
    assert events == ["advice.applied", "advice.taken_back"]
    # The service does not apply the same advice again for a month.
    for _ in range(3):
        clock.advance(4 * 86_400)
        written(service, hours=30)
        compute(service)
    assert advice(service).state is AdviceState.TAKEN_BACK
    assert policy(service).compaction.commits == 5


def published_types(service: Service) -> list[str]:
    with reading(service.engine) as connection:
        return list(connection.execute(sa.select(schema.events.c.type).order_by(schema.events.c.seq)).scalars())


@pytest.mark.mostly_sqlite
def test_advice_with_the_foreseen_outcome_is_kept_and_a_setting_that_a_person_changed_stays(
    service: Service, clock: FakeClock
) -> None:
    written(service)
    compute(service)
    adviser.apply(service.database, TABLE)
    clock.advance(12 * 3600)
    sampled(service, MIB)
    compute(service)
    assert advice(service).state is AdviceState.APPLIED
    clock.advance(7 * 86_400)
    compute(service)
    assert advice(service).state is AdviceState.KEPT
    service.register("tbl_2")
    written(service, "tbl_2")
    compute(service)
    adviser.apply(service.database, "tbl_2")
    policy_registry.put_table(service.engine, clock, "tbl_2", {"compaction": {"commits": 7}})
    clock.advance(12 * 3600)
    compute(service)
    assert advice(service, "tbl_2").state is AdviceState.DISMISSED
    assert policy(service, "tbl_2").compaction.commits == 7


@pytest.mark.mostly_sqlite
@pytest.mark.parametrize("days", [0.5, 8])
def test_advice_that_nobody_asked_for_gives_way_to_a_later_change_of_a_pattern(
    service: Service, clock: FakeClock, days: float
) -> None:
    def set_pattern(pattern: str, **settings: Any) -> None:
        policy_registry.put_pattern(service.engine, clock, pattern, precedence=0, settings=settings)

    set_pattern("tbl_*", advice={"mode": "auto"})
    set_pattern("tbl_1", compaction={"commits": 4})
    written(service)
    compute(service)
    applied = advice(service)
    assert (applied.state, applied.before) == (AdviceState.APPLIED, 4)
    clock.advance(days * 86_400)
    sampled(service, MIB)
    compute(service)
    assert advice(service).state is (AdviceState.KEPT if days > 7 else AdviceState.APPLIED)
    set_pattern("tbl_1", compaction={"commits": 3})
    assert policy(service).compaction.commits == applied.after
    clock.advance(86_401)
    compute(service)
    assert advice(service).state is AdviceState.TAKEN_BACK
    assert advice(service).because.startswith("taken back: the policy of a pattern sets compaction.commits to 3 now (")
    assert policy(service).compaction.commits == 3
    # What a person has applied is the table's own, and stays.
    set_pattern("tbl_*", advice={"mode": "suggest"})
    service.register("tbl_2")
    written(service, "tbl_2")
    compute(service)
    applied = adviser.apply(service.database, "tbl_2")
    set_pattern("tbl_*", compaction={"commits": 3})
    clock.advance(86_401)
    compute(service)
    assert policy(service, "tbl_2").compaction.commits == applied.after


@pytest.mark.mostly_sqlite
def test_a_table_without_advice_has_the_reason(service: Service, clock: FakeClock) -> None:
    written(service, hours=2)

    def fail_if_simulated(table_id: str, now: datetime) -> Advice:
        raise AssertionError(f"{table_id} was simulated at {now}")

    adviser.run_once(service.database, fail_if_simulated)
    assert advice(service).because == "too little is known: 12 commits; 30 in more than a day are needed"
    written(service)
    set_policy(service, objective={"read_overhead": 1.1})
    clock.advance(86_401)
    compute(service)
    assert "the objective says when logs are compacted; " in advice(service).because
    set_policy(service, compaction={"cron": "0 3 * * *"})
    clock.advance(86_401)
    compute(service)
    assert "compactions do not start by the number of commits alone; " in advice(service).because


@pytest.mark.mostly_sqlite
def test_a_round_is_bounded_and_no_failure_keeps_other_tables_waiting(service: Service, clock: FakeClock) -> None:
    for number in range(2, 9):
        service.register(f"tbl_{number}")
    for number in range(1, 9):
        written(service, f"tbl_{number}", hours=50)
    asked: list[str] = []

    def write(table_id: str, now: datetime) -> Advice:
        asked.append(table_id)
        if table_id == "tbl_1":
            raise ReadTimedOutError("too long")
        if table_id == "tbl_2":
            raise ValueError("a damaged row")
        return Advice(table_id, now, AdviceState.NONE, "nothing")

    for _ in range(4):
        adviser.run_once(service.database, write)
    assert sorted(asked) == [f"tbl_{number}" for number in range(1, 9)]
    assert advice(service, "tbl_2").because == "it could not be computed"
    # A clock that steps back makes everything due again, and three tables a round at most.
    clock.advance(-86_400)
    del asked[:]
    adviser.run_once(service.database, write)
    assert len(asked) == 3


def with_stable_files(service: Service, *, now: datetime, small_files: int = 0) -> None:
    """Records a poll of a table of 400 files, of which a commit changes a few."""
    files = PartitionState(
        "", file_groups=400, base_files=400, base_bytes=4096 * MIB, small_files=small_files, freed_files=9
    )
    snapshot = TableSnapshot(
        *(TABLE, now, TableType.COPY_ON_WRITE, (files,)),
        last_commit_at=now,
        totals=Totals.of([files]),
        small_file_bytes=100 * MIB,
    )
    with writing(service.engine) as connection:
        save_poll(connection, snapshot)
        sample_store.record(connection, {TABLE: Sample.of(snapshot)})


@pytest.mark.mostly_sqlite
def test_old_versions_that_take_little_are_cleaned_less_often(service: Service, clock: FakeClock) -> None:
    set_policy(service, audit={"enabled": False})
    written(service)
    with_stable_files(service, now=clock())
    compute(service)
    found = advice(service)
    assert (found.setting, found.before) == ("cleaning.commits", 10), found.because
    assert found.because.startswith(f"cleaning every {found.after} commits instead of 10: -")
    assert found.figures["new_overhead"] <= 1.1 * found.figures["now_overhead"]
    assert found.figures["new_jobs"] < found.figures["now_jobs"]
    applied = adviser.apply(service.database, TABLE)
    assert policy(service).cleaning.commits == applied.after
    # Old versions pile up, so that the setting goes back.
    clock.advance(12 * 3600)
    with writing(service.engine) as connection:
        for hours in range(12):
            sample = Sample.of(snapshot_at(TABLE, clock() - timedelta(hours=hours)))
            sample_store.record(connection, {TABLE: replace(sample, freed_bytes=9000 * MIB)})
    compute(service)
    assert advice(service).because.startswith("taken back: the storage overhead is ")
    assert policy(service).cleaning.commits == 10


@pytest.mark.mostly_sqlite
def test_small_files_are_merged_more_often_where_reads_pay_for_them(service: Service, clock: FakeClock) -> None:
    set_policy(
        service,
        clustering={"enabled": True, "small_file_share": 0.01, "min_interval_seconds": 2 * 86_400},
        cleaning={"enabled": False},
        audit={"enabled": False},
        advice={"read_overhead": 1.1},
    )
    written(service)
    for hours in range(71, -1, -1):
        with_stable_files(service, now=clock() - timedelta(hours=hours), small_files=4 * (72 - hours))
    compute(service)
    found = advice(service)
    assert (found.setting, found.before) == ("clustering.min_interval_seconds", 2 * 86_400), found.because
    assert (found.after or 0) < 2 * 86_400, found.because
    assert found.figures["new_overhead"] < found.figures["now_overhead"]
    misses = found.figures["new_overhead"] > 1.1
    assert found.because.endswith("; no setting reaches 1.1") == misses
    # Nobody knows what reads save by the order of rows.
    set_policy(service, clustering={"enabled": True, "sort_by": ["city"]}, cleaning={"enabled": False})
    clock.advance(86_401)
    compute(service)
    assert "what reads save by the order of rows" in advice(service).because


def test_figures_that_are_damaged_take_the_advice_back() -> None:
    assert worse({}, 1.0, 0.0) == "the expected outcome is not known any more"


def test_advice_is_shown_applied_and_refused_over_rest(
    client: TestClient, table_id: str, sqlite: sa.Engine, clock: FakeClock
) -> None:
    path = f"/v1/tables/{table_id}/advice"
    found = client.get(path)
    assert (found.status_code, found.json()["state"], found.json()["buckets"]) == (200, "none", None)
    refused = client.put(path, json={"state": "applied"})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/advice-outdated")
    assert client.put(path, json={"state": "open"}).status_code == 422
    figures = {"now_gb_hours": 1.2, "new_gb_hours": 0.5}
    with writing(sqlite) as connection:
        given = Advice(
            *(table_id, clock(), AdviceState.OPEN, "compaction every 12 commits", "compaction.commits", 5, 12),
            figures=figures,
        )
        advice_store.put(connection, given)
    listed = client.get("/v1/advice").json()["items"]
    assert [(each["table_id"], each["after"], each["figures"]) for each in listed] == [(table_id, 12, figures)]
    stale = client.put(path, json={"state": "applied"}, headers={"If-Match": '"0"'})
    assert stale.status_code == 412
    # The setting has another value than the one that the advice is about.
    client.put(f"/v1/tables/{table_id}/policy", json={"compaction": {"commits": 6}})
    assert client.put(path, json={"state": "applied"}).status_code == 409
    client.put(f"/v1/tables/{table_id}/policy", json={"compaction": {"commits": 5}, "priority": 2})
    seen = {"If-Match": client.get(path).headers["ETag"]}
    applied = client.put(path, json={"state": "applied"}, headers=seen)
    assert (applied.status_code, applied.json()["state"]) == (200, "applied")
    effective = client.get(f"/v1/tables/{table_id}/policy").json()["policy"]
    assert (effective["compaction"]["commits"], effective["priority"]) == (12, 2)
    assert client.get("/v1/advice").json()["items"] == []
    assert len(client.get("/v1/advice?state=applied").json()["items"]) == 1


def test_a_table_whose_upserts_are_scattered_is_shown_the_job_that_gives_it_buckets(
    client: TestClient, table_id: str, sqlite: sa.Engine, clock: FakeClock
) -> None:
    path = f"/v1/tables/{table_id}/advice"
    with writing(sqlite) as connection:
        table_store.change(connection, table_store.get(connection, table_id).evolve(index=None, profile={}))
        commit_store.record(connection, scattered(table_id, clock()), clock())
        # A partition whose files are gone does not count.
        gone = PartitionState("dt=1", freed_files=1)
        found = snapshot_at(table_id, clock())
        save_poll(connection, replace(found, partitions=(*found.partitions, gone)))
    found = client.get(path).json()["index"]
    assert (found["kind"], found["upserts"], found["touched"]) == ("bucket_index", 12, 0.5)
    for changes in (
        {"profile": {"bucket_layout": {"kind": "simple"}}},
        {"writers": Writers(engines=(WriterEngine.FLINK,))},
        {"index": BucketIndex(4, ("id",))},
    ):
        with writing(sqlite) as connection:
            plain = table_store.get(connection, table_id).evolve(index=None, profile={}, writers=Writers())
            table_store.change(connection, plain.evolve(**changes))
        assert client.get(path).json()["index"] is None, changes
    with writing(sqlite) as connection:
        table_store.change(connection, plain.evolve(profile={"metadata_partitions": ["files", "record_index"]}))
    assert client.get(path).json()["index"]["kind"] is None


def test_the_latest_upserts_of_a_week_decide_about_the_index(service: Service) -> None:
    written(service)
    with reading(service.engine) as connection:
        table, stored = table_store.get(connection, TABLE), snapshot_store.find(connection, TABLE)
        assert stored is not None
        found = index_choice.of_table(connection, table, stored.snapshot, service.clock())
        assert found is not None
        assert (found.kind, found.upserts, found.touched) == ("bucket_index", index_choice.MOST_UPSERTS, 0.5)
        later = service.clock() + timedelta(days=7, minutes=-50)
        assert index_choice.of_table(connection, table, stored.snapshot, later) is None


def scattered(table_id: str, now: datetime) -> list[Commit]:
    """Returns twelve upserts of this week that touch four of eight file groups, one upsert of the week before, and
    inserts that touch one file group each."""
    ages = [*(timedelta(hours=each) for each in range(24)), timedelta(days=8)]
    return [
        Commit(
            table_id,
            f"{now - age:%Y%m%d%H%M%S}000",
            "deltacommit",
            None,
            now - age,
            now - age,
            "INSERT" if number % 2 else "UPSERT",
            *(9, 0, MIB, ("",)),
            file_groups=1 if number % 2 else 4,
        )
        for number, age in enumerate(ages)
    ]


def test_the_command_line_shows_applies_and_dismisses_advice(tmp_path: Path) -> None:
    with serving_command_line(tmp_path) as cli:
        orders, trips = cli.table("orders"), cli.polled_table("trips")
        assert "There is no advice" in cli.run("policy", "advice").stderr
        assert "it has not been computed yet" in cli.run("policy", "advice", "orders").stdout
        with writing(cli.serving.engine) as connection:
            for table_id in (orders, trips):
                given = Advice(
                    *(
                        table_id,
                        utc_now(),
                        AdviceState.OPEN,
                        "compaction every 12 commits",
                        "compaction.commits",
                        5,
                        12,
                    ),
                    figures={"now_gb_hours": 1.2, "new_gb_hours": 0.5},
                )
                advice_store.put(connection, given)
        listed = cli.run("policy", "advice").stdout
        assert listed.count("compaction every 12 commits") == 2
        assert "Name the TABLE" in cli.run("policy", "advice", "--apply", code=2).stderr
        assert "either" in cli.run("policy", "advice", "orders", "--apply", "--dismiss", code=2).stderr

        assert "Applied: compaction every 12 commits" in cli.run("policy", "advice", "orders", "--apply").stdout
        assert "Dismissed" in cli.run("policy", "advice", "trips", "--dismiss").stdout

        assert cli.json("policy", "show", "orders")["policy"]["compaction"]["commits"] == 12
        assert cli.json("policy", "show", "trips")["policy"]["compaction"]["commits"] == 5
        assert cli.json("policy", "advice")["items"] == []
        assert cli.json("policy", "advice", "trips")["state"] == "dismissed"
        with writing(cli.serving.engine) as connection:
            plain = table_store.get(connection, trips).evolve(index=None, profile={}, writers=Writers())
            table_store.change(connection, plain)
            commit_store.record(connection, scattered(trips, utc_now()), utc_now())
            save_poll(connection, snapshot_at(trips, utc_now()))
        shown = cli.run("policy", "advice", "trips")
        assert "a bucket index would need no look-ups" in shown.stdout
        assert "jobs run bucket_index trips action=adopt --dry-run" in shown.stderr
        cli.run("policy", "advice", "orders", "--apply", code=1)
