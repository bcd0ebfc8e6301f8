"""A thread that has lost a table's lock changes no file any more, and neither do the threads that share its work, nor
the tasks of its Spark jobs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from jobs.hudi import held_lock
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.jvm import jvm_of, translated
from jobs.lock_errors import LockLostError
from tests.integration.test_s3 import lake, on_s3

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@pytest.mark.parametrize("on", ["disk", pytest.param("s3", marks=pytest.mark.exhaustive)])
def test_no_file_is_completed_when_the_lock_is_lost(
    jvm: Jvm, tmp_path: Path, on: str, request: pytest.FixtureRequest
) -> None:
    locks, lost = instant_generators(jvm).locks, [""]
    if on == "s3":
        request.getfixturevalue("on_s3")
    folder = "s3a://lake/held" if on == "s3" else str(tmp_path)
    path = jvm.hudi.storage.StoragePath(f"{folder}/file")
    with held_lock.proved_again(locks, lambda: lost[0] or None) as judge:
        storage = storage_of(jvm, path)
        for content in (b"held", b"lost"):
            stream = storage.create(path, True)
            stream.write(bytearray(content))
            if content == b"held":
                stream.close()
                continue
            lost[0] = LOST
            time.sleep(2 * FRESH)
            with pytest.raises(LockLostError, match=LOST), translated("closing"):
                stream.close()
    judge(None)
    # A disk has an empty file as soon as the file is made.
    assert jvm.reads.text(storage, path.toString(), 10) == ("held" if on == "s3" else "")
