"""Once a table's lock is lost, no file is changed for the thread that held it: not by this thread, not by threads that
share its work, and not by tasks of its Spark jobs. The same holds for tasks that write for an instant without the
lock."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import CommitLostError
from jobs.hudi import held_files, held_lock
from jobs.hudi.client import WriteClient
from jobs.hudi.clustering_groups import ClusteringGroups
from jobs.hudi.clusterings import Clusterings
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.jvm import jvm_of, translated
from jobs.hudi.options import UNDER_OUR_LOCK
from jobs.lock_errors import LockLostError
from jobs.protocol.plan_owner import PlanOwner
from tests.integration import tables
from tests.integration.plans import OtherRunner
from tests.integration.run import hudi_table, perform_order, work_order
from tests.integration.test_s3 import lake, on_s3

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.hudi.jvm import Jvm

__all__ = ["lake", "on_s3"]

FRESH = 0.1
LOST = "Another client has it."


@pytest.fixture
def jvm(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jvm]:
    """The JVM as an attempt finds it, whose Spark jobs have a group."""
    monkeypatch.setattr(held_lock, "FRESH_SECONDS", FRESH)
    context: Any = spark.sparkContext
    context.setJobGroup("job_held/1", "")
    yield jvm_of(spark)
    context._jsc.clearJobGroup()


def storage_of(jvm: Jvm, path: Any) -> Any:
    # `Path` is known before the first table is opened.
    return jvm.hudi.storage.HoodieStorageUtils.getStorage(path, jvm.storage_conf())


@pytest.mark.parametrize("count", [3, 40, 300], ids=["by the thread", "by shared threads", "by tasks"])
def test_no_file_is_deleted_when_the_lock_is_lost(jvm: Jvm, tmp_path: Path, count: int) -> None:
    locks, lost = instant_generators(jvm).locks, [""]
    first, second = (tmp_path / name for name in ("first", "second"))
    for folder in (first, second):
        folder.mkdir()
        for number in range(count):
            (folder / str(number)).touch()

    def delete(folder: Path) -> None:
        path = jvm.hudi.storage.StoragePath(str(folder))
        with translated("deleting"):
            jvm.hudi.common.fs.FSUtils.deleteDir(jvm.engine_context, storage_of(jvm, path), path, 2)

    with held_lock.proved_again(locks, lambda: lost[0] or None) as judge:
        time.sleep(2 * FRESH)
        delete(first)
        assert not first.exists()
        lost[0] = LOST
        time.sleep(2 * FRESH)
        with pytest.raises(LockLostError, match=LOST):
            delete(second)
        assert len(list(second.iterdir())) == count
    judge(LOST)
    if count == 300:
        # Tasks of the job that has lost the lock may go on.
        with pytest.raises(LockLostError, match=LOST):
            delete(second)
        assert len(list(second.iterdir())) == count
    with held_lock.proved_again(locks, lambda: None) as judge:
        pass
    # So may tasks of a job that has given the lock back, when that is known.
    threading.Timer(0.5, judge, (None,)).start()
    delete(second)
    assert not second.exists()


def made_by_storage(jvm: Jvm, path: Any) -> Any:
    return storage_of(jvm, path).create(path, True)


def made_for_parquet(jvm: Jvm, path: Any) -> Any:
    """Makes a file as `HoodieBaseParquetWriter` and Parquet do."""
    files = jvm.hudi.hadoop.fs
    conf = files.HadoopFSUtils.registerFileSystem(path, jvm.hadoop_conf)
    wrapper, hadoops = files.HoodieWrapperFileSystem, jvm.java.org.apache.hadoop.fs.Path(path.toUri())
    scheme = wrapper.getHoodieScheme(hadoops.getFileSystem(conf).getScheme())
    hoodies = wrapper.convertPathWithScheme(hadoops, scheme)
    return hoodies.getFileSystem(conf).create(hoodies, True, 8192, 1, 64 << 20)


@pytest.mark.parametrize("on", ["disk", pytest.param("s3", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("made", [made_by_storage, made_for_parquet])
def test_no_file_is_completed_when_the_lock_is_lost(
    jvm: Jvm, tmp_path: Path, on: str, made: Callable[[Jvm, Any], Any], request: pytest.FixtureRequest
) -> None:
    generators, lost = instant_generators(jvm), [""]
    if on == "s3":
        request.getfixturevalue("on_s3")
    folder = "s3a://lake/held" if on == "s3" else str(tmp_path)
    held_files.hold(jvm, generators.files, folder)
    path, other = (jvm.hudi.storage.StoragePath(f"{folder}/{name}") for name in ("file", "other"))
    storage = storage_of(jvm, path)
    with held_lock.proved_again(generators.locks, lambda: lost[0] or None) as judge:
        for content in (b"held", b"lost"):
            stream = made(jvm, path)
            stream.write(bytearray(content))
            if content == b"held":
                stream.close()
                continue
            lost[0] = LOST
            time.sleep(2 * FRESH)
            with pytest.raises(LockLostError, match=LOST), translated("closing"):
                stream.close()
            with pytest.raises(LockLostError, match=LOST), translated("making"):
                made(jvm, other)
    judge(None)
    assert not storage.exists(other)
    if made is made_for_parquet:
        assert not storage.exists(path)
    else:
        # A disk has an empty file as soon as the file is made.
        assert jvm.reads.text(storage, path.toString(), 10) == ("held" if on == "s3" else "")


def test_tasks_that_outlive_the_work_for_an_instant_change_nothing(
    jvm: Jvm, spark: SparkSession, tmp_path: Path
) -> None:
    context, locks, name = spark.sparkContext, instant_generators(jvm).locks, "groundskeeper.instant"
    path = jvm.hudi.storage.StoragePath(str(tmp_path))

    def delete() -> None:
        for number in range(300):
            (tmp_path / str(number)).touch()
        with translated("deleting"):
            jvm.hudi.common.fs.FSUtils.deleteDir(jvm.engine_context, storage_of(jvm, path), path, 2)

    with held_lock.instant_held(locks, lambda: True):
        of_tasks = context.getLocalProperty(name)
        delete()
        assert not tmp_path.exists()
    assert context.getLocalProperty(name) is None
    tmp_path.mkdir()
    context.setLocalProperty(name, of_tasks)
    try:
        # The job may have taken the lock meanwhile, to undo its work.
        with held_lock.proved_again(locks, lambda: None) as judge, pytest.raises(CommitLostError, match="has ended"):
            delete()
        judge(None)
    finally:
        context.setLocalProperty(name, None)  # type: ignore[arg-type]  # None unsets it.
    assert len(list(tmp_path.iterdir())) == 300


def begun_by_another(table: Any, instant: str) -> None:
    PlanOwner(table, "another job").begun(instant)


def rolled_back(table: Any, instant: str) -> None:
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        client.rollback(instant)


@pytest.mark.parametrize(
    ("kind", "table_type", "executor", "settle"),
    [
        ("compaction", "MERGE_ON_READ", (WriteClient, "execute_compaction"), begun_by_another),
        ("clustering", "COPY_ON_WRITE", (ClusteringGroups, "execute"), rolled_back),
        ("given clustering", "COPY_ON_WRITE", (Clusterings, "execute"), begun_by_another),
    ],
)
def test_hudi_makes_no_base_file_for_an_instant_that_others_have_settled(
    spark: SparkSession,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    table_type: str,
    executor: tuple[type, str],
    settle: Callable[[Any, str], None],
) -> None:
    is_bucketed = table_type == "MERGE_ON_READ"
    options = tables.write_table(
        spark,
        base,
        table_type=table_type,
        count=60,
        updates=2,
        partitioned=False,
        metadata=False,
        num_buckets=4 if is_bucketed else None,
    )
    before, there = tables.snapshot(spark, base), set(base.glob("*.parquet"))
    real, seen = getattr(*executor), []

    def executed(*args: Any, **more: Any) -> Any:
        table = hudi_table(spark, base, None)
        settle(table, table.pending()[-1].requested)
        try:
            return real(*args, **more)
        finally:
            seen.append(set(base.glob("*.parquet")) - there)

    monkeypatch.setattr(*executor, executed)
    params: dict[str, Any] = {"engine": "hudi"} if is_bucketed else {"sort_by": ["city"]}
    if kind.startswith("given"):
        runner = OtherRunner(spark, base, {**options, "hoodie.clustering.plan.strategy.sort.columns": "city"})
        params = {"plans": [runner.plan_clustering()]}
    order = work_order(base, kind.split()[-1], params, index=tables.INDEX if is_bucketed else None)
    with pytest.raises(CommitLostError):
        perform_order(spark, order)
    assert seen == [set()]
    assert tables.snapshot(spark, base) == before
