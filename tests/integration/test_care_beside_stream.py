"""Services maintain a table while a structured stream writes it: no row is lost, old or duplicate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import streaming_sink, tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import let_heartbeat_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BOUNDS: list[dict[str, Any]] = [{"limit_bytes": 1}, {"limit_bytes": 1_000_000}, {"partitions": ["p1"]}, {}]
COMPACTED = {"hoodie.metadata.compact.max.delta.commits": "4"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9])
def test_bounded_compactions_archival_and_rollbacks_beside_a_stream(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    base, folder = tmp_path / "numbers", tmp_path / "stream"
    options = tables.writer_options(base, version=version, **COMPACTED)
    options["hoodie.datasource.compaction.async.enable"] = "false"
    with streaming_sink.running(spark, folder, base, options) as query:
        for params in BOUNDS:
            assert run_job(spark, base, "compaction", params).instants
            streaming_sink.wait_for_batches(query, folder, 1)
        undone = _dead_write_rolled_back(spark, base)
        # No batch is rolled back under a stream that has begun the next one, or has committed it.
        assert _refused(spark, base) & {"writers-active", "not-the-latest"}
        while not (archived := run_job(spark, base, "archival", {"retain": 3}).details)["archived"]:
            assert {each["type"] for each in archived["limits"]} == {"metadata-table"}
            streaming_sink.wait_for_batches(query, folder, 1)
        streaming_sink.wait_for_batches(query, folder, 1)
    assert undone not in {item.requested for item in hudi_table(spark, base, INDEX).pending()}
    assert streaming_sink.differences(spark, base) == (streaming_sink.KEYS, [])

    run_job(spark, base, "rollback", {"instant": _last_instant(spark, base), "table_name": "test"})
    assert streaming_sink.differences(spark, base)[0] == streaming_sink.KEYS
    # Spark's checkpoint says that the batch was written; its keys come again with the next ones.
    with streaming_sink.running(spark, folder, base, options, batches=streaming_sink.KEYS // streaming_sink.PER_FILE):
        run_job(spark, base, "compaction", {"limit_bytes": 1})
    while run_job(spark, base, "compaction", {"limit_bytes": 1_000_000}).details["left"]["file_groups"]:
        pass
    assert streaming_sink.differences(spark, base) == (streaming_sink.KEYS, [])
    proved(spark, base, 4)

    # The stream continues with the number of buckets in its options.
    run_job(spark, base, "bucket_expansion", {"factor": 2, "settle_seconds": 0}, writers_stopped=True)
    with streaming_sink.running(spark, folder, base, options, batches=3):
        pass
    assert streaming_sink.differences(spark, base) == (streaming_sink.KEYS, [])
    proved(spark, base, 8)


@pytest.mark.exhaustive
def test_a_stream_writes_the_batches_again_that_a_restore_has_undone(spark: SparkSession, tmp_path: Path) -> None:
    base, folder = tmp_path / "numbers", tmp_path / "stream"
    options = tables.writer_options(base, **{"hoodie.datasource.compaction.async.enable": "false"})
    with streaming_sink.running(spark, folder, base, options, batches=1):
        pass
    run_job(spark, base, "savepoint", {"action": "create", "instant": (kept := _last_instant(spark, base))})
    with streaming_sink.running(spark, folder, base, options, batches=1):
        pass
    given = streaming_sink.PER_FILE * len(list((folder / "source").iterdir()))
    restore = {"savepoint": kept, "table_name": "test"}
    assert run_job(spark, base, "restore", restore, declared={"writers_stopped": True}).details["streams"] == [
        "numbers"
    ]
    assert _newest(spark, base) < given - 1

    _forget_batches_after(folder, _last_batch(spark, base))
    with streaming_sink.running(spark, folder, base, options, batches=1):
        pass

    assert _newest(spark, base) >= given - 1
    assert streaming_sink.differences(spark, base) == (streaming_sink.KEYS, [])
    proved(spark, base, 4)


def _forget_batches_after(folder: Path, last: int) -> None:
    """Does what the guide of `restore` says."""
    for path in [*(folder / "checkpoints" / "offsets").iterdir(), *(folder / "checkpoints" / "commits").iterdir()]:
        number = path.name.removeprefix(".").removesuffix(".crc")
        if number.isdecimal() and int(number) > last:
            path.unlink()


def _last_batch(spark: SparkSession, base: Path) -> int:
    positions = [
        commit.extra.get("_hudi_streaming_sink_checkpoint") for commit in hudi_table(spark, base, INDEX).commits()
    ]
    return int(json.loads([each for each in positions if each][-1])["numbers"])


def _newest(spark: SparkSession, base: Path) -> int:
    return max(row.ts for row in spark.read.format("hudi").load(str(base)).select("ts").collect())


def _dead_write_rolled_back(spark: SparkSession, base: Path) -> str:
    table = hudi_table(spark, base, INDEX)
    client = WriteClient(table, UNDER_OUR_LOCK)._client
    instant = str(client.startCommit("deltacommit", table.meta))
    client.getHeartbeatClient().stopHeartbeatTimers()
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "rollback", {"instant": instant})
    assert [reason.type for reason in refused.value.reasons] == ["writer-active"]
    let_heartbeat_expire(base, instant)
    run_job(spark, base, "rollback", {"instant": instant})
    return instant


def _refused(spark: SparkSession, base: Path) -> set[str]:
    """Rolls the latest commit back until the job refuses it, and returns the reason."""
    while True:
        try:
            run_job(spark, base, "rollback", {"instant": _last_instant(spark, base), "table_name": "test"})
        except RefusedError as refused:
            return {reason.type for reason in refused.reasons}


def _last_instant(spark: SparkSession, base: Path) -> str:
    return hudi_table(spark, base, INDEX).commits()[-1].write.instant
