"""Arrow compacts a table with the same result as Hudi's own executor; slices for which this is not proved are compacted
by Hudi or refused."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobs.contract import BucketIndex, Outcome
from jobs.dataplane import compaction_job, spark_tasks
from jobs.dataplane.column_chunks import RawFile
from jobs.dataplane.compacted_file import Compaction
from jobs.errors import CancelledError, EngineRefusedError, RefusedError
from tests.benchmarks import process_tree
from tests.integration import tables
from tests.integration.both_engines import compacted, newest_files, require_equal
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

_NEWEST_WRITE = "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
_EVENT_TIME = "org.apache.hudi.common.model.EventTimeAvroPayload"
_PARTIAL_UPDATES = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
_PAYLOAD = "hoodie.datasource.write.payload.class"
DELETE = {"hoodie.datasource.write.operation": "delete"}


def written(spark: SparkSession, base: Path, **shape: Any) -> dict[str, str]:
    """Writes 300 rows; then 200 updates and 100 new rows, 10 deletes, and 20 more updates, 5 of which are of deleted
    rows."""
    options = tables.write_table(spark, base, count=300, **shape)
    tables.upsert(tables.rows(spark, 100, 400, ts=2), base, options)
    tables.upsert(tables.rows(spark, 50, 60, ts=3), base, options | DELETE)
    tables.upsert(tables.rows(spark, 55, 75, ts=4), base, options)
    return options


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "shape",
    [
        {"version": 9},
        {"version": 8},
        {"version": 6},
        {"partitioned": False},
        {"hoodie.metadata.index.column.stats.enable": "true"},
        {"metadata": False},
        {"num_buckets": None},
        {"hoodie.logfile.data.block.format": "parquet"},
        {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
        {"version": 6, _PAYLOAD: _NEWEST_WRITE},
        *({"version": version, _PAYLOAD: _EVENT_TIME} for version in (6, 8, 9)),
        {"hoodie.parquet.compression.codec": "zstd"},
        {"hoodie.datasource.write.hive_style_partitioning": "true"},
    ],
    ids=str,
)
def test_rows_files_and_statistics_are_those_of_hudis_own_compaction(
    spark: SparkSession, base: Path, shape: dict[str, Any]
) -> None:
    options = written(spark, base, **shape)
    index = INDEX if shape.get("num_buckets", 4) else None
    hudi, arrow = (compacted(spark, base, engine, index=index) for engine in ("hudi", "arrow"))
    require_equal(spark, hudi, arrow)
    assert rows_by_hudi_rs(arrow.base) == rows_by_spark(spark, arrow.base)
    assert arrow.result.details["proof"]["left_out"] == []

    # A writer continues, another compaction succeeds, and the audit finds nothing.
    for each in (hudi, arrow):
        tables.upsert(tables.rows(spark, 0, 420, ts=9).where("city % 3 = 0"), each.base, options)
    assert _data(spark, arrow.base) == _data(spark, hudi.base)
    again = run_job(spark, arrow.base, "compaction", index=index)
    # Without a bucket index the writer has filled up the small files instead of writing logs.
    assert [each["engine"] for each in again.details["engines"]] == (["arrow"] if index else [])
    assert _data(spark, arrow.base) == _data(spark, hudi.base)
    if index:
        assert len(proved(spark, arrow.base, 4)) == len(tables.snapshot(spark, hudi.base))


@pytest.mark.parametrize(
    "codec",
    ["gzip", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("zstd", "snappy"))],
)
def test_files_of_copied_column_chunks_are_those_of_hudis_own_compaction(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    # The chunks of small row groups are by default not copied.
    monkeypatch.setattr(compaction_job, "Compaction", partial(Compaction, copies_from=0))
    shape = {"hoodie.metadata.index.column.stats.enable": "true", "hoodie.parquet.compression.codec": codec}
    options = tables.write_table(spark, base, count=300, partitioned=False, **shape)
    tables.upsert(tables.rows(spark, 100, 200, ts=2), base, options)
    tables.upsert(tables.rows(spark, 190, 201, ts=3), base, options)
    old = newest_files(base)
    hudi, arrow = (compacted(spark, base, engine, codec=codec) for engine in ("hudi", "arrow"))
    require_equal(spark, hudi, arrow)
    assert rows_by_hudi_rs(arrow.base) == rows_by_spark(spark, arrow.base)
    # The updates change two columns beside the meta columns.
    kept = sum(_chunks_kept(old[each], path) for each, path in newest_files(arrow.base).items() if each in old)
    assert kept >= 10 * len(old)
    wanted = ("id = 'k150'", "ts = 2 and city < 500", "note is null")
    theirs = {where: _data(spark, hudi.base, where) for where in wanted}
    for reader in ("true", "false"):
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", reader)
        try:
            for where in wanted:
                assert _data(spark, arrow.base, where) == theirs[where]
        finally:
            spark.conf.unset("spark.sql.parquet.enableVectorizedReader")
    tables.upsert(tables.rows(spark, 0, 420, ts=9).where("city % 3 = 0"), arrow.base, options)
    proved(spark, arrow.base, 4)


def _chunks_kept(old: Path, new: Path) -> int:
    """Returns how many column chunks of the first row group have the same bytes in both files."""
    found = []
    for path in (old, new):
        with pa.OSFile(str(path)) as source:
            raw = RawFile(source)
            found.append([raw.content(chunk.start, chunk.length) for chunk in raw.groups[0].chunks])
    return sum(before == after for before, after in zip(*found, strict=True))


def _data(spark: SparkSession, base: Path, where: str = "true") -> list[str]:
    """Returns all rows without the columns that depend on the time of the last write."""
    frame = spark.read.format("hudi").load(str(base)).where(where)
    return sorted(str(row) for row in frame.select(*(name for name in frame.columns if name[:1] != "_")).collect())


@pytest.mark.exhaustive
def test_a_column_that_the_logs_add_is_in_the_new_files_as_well(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=200, updates=1)
    more = tables.rows(spark, 150, 250, ts=5).withColumn("late", F.col("city") * 2)
    tables.upsert(more, base, options)
    require_equal(spark, *(compacted(spark, base, engine) for engine in ("hudi", "arrow")))


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 9])
def test_slices_of_logs_alone_and_slices_that_lose_all_rows_are_compacted(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=60, version=version, metadata=False, updates=1)
    tables.upsert(tables.rows(spark, 0, 60, ts=5).where("dt = '2026-01-02'"), base, options | DELETE)
    for path in (base / "2026-01-01").glob("0*.parquet"):
        path.unlink()
    require_equal(spark, *(compacted(spark, base, engine) for engine in ("hudi", "arrow")))


@pytest.mark.exhaustive
def test_deletes_by_a_column_with_equal_and_lower_ordering_values_are_compacted(
    spark: SparkSession, base: Path
) -> None:
    def rows(first: int, last: int, ts: int, *, deleted: bool = False) -> DataFrame:
        return tables.rows(spark, first, last, ts=ts).withColumn("_hoodie_is_deleted", F.lit(deleted))

    options = tables.writer_options(base)
    tables.upsert(rows(0, 100, 5), base, options)
    tables.upsert(rows(0, 30, 5).withColumn("region", F.lit("equal")), base, options)
    tables.upsert(rows(20, 50, 4).withColumn("region", F.lit("older")), base, options)
    tables.upsert(rows(40, 60, 6, deleted=True), base, options)
    tables.upsert(rows(50, 55, 5), base, options)
    tables.upsert(rows(90, 110, 4, deleted=True), base, options)
    require_equal(spark, *(compacted(spark, base, engine) for engine in ("hudi", "arrow")))


@pytest.mark.exhaustive
def test_a_rolled_back_write_does_not_come_back(spark: SparkSession, tmp_path: Path) -> None:
    for version in (6, 9):
        base = tmp_path / f"orders{version}"
        options = tables.write_table(spark, base, count=100, updates=1, version=version)
        tables.upsert(tables.rows(spark, 0, 120, ts=7), base, options)
        table = hudi_table(spark, base, INDEX)
        latest = max(each.requested for each in table.instants() if each.action == "deltacommit")
        run_job(spark, base, "rollback", {"instant": latest, "table_name": table.declared.name})
        tables.upsert(tables.rows(spark, 0, 10, ts=3), base, options)
        hudi, arrow = (compacted(spark, base, engine) for engine in ("hudi", "arrow"))
        require_equal(spark, hudi, arrow)
        assert arrow.result.details["rows"] == 100
        for folder in ("hudi", "arrow"):
            shutil.rmtree(tmp_path / folder)


@pytest.mark.exhaustive
@pytest.mark.parametrize("payload", ["", _NEWEST_WRITE, _EVENT_TIME], ids=["default", "newest write", "event time"])
@pytest.mark.parametrize(("old", "new"), [(6, 8), (6, 9), (8, 9)])
def test_a_table_that_its_writer_has_upgraded_is_compacted(
    spark: SparkSession, base: Path, old: int, new: int, payload: str
) -> None:
    options = written(spark, base, version=old, **{_PAYLOAD: payload} if payload else {})
    options |= {"hoodie.write.auto.upgrade": "true", "hoodie.write.table.version": str(new)}
    tables.upsert(tables.rows(spark, 30, 90, ts=6), base, options)
    tables.upsert(tables.rows(spark, 50, 70, ts=7), base, options | DELETE)
    assert hudi_table(spark, base, INDEX).version == new
    require_equal(spark, *(compacted(spark, base, engine) for engine in ("hudi", "arrow")))


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["auto", "hudi"])
def test_the_codec_is_that_of_the_old_file_or_the_one_that_was_asked_for(
    spark: SparkSession, tmp_path: Path, engine: str
) -> None:
    base = tmp_path / "orders"
    tables.write_table(spark, base, count=60, updates=1, **{"hoodie.parquet.compression.codec": "snappy"})
    for codec, expected in ((None, "SNAPPY"), ("zstd", "ZSTD")):
        if engine == "hudi" and codec is None:
            continue
        copy = shutil.copytree(base, tmp_path / f"{expected}" / "orders")
        params = {"engine": engine} | ({"codec": codec} if codec else {})
        [instant] = run_job(spark, copy, "compaction", params).instants
        found = {
            pq.read_metadata(each).row_group(0).column(0).compression for each in copy.glob(f"*/*_{instant}.parquet")
        }
        assert found == {expected}


# -- what is left to Hudi


REASONS: list[tuple[str, dict[str, Any]]] = [
    ("change-data-capture", {"hoodie.table.cdc.enabled": "TRUE"}),
    ("payload-not-covered", {_PAYLOAD: _PARTIAL_UPDATES, "version": 6}),
    ("merge-properties-not-covered", {_PAYLOAD: _PARTIAL_UPDATES, "version": 9}),
    ("index-maps-keys-to-files", {"hoodie.metadata.record.index.enable": "true"}),
    ("no-meta-fields", {"hoodie.populate.meta.fields": "false"}),
    ("schema-on-read", {"hoodie.schema.on.read.enable": "true", "hoodie.datasource.write.reconcile.schema": "true"}),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("reason", "shape"),
    [pytest.param(reason, shape, id=f"{reason}-{number}") for number, (reason, shape) in enumerate(REASONS)],
)
def test_slices_whose_merge_is_not_proved_are_compacted_by_hudi_or_refused(
    spark: SparkSession, base: Path, reason: str, shape: dict[str, Any]
) -> None:
    tables.write_table(spark, base, count=60, updates=1, **shape)
    before = _data(spark, base)
    timeline = sorted((base / ".hoodie").rglob("*"))
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "compaction", {"engine": "arrow"})
    assert reason in {each.type for each in refused.value.reasons}
    planned = run_job(spark, base, "compaction", {"engine": "arrow"}, dry_run=True).details
    assert reason in {each["type"] for each in planned["refusals"]}
    planned = run_job(spark, base, "compaction", dry_run=True).details
    assert planned["engine"] == "hudi"
    assert reason in {each["type"] for each in planned["engine_reasons"]}
    assert sorted((base / ".hoodie").rglob("*")) == timeline

    details = run_job(spark, base, "compaction").details
    [how] = details["engines"]
    assert how["engine"] == "hudi"
    assert reason in {each["type"] for each in how["reasons"]}
    assert _data(spark, base) == before


def test_a_slice_that_only_hudi_can_merge_makes_hudi_execute_the_whole_plan(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=200, updates=1, partitioned=False)
    # The end of a log is missing: the remains of an append that has failed, which Hudi leaves out.
    log = min(base.glob(".0*.log.*[0-9]"))
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    log.write_bytes(log.read_bytes()[:-40])
    before = tables.snapshot(spark, base)
    with pytest.raises(EngineRefusedError, match="partition '', file group 0000"):
        run_job(spark, base, "compaction", {"engine": "arrow"})
    assert tables.snapshot(spark, base) == before
    details = run_job(spark, base, "compaction").details
    [how] = details["engines"]
    assert (how["engine"], {each["type"] for each in how["reasons"]}) == ("hudi", {"merge-not-proved"})
    assert tables.snapshot(spark, base) == before
    assert tables.left_behind(base) == []
    # Each file group has one file: the files of our tasks were deleted.
    files = [path.name[:38] for path in base.glob(f"*_{how['instant']}.parquet")]
    assert len(files) == len(set(files)) == 4


@pytest.mark.exhaustive
def test_a_failure_of_our_tasks_leaves_the_plan_to_hudi(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_tasks, "MOST_BYTES", 0)
    tables.write_table(spark, base, count=60, updates=1)
    before = tables.snapshot(spark, base)
    context: Any = spark.sparkContext
    python = context.pythonExec

    def setter_of_python(program: str) -> Callable[[], None]:
        return lambda: setattr(context, "pythonExec", program)

    class Steps(At):
        def step(self, name: str, *, bytes_total: int = 0) -> None:
            setter_of_python(
                python if "Hudi's executor" in name or not name.startswith("compacting") else "/bin/false"
            )()
            super().step(name, bytes_total=bytes_total)

    try:
        details = run_job(spark, base, "compaction", context=Steps("", lambda: None)).details
    finally:
        setter_of_python(python)()
    [how] = details["engines"]
    assert (how["engine"], [each["type"] for each in how["reasons"]]) == ("hudi", ["arrow-failed"])
    assert "Traceback" not in str(how)
    assert tables.snapshot(spark, base) == before
    assert tables.left_behind(base) == []


@pytest.mark.exhaustive
def test_a_task_whose_process_dies_is_done_again_and_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "orders"
    tables.write_table(spark, base, count=300_000, updates=1, num_buckets=1, partitioned=False)
    hudi = compacted(spark, base, "hudi", index=BucketIndex(1, ("id",)))
    copy = tmp_path / "arrow" / base.name
    shutil.copytree(base, copy)
    markers = ".hoodie/.temp/*/*.marker.MERGE"
    seen: set[Path] = set()
    ended = threading.Event()

    def kill_the_first() -> None:
        while not ended.wait(0.005):
            found = set(copy.glob(markers))
            if found and not seen:
                for pid in workers():
                    os.kill(pid, signal.SIGKILL)
            seen.update(found)

    watcher = threading.Thread(target=kill_the_first)
    watcher.start()
    try:
        result = run_job(spark, copy, "compaction", {"engine": "arrow"}, index=BucketIndex(1, ("id",)))
    finally:
        ended.set()
        watcher.join()
    assert len(seen) == 2, seen
    assert result.details["engines"][0]["engine"] == "arrow"
    assert len(list(copy.glob(f"*_{result.instants[0]}.parquet"))) == 1
    assert tables.left_behind(copy) == []
    assert _data(spark, copy) == _data(spark, hudi.base)


def workers() -> list[int]:
    """Returns the Python processes that run tasks of this session: children of Spark's daemon, and of the server that
    forks processes near the driver."""
    mine = process_tree.tree()
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in mine}
    daemons = {pid for pid, command in commands.items() if b"pyspark.daemon" in command or b"forkserver" in command}
    return [
        pid for pid in daemons if int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) in daemons
    ]


@pytest.mark.exhaustive
def test_a_cancelled_compaction_is_done_by_the_next_one(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=120, updates=1)
    before = tables.snapshot(spark, base)

    def cancel() -> None:
        raise CancelledError

    with pytest.raises(CancelledError):
        run_job(spark, base, "compaction", context=At("comparing the record keys", cancel))
    assert tables.snapshot(spark, base) == before
    for heartbeat in (base / ".hoodie" / ".heartbeat").glob("[0-9]*"):
        heartbeat.unlink()
    assert run_job(spark, base, "compaction").outcome is Outcome.SUCCEEDED
    assert proved(spark, base, 4) == before
    assert tables.left_behind(base) == []
