"""Somebody removes the markers of a job's pending instant, or rolls the instant back, while the job writes its files.
No file remains that readers would see as a second copy of rows."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import Outcome
from jobs.errors import CancelledError, CommitLostError, JobError, LeaseLostError
from jobs.hudi import hashing_config
from jobs.hudi.client import WriteClient
from jobs.hudi.clusterings import Clusterings
from jobs.hudi.late_files import LateFiles
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.job_context import JobContext
from jobs.protocol import own_instant
from tests.integration import tables
from tests.integration.plans import OtherRunner, schedule_clustering
from tests.integration.run import hudi_table, perform_order, proved, run_job, work_order
from tests.integration.tables import INDEX, left_behind
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

WAITING, REWRITING = "waiting for writers", "rewriting"
EXPANSION = {"factor": 2}


def own(base: Path) -> str:
    """Returns the job's pending instant."""
    (pending,) = (base / ".hoodie").rglob("[0-9]*.replacecommit.requested")
    return pending.name.split(".")[0]


def remove_markers(base: Path) -> None:
    """Does what Hudi's procedure `delete_marker` does (`WriteMarkers.deleteMarkerDir`, 1.2.0)."""
    shutil.rmtree(base / ".hoodie" / ".temp" / own(base))


def roll_back_without_the_lock(spark: SparkSession, base: Path, options: dict[str, str]) -> None:
    """Does what a single writer does with each pending instant when it starts."""
    client = OtherRunner(spark, base, {key: value for key, value in options.items() if key not in tables.LOCK}).client
    assert client.rollback(own(base))


@pytest.mark.parametrize(
    ("kind", "params", "metadata"),
    [
        ("bucket_expansion", EXPANSION, False),
        pytest.param("bucket_expansion", EXPANSION, True, marks=pytest.mark.exhaustive),
        pytest.param("clustering", {"sort_by": ["city"]}, False, marks=pytest.mark.exhaustive),
    ],
)
def test_files_of_an_earlier_round_are_deleted_although_their_markers_are_gone(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any], metadata: bool
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, metadata=metadata, copied=False)

    def a_writer_commits() -> None:
        tables.upsert(tables.rows(spark, 0, 30, ts=5), base, options)
        remove_markers(base)

    done = run_job(spark, base, kind, params, context=At(WAITING, a_writer_commits))

    assert done.details["rewritten_again"] > 0
    written = [path for path in base.glob("*.parquet") if path.name.endswith(f"_{done.instants[0]}.parquet")]
    assert len(written) == done.details["file_groups"]["after"]
    buckets = 8 if kind == "bucket_expansion" else 4
    proved(spark, base, buckets)
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False)
    # The writer's options have the old number, but it follows the hashing config.
    tables.upsert(tables.rows(spark, 20, 70, ts=9), base, options)
    assert len(proved(spark, base, buckets)) == 70


def test_a_file_that_a_lost_task_completes_while_the_replacement_commits_is_removed(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False, metadata=False)
    before = tables.snapshot(spark, base)
    model = next(base.glob("*.parquet"))
    commit = WriteClient.commit_replacement
    late: list[Path] = []

    def the_lost_task_has_announced_its_file() -> None:
        late.append(base / f"00000000-1111-2222-3333-444444444444-0_9-9-9_{own(base)}.parquet")
        (base / ".hoodie" / ".temp" / own(base) / f"{late[0].name}.marker.CREATE").touch()

    def commit_while_the_task_goes_on(*arguments: Any) -> None:
        commit(*arguments)
        shutil.copy(model, late[0])

    monkeypatch.setattr(WriteClient, "commit_replacement", commit_while_the_task_goes_on)
    run_job(spark, base, "bucket_expansion", EXPANSION, context=At(WAITING, the_lost_task_has_announced_its_file))
    assert not late[0].exists()
    assert proved(spark, base, 8) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_last", [True, False])
def test_an_attempt_whose_markers_are_gone_leaves_no_file(spark: SparkSession, base: Path, is_last: bool) -> None:
    tables.write_table(spark, base, count=60, metadata=False)
    before = tables.snapshot(spark, base)

    def the_attempt_ends() -> None:
        remove_markers(base)
        raise CancelledError if is_last else LeaseLostError

    after_an_attempt_with(spark, base, At(WAITING, the_attempt_ends), is_last=is_last)

    assert left_behind(base) == []
    assert proved(spark, base, 4 if is_last else 8) == before


@pytest.mark.parametrize(
    ("metadata", "is_last"),
    [(True, True), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in product((True, False), (False,)))],
)
def test_files_that_an_attempt_wrote_after_the_rollback_of_its_instant_are_removed(
    spark: SparkSession, base: Path, metadata: bool, is_last: bool
) -> None:
    options = tables.write_table(spark, base, count=60, partitioned=False, metadata=metadata)
    before = tables.snapshot(spark, base)

    def the_attempt_goes_on() -> None:
        if not is_last:
            raise LeaseLostError

    context = At(REWRITING, lambda: roll_back_without_the_lock(spark, base, options), (WAITING, the_attempt_goes_on))
    after_an_attempt_with(spark, base, context, is_last=is_last)

    assert left_behind(base) == []
    assert proved(spark, base, 4 if is_last else 8) == before
    tables.upsert(tables.rows(spark, 20, 70, ts=9), base, options)
    assert len(proved(spark, base, 4 if is_last else 8)) == 70


@pytest.mark.exhaustive
def test_an_attempt_that_dies_while_it_makes_markers_again_leaves_no_file(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=60, metadata=False)
    before = tables.snapshot(spark, base)
    announce = LateFiles.announce

    def dies(late: LateFiles, instant: str, files: Iterable[str]) -> None:
        def first_file() -> Iterator[str]:
            yield next(iter(files))
            monkeypatch.undo()
            raise LeaseLostError

        announce(late, instant, first_file())

    monkeypatch.setattr(LateFiles, "announce", dies)
    after_an_attempt_with(spark, base, At(WAITING, lambda: remove_markers(base)), is_last=False)

    assert left_behind(base) == []
    assert not (base / ".hoodie" / ".aux" / "groundskeeper.markers").exists()
    assert proved(spark, base, 8) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "step"),
    [
        ("bucket_expansion", WAITING),
        ("compaction", "comparing the record keys"),
        ("clustering", "comparing the record keys"),
    ],
)
def test_a_frozen_attempt_removes_the_files_that_it_wrote_after_the_next_one_had_taken_over(
    spark: SparkSession, base: Path, kind: str, step: str
) -> None:
    """The processes of a machine that was suspended go on with their files before they notice the lost lease."""
    index = None if kind == "clustering" else INDEX
    shape = {"table_type": "COPY_ON_WRITE", "num_buckets": None} if index is None else {}
    options = tables.write_table(spark, base, count=60, updates=1, partitioned=False, metadata=False, **shape)
    before = tables.snapshot(spark, base)
    order = work_order(base, kind, EXPANSION if kind == "bucket_expansion" else plan_of(spark, base, kind), index=index)
    written: set[str] = set()

    def the_next_attempt_takes_over() -> None:
        (instant,) = context.instants
        late = {path: path.read_bytes() for path in base.glob(f"*_{instant}.parquet")}
        assert late
        perform_order(spark, replace(order, attempt=2, earlier_instants=(instant,)))
        written.update(path.name for path in base.glob("*.parquet"))
        for path, content in late.items():
            path.write_bytes(content)
        assert {path.name for path in base.glob("*.parquet")} > written
        raise LeaseLostError

    context = At(step, the_next_attempt_takes_over)
    with pytest.raises(LeaseLostError):
        perform_order(spark, order, context)

    assert {path.name for path in base.glob("*.parquet")} == written
    assert left_behind(base) == []
    assert tables.snapshot(spark, base) == before
    tables.upsert(tables.rows(spark, 20, 70, ts=9), base, options)
    assert len(tables.snapshot(spark, base)) == 70
    assert run_job(spark, base, "audit", index=index).details["clean"]


@pytest.mark.exhaustive
def test_files_of_a_compaction_that_died_on_a_table_made_anew_are_removed_by_its_next_attempt(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=60, updates=1, partitioned=False, metadata=False)
    order = work_order(base, "compaction")

    def made_anew() -> None:
        (instant,) = context.instants
        late = {path: path.read_bytes() for path in base.glob(f"*_{instant}.parquet")}
        assert late
        tables.rows(spark, 30, 70, ts=9).write.format("hudi").options(**options).mode("overwrite").save(str(base))
        (base / ".hoodie" / ".temp" / instant).mkdir(parents=True)
        for path, content in late.items():
            (base / ".hoodie" / ".temp" / instant / f"{path.name}.marker.MERGE").touch()
            path.write_bytes(content)
        raise LeaseLostError

    context = At("comparing the record keys", made_anew)
    with pytest.MonkeyPatch.context() as patch:
        # A dead attempt removes nothing.
        patch.setattr(own_instant, "remove_late", lambda *_: None)
        with pytest.raises(LeaseLostError):
            perform_order(spark, order, context)
    assert left_behind(base) != []
    perform_order(spark, replace(order, attempt=2, earlier_instants=tuple(context.instants)))

    assert left_behind(base) == []
    assert len(proved(spark, base, 4)) == 40


@pytest.mark.parametrize(
    ("kind", "owner", "name"),
    [
        ("compaction", WriteClient, "commit_compaction"),
        pytest.param("clustering", Clusterings, "commit", marks=pytest.mark.exhaustive),
        pytest.param("bucket_expansion", WriteClient, "commit_replacement", marks=pytest.mark.exhaustive),
    ],
)
def test_an_attempt_that_was_frozen_right_before_its_commit_commits_nothing_after_the_next_one(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, kind: str, owner: type, name: str
) -> None:
    index = None if kind == "clustering" else INDEX
    shape = {"table_type": "COPY_ON_WRITE", "num_buckets": None} if index is None else {}
    options = tables.write_table(spark, base, count=60, updates=1, partitioned=False, **shape)
    before = tables.snapshot(spark, base)
    order = work_order(base, kind, EXPANSION if kind == "bucket_expansion" else plan_of(spark, base, kind), index=index)
    commit = getattr(owner, name)
    context = JobContext()

    def frozen(client: Any, *arguments: Any) -> None:
        monkeypatch.undo()
        following = replace(order, attempt=2, earlier_instants=tuple(context.instants))
        assert perform_order(spark, following).outcome is Outcome.SUCCEEDED
        commit(client, *arguments)

    monkeypatch.setattr(owner, name, frozen)
    with pytest.raises(JobError):
        perform_order(spark, order, context)

    completed = [path.name.split("_")[0] for path in (base / ".hoodie" / "timeline").glob("*_*.*commit")]
    assert len(completed) == len(set(completed))
    assert left_behind(base) == []
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    tables.upsert(tables.rows(spark, 20, 70, ts=9), base, options)
    assert len(tables.snapshot(spark, base)) == 70
    assert run_job(spark, base, "audit", index=index).details["clean"]


def plan_of(spark: SparkSession, base: Path, kind: str) -> dict[str, Any]:
    """Returns the parameters of a job that executes a writer's plan of clustering; a compaction needs none."""
    if kind != "clustering":
        return {}
    with WriteClient(hudi_table(spark, base, None), UNDER_OUR_LOCK) as client:
        return {"plans": [schedule_clustering(client)]}


@pytest.mark.exhaustive
def test_no_hashing_config_is_written_for_an_instant_that_was_rolled_back(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi would follow it at once, because its instant is not pending."""
    options = tables.write_table(spark, base, count=60, partitioned=False)
    written: list[str] = []
    announce, write = own_instant.announce_again, hashing_config.write

    def rolled_back_after(client: WriteClient, instant: str, *more: Any) -> set[str]:
        found = announce(client, instant, *more)
        if instant not in written:
            roll_back_without_the_lock(spark, base, options)
        return found

    def write_and_record(table: Any, current: Any, new: Any, instant: str) -> None:
        written.append(instant)
        write(table, current, new, instant)

    monkeypatch.setattr(own_instant, "announce_again", rolled_back_after)
    monkeypatch.setattr(hashing_config, "write", write_and_record)
    with pytest.raises(CommitLostError):
        run_job(spark, base, "bucket_expansion", EXPANSION)

    assert written == []
    assert left_behind(base) == []


@pytest.mark.exhaustive
def test_nothing_is_committed_that_a_writer_has_begun_to_roll_back(spark: SparkSession, base: Path) -> None:
    """A writer whose clock is two minutes ahead of the storage's takes each job for dead."""
    options = tables.write_table(spark, base, count=60, partitioned=False, metadata=False)
    before, runner = tables.snapshot(spark, base), OtherRunner(spark, base, options)
    planned: list[Any] = []
    context = At("committing", lambda: planned.append(runner.begin_rollback(own(base))))
    with pytest.raises(CommitLostError, match="about to roll"):
        run_job(spark, base, "clustering", {"sort_by": ["city"]}, context=context)
    assert left_behind(base) == []
    assert run_job(spark, base, "clustering", {"sort_by": ["city"]}).instants
    assert proved(spark, base, 4) == before


def after_an_attempt_with(spark: SparkSession, base: Path, context: At, *, is_last: bool) -> None:
    """Runs an attempt at an expansion that fails, and the next one unless it was the last."""
    order = work_order(base, "bucket_expansion", EXPANSION)
    with pytest.MonkeyPatch.context() as patch:
        # A dead attempt removes nothing.
        patch.setattr(own_instant, "remove_late", lambda *_: None)
        with pytest.raises((CancelledError, CommitLostError) if is_last else LeaseLostError):
            perform_order(spark, order, context)
    if not is_last:
        perform_order(spark, replace(order, attempt=2, earlier_instants=tuple(context.instants)))
