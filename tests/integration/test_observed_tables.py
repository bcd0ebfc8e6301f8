"""Polls of real tables find the same as Hudi and hudi-rs after each step."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from jobs.contract import BucketIndex, JobKind, WriterEngine
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from service.catalog import commit_store, consumer_store, snapshot_store, table_store, watch_store
from service.catalog.consumer import Consumer
from service.catalog.registration import Registration, Writers
from service.db.engine import reading, writing
from service.db.page import PageRequest
from service.incidents import store as incident_store
from service.lake.file_slices import read_snapshot
from service.lake.storage import open_storage
from service.lake.table_config import read_table_config
from service.lake.timeline import read_timeline
from service.model.clock import utc_now
from service.observation.lake_access import LakeAccess
from service.observation.poll import poll_table
from service.observation.table_read import TableReader
from service.outcome import read_store
from service.outcome.reads import ReadSource
from service.policies import policy_registry
from service.registration import registry
from service.registration.detection import examine
from service.scheduling.decision import Run, Skip
from service.scheduling.decision_inputs import inputs_of
from tests.integration import tables as real
from tests.integration.control_plane.databases import open_sqlite
from tests.integration.independent import slices_by_hudi_rs
from tests.integration.run import hudi_table, run_job

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from service.lake.file_slices import FileSlice
    from service.lake.snapshot import PartitionDetail
    from service.lake.timeline import Timeline
    from service.scheduling.decision import Proposal

INDEX = BucketIndex(2, ("id",))
SMALL = 100 * 1024 * 1024
TYPES = ("MERGE_ON_READ", "COPY_ON_WRITE")
NOT_DECLARED = Writers()


class Observer:
    """Polls one real table, and compares each poll with Hudi's file system view in the JVM and with hudi-rs."""

    def __init__(
        self, spark: SparkSession, folder: Path, base: Path, index: BucketIndex | None, writers: Writers = NOT_DECLARED
    ) -> None:
        self.base = base
        self.table = hudi_table(spark, base, index)
        self.engine = open_sqlite(folder / f"{base.name}.db")
        early = datetime(2020, 1, 1, tzinfo=UTC)
        with writing(self.engine) as connection:
            table = Registration("t", str(base), "t", early, early, index=index, writers=writers)
            table_store.register(connection, table)

    def poll(self) -> list[str]:
        """Polls, and returns the actions or operations of the new commits, in the order of their completion."""
        with reading(self.engine) as connection:
            watch = watch_store.get(connection, "t")
        found = poll_table(self.engine, utc_now, watch, TableReader(self.engine, {}, SMALL))
        assert self._partitions() == self._partitions_by_hudi()
        # hudi-rs leaves out file groups that have no base file yet.
        assert [each for each in self._read_afresh() if each.base_file] == slices_by_hudi_rs(self.base)
        return [commit.operation or commit.action for commit in found.commits]

    def poll_everything(self) -> None:
        """Polls without the remembered files, and asserts that the result is the same."""
        before = self._details()
        with writing(self.engine) as connection:
            snapshot_store.forget(connection, "t")
            watch_store.start_over(connection, "t", utc_now())
        assert self.poll() == []
        after = self._details()
        assert {path: detail.state for path, detail in after.items()} == {
            # Only the first poll can count the writes of commits that are archived by now.
            path: dataclasses.replace(detail.state, rows=after[path].state.rows)
            for path, detail in before.items()
        }

    def _partitions(self) -> dict[str, tuple[int, int, int, int]]:
        return {
            path: (s.file_groups, s.base_bytes, s.log_files, s.log_bytes)
            for path, s in ((path, detail.state) for path, detail in self._details().items())
            if s.file_groups
        }

    def _partitions_by_hudi(self) -> dict[str, tuple[int, int, int, int]]:
        found: dict[str, tuple[int, int, int, int]] = {}
        for each in self.table.file_slices():
            groups, base_bytes, logs, log_bytes = found.get(each.partition, (0, 0, 0, 0))
            counted = (base_bytes + each.base_bytes, logs + len(each.log_files), log_bytes + each.log_bytes)
            found[each.partition] = (groups + 1, *counted)
        return found

    def _read_afresh(self) -> list[FileSlice]:
        storage = open_storage(str(self.base), {})
        config = read_table_config(storage)
        return list(read_snapshot(storage, config, read_timeline(storage, config)))

    def _details(self) -> dict[str, PartitionDetail]:
        with reading(self.engine) as connection:
            return snapshot_store.details(connection, "t")

    def timeline(self) -> Timeline:
        storage = open_storage(str(self.base), {})
        return read_timeline(storage, read_table_config(storage))

    def rows(self) -> int | None:
        rows = [detail.state.rows for detail in self._details().values()]
        return None if None in rows else sum(each for each in rows if each is not None)

    def incidents(self) -> dict[str, str]:
        """Returns the states of incidents by their instants."""
        with reading(self.engine) as connection:
            found = incident_store.page(connection, PageRequest(), table_id="t").items
        return {each.instant: each.state.value for each in found}

    def num_buckets(self) -> set[int]:
        return {detail.state.num_buckets for detail in self._details().values()}


def roll_back_last(spark: SparkSession, base: Path, index: BucketIndex | None) -> None:
    table = hudi_table(spark, base, index)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        client._client.rollback(max(instant for instant, _ in table.completed_writes()))


@pytest.mark.parametrize(
    ("table_type", "version", "partitioned"),
    [
        pytest.param("MERGE_ON_READ", 9, True, id="M-v9-partitioned", marks=pytest.mark.exhaustive),
        pytest.param("MERGE_ON_READ", 8, False, id="M-v8-flat", marks=pytest.mark.exhaustive),
        pytest.param("MERGE_ON_READ", 6, True, id="M-v6-partitioned", marks=pytest.mark.exhaustive),
        pytest.param("COPY_ON_WRITE", 9, True, id="C-v9-partitioned", marks=pytest.mark.exhaustive),
        pytest.param("COPY_ON_WRITE", 6, False, id="C-v6-flat", marks=pytest.mark.exhaustive),
    ],
)
def test_polls_agree_with_hudi_through_all_services_of_a_bucketed_table(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int, partitioned: bool
) -> None:
    base = tmp_path / "trips"
    shape = {"table_type": table_type, "version": version, "partitioned": partitioned, "num_buckets": 2}
    options = real.write_table(spark, base, count=200, updates=1, **shape)
    observer = Observer(spark, tmp_path, base, INDEX)
    assert observer.poll() == ["UPSERT", "UPSERT"]
    assert observer.rows() == 200
    assert observer.poll() == []
    if table_type == "MERGE_ON_READ":
        run_job(spark, base, "compaction", index=INDEX)
        assert observer.poll() == ["COMPACT"]
        with reading(observer.engine) as connection:
            stored = snapshot_store.find(connection, "t")
        assert stored is not None
        assert stored.snapshot.since_compaction.commits == 0
    real.upsert(real.rows(spark, 0, 50, ts=5), base, options)
    run_job(spark, base, "cleaning", {"policy": "KEEP_LATEST_COMMITS", "retain": 1}, index=INDEX)
    assert observer.poll() == ["UPSERT", "clean"]
    run_job(spark, base, "bucket_expansion", {"num_buckets": 4}, index=INDEX)
    assert observer.poll() == ["BUCKET_RESCALE"]
    assert observer.num_buckets() == {4}
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=INDEX)
    real.upsert(real.rows(spark, 0, 50, ts=6), base, options)
    assert observer.poll() == ["CLUSTER", "UPSERT"]
    assert observer.num_buckets() == {4}
    roll_back_last(spark, base, INDEX)
    assert observer.poll() == ["rollback"]
    observer.poll_everything()


@pytest.mark.parametrize(
    ("table_type", "version", "engines"),
    [
        ("MERGE_ON_READ", 9, (WriterEngine.SPARK_SQL,)),
        pytest.param("MERGE_ON_READ", 6, (WriterEngine.SPARK_SQL,), marks=pytest.mark.exhaustive),
        pytest.param("MERGE_ON_READ", 9, (), marks=pytest.mark.exhaustive),
        *(pytest.param(each, 6, (), marks=pytest.mark.exhaustive) for each in TYPES),
    ],
)
def test_a_cleaning_starts_as_soon_as_hudi_would_delete_a_file(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int, engines: tuple[WriterEngine, ...]
) -> None:
    """Beside sessions of Spark SQL, a cleaning retains the commits of writers only; here a compaction follows each
    commit."""
    base, retain = tmp_path / "trips", 2
    declared = {"writers_engines": tuple(each.value for each in engines)}
    shape = {"table_type": table_type, "version": version, "num_buckets": 2, "partitioned": False, "metadata": False}
    options = real.write_table(spark, base, count=100, updates=1, **shape)
    observer = Observer(spark, tmp_path, base, INDEX, Writers(engines=engines))
    cleaning = {"commits": 1, "retain": retain}
    policy_registry.put_table(observer.engine, utc_now, "t", {"cleaning": cleaning})
    if table_type == "MERGE_ON_READ":
        run_job(spark, base, "compaction", index=INDEX)
    codes = []
    for number in range(3):
        observer.poll()
        with reading(observer.engine) as connection:
            inputs = inputs_of(connection, "t", utc_now())
        assert inputs is not None
        proposal = inputs.proposals[JobKind.CLEANING]
        planned = run_job(spark, base, "cleaning", {"retain": retain}, index=INDEX, dry_run=True, declared=declared)
        assert isinstance(proposal, Run) == (not planned.details["nothing_to_do"]), f"{number}: {proposal}"
        codes.append("run" if isinstance(proposal, Run) else getattr(proposal, "code", ""))
        real.upsert(real.rows(spark, 0, 50, ts=10 + number), base, options)
        if engines:
            run_job(spark, base, "compaction", index=INDEX)
    assert codes[0] == "all-kept"
    assert codes[-1] == "run"


def test_a_cleaning_waits_while_a_consumer_or_a_write_in_flight_needs_all_old_versions(
    spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "trips"
    shape = {"table_type": "COPY_ON_WRITE", "num_buckets": 2, "partitioned": False, "metadata": False}
    options = real.write_table(spark, base, count=100, **shape)
    observer = Observer(spark, tmp_path, base, INDEX)
    cleaning = {"commits": 1, "retain": 1}
    policy_registry.put_table(observer.engine, utc_now, "t", {"cleaning": cleaning})

    def proposal(why: str, *consumers: Mapping[str, str]) -> Proposal:
        """Returns the proposal, which agrees with what the job itself finds."""
        observer.poll()
        now = utc_now()
        with writing(observer.engine) as connection:
            for each in consumers:
                consumer_store.put(connection, Consumer("t", each["name"], each["instant"], now, now))
            inputs = inputs_of(connection, "t", now)
        assert inputs is not None
        found = inputs.proposals[JobKind.CLEANING]
        params = {"retain": 1, "consumers": list(consumers)}
        planned = run_job(spark, base, "cleaning", params, index=INDEX, dry_run=True)
        assert isinstance(found, Run) == (not planned.details["nothing_to_do"]), f"{why}: {found}"
        assert why in found.because
        return found

    instants = [commits(observer)[0]]
    for number in range(3):
        real.upsert(real.rows(spark, 0, 50, ts=10 + number), base, options)
        observer.poll()
        instants.append(commits(observer)[-1])
    assert isinstance(proposal("files out of use"), Run)
    # Three commits have replaced files, the first of them at the second instant.
    for instant, expected in ((instants[0], Skip), (instants[1], Skip), (instants[2], Run), (instants[0][:-1], Skip)):
        consumer = {"name": "copy", "instant": instant}
        assert isinstance(proposal("consumer 'copy'", consumer), expected), instant
    run_job(spark, base, "cleaning", {"retain": 1}, index=INDEX)
    with WriteClient(observer.table, UNDER_OUR_LOCK) as client:
        pending = str(client._client.startCommit("commit", observer.table.meta))
        real.upsert(real.rows(spark, 0, 50, ts=20), base, options)
        consumer = {"name": "copy", "instant": commits(observer)[-1]}
        assert isinstance(proposal(f"the pending {pending} may need them", consumer), Skip)
        client.rollback(pending)


def commits(observer: Observer) -> list[str]:
    observer.poll()
    with reading(observer.engine) as connection:
        page = commit_store.page(connection, PageRequest(50))
    return sorted(each.requested_time for each in page.items if each.action == "commit")


def test_a_compaction_waits_until_reads_have_paid_for_it(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    options = real.write_table(spark, base, count=100, updates=2, num_buckets=2, partitioned=False)
    observer = Observer(spark, tmp_path, base, INDEX)
    observer.poll()
    policy_registry.put_table(observer.engine, utc_now, "t", {"objective": {"least_worth": 1.0}})
    with writing(observer.engine) as connection:
        read_store.count(connection, {"t": 20_000}, ReadSource.LINEAGE, utc_now())

    def proposal(now: datetime) -> Proposal:
        with reading(observer.engine) as connection:
            inputs = inputs_of(connection, "t", now)
        assert inputs is not None
        return inputs.proposals[JobKind.COMPACTION]

    waiting = proposal(utc_now())
    assert isinstance(waiting, Skip), waiting
    assert re.search("but readers have paid .* s for each second of its work, 1 s wanted", waiting.because)
    assert waiting.until is not None
    # A read counts less the older it is, so the compaction may be due a little later than foreseen.
    length = waiting.until - utc_now()
    assert isinstance(proposal(waiting.until - length / 2), Skip)
    due = proposal(waiting.until + length / 2)
    assert isinstance(due, Run), due
    assert re.search("readers have paid .* s for each second of its work$", due.because)
    before = real.snapshot(spark, base)
    run_job(spark, base, "compaction", index=INDEX)
    assert observer.poll() == ["COMPACT"]
    assert real.snapshot(spark, base) == real.snapshot(spark, base, metadata=False) == before
    assert isinstance(proposal(waiting.until + length / 2), Skip)
    real.upsert(real.rows(spark, 0, 50, ts=9), base, options)
    observer.poll()
    assert isinstance(proposal(utc_now()), Skip)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), [("MERGE_ON_READ", 9), ("COPY_ON_WRITE", 6)])
def test_polls_of_a_table_without_a_bucket_index_find_archived_commits(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int
) -> None:
    base = tmp_path / "plain"
    # The table has no metadata table, because the compactions of that would hold the archival back.
    shape = {"table_type": table_type, "version": version, "num_buckets": None, "metadata": False}
    options = real.write_table(spark, base, count=100, **shape)
    observer = Observer(spark, tmp_path, base, None)
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)
    real.upsert(
        real.rows(spark, 0, 50, ts=6), base, {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    )
    assert observer.poll() == ["UPSERT", "CLUSTER", "INSERT_OVERWRITE"]
    assert observer.rows() == 50
    archiving = {
        "hoodie.archive.automatic": "true",
        "hoodie.clean.automatic": "true",
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
        "hoodie.commits.archival.batch": "1",
    }
    for number in range(7):
        real.upsert(real.rows(spark, 0, 50, ts=10 + number), base, {**options, **archiving})
    found = observer.poll()
    with reading(observer.engine) as connection:
        watch = watch_store.get(connection, "t")
        known = {each.requested_time for each in commit_store.page(connection, PageRequest(100)).items}
    active = {instant.requested_time for instant in observer.timeline().instants}
    assert len(known - active) >= 3, "nothing was archived"
    # All commits that were archived before this poll were found in the history.
    assert found.count("UPSERT") == 7
    assert watch.gap_at is None
    observer.poll_everything()


@pytest.mark.parametrize("version", [6, pytest.param(8, marks=pytest.mark.exhaustive)])
def test_polls_go_on_when_a_newer_hudi_has_upgraded_the_table(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    base = tmp_path / "trips"
    shape = {"version": version, "num_buckets": 2, "partitioned": False}
    options = real.write_table(spark, base, count=100, updates=2, **shape)
    observer = Observer(spark, tmp_path, base, INDEX)
    assert observer.poll() == ["UPSERT"] * 3

    newer = {"hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": "9"}
    for ts in (9, 10):
        real.upsert(real.rows(spark, 50, 120, ts=ts), base, options | newer)

    observer.table = hudi_table(spark, base, INDEX)
    # Hudi compacts a table before it upgrades it.
    assert observer.poll() == ["COMPACT", "UPSERT", "UPSERT"]
    assert observer.poll() == []
    with reading(observer.engine) as connection:
        assert incident_store.unresolved(connection, "t") == []
        clock = snapshot_store.CLOCKS.read(connection, {"of_tables": ["t"]})["t"]
    assert (clock["disagreement"], clock["set_back"]) == (None, None)
    observer.poll_everything()


@pytest.mark.exhaustive
def test_polls_go_on_after_the_upgrades_and_downgrades_of_jobs(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    options = real.write_table(spark, base, count=60, updates=1, version=6, num_buckets=2)
    observer = Observer(spark, tmp_path, base, INDEX)
    with writing(observer.engine) as connection:
        table_store.set_profile(connection, "t", {"table_version": 6, "columns": [{"name": "id", "type": "string"}]})
    assert observer.poll() == ["UPSERT"] * 2
    stopped = {"writers_stopped": True, "readers_hudi_version": "1.2.0"}
    for to, found in ((9, ["COMPACT"]), (8, []), (6, ["COMPACT"])):
        run_job(spark, base, "upgrade", {"to_version": to}, index=INDEX, declared=stopped)
        observer.table = hudi_table(spark, base, INDEX)
        assert observer.poll() == found
        # Between 8 and 9 nothing on the timeline changes, so the service learns of the change from the end of the job.
        registry.detect_after(observer.engine, LakeAccess(examine), "t", JobKind.UPGRADE)
        with reading(observer.engine) as connection:
            assert table_store.get(connection, "t").profile["table_version"] == to
            assert incident_store.unresolved(connection, "t") == []
            assert watch_store.get(connection, "t").gap_at is None
            stored = snapshot_store.find(connection, "t")
        assert stored is not None
        assert (stored.snapshot.vanished, stored.snapshot.clock["disagreement"]) == ((), None)
        if to == 8:
            real.upsert(real.rows(spark, 0, 50, ts=to), base, options)
            assert observer.poll() == ["UPSERT"]
    observer.poll_everything()
