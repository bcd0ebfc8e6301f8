"""Hudi's statistics hide rows: after a write during which a compaction ended, filters miss other rows (Hudi 1.2)."""

from __future__ import annotations

import shutil
import threading
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex, WriterEngine
from jobs.errors import RefusedError
from jobs.hudi import rows
from jobs.hudi.client import WriteClient
from jobs.services import compaction_plans
from service.catalog.registration import Registration
from service.writer_options.options import writer_options
from service.writer_options.written_table import Callback, Target
from tests.integration import tables
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.long_session import LongSession
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.serving import eventually
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

NOW = datetime(2026, 1, 1, tzinfo=UTC)
INDEX = BucketIndex(2, ("id",))
PARTITIONS = ["region=eu", "region=us"]
SESSION = {
    **tables.LOCK,
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.bucket.index.query.pruning": "false",
    # The printed options make each statement look its file groups up anew.
    "hoodie.spark.sql.optimized.writes.enable": "false",
}


@pytest.fixture
def base(hiding: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(hiding, tmp_path / "sales"))


@pytest.fixture(scope="module")
def hiding(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a table in which a filter finds no rows, because a compaction ended during a DELETE."""
    return _hiding(spark, tmp_path_factory.mktemp("hiding") / "sales", "DELETE FROM {table} WHERE {condition}")


def _hiding(spark: SparkSession, base: Path, statement: str) -> Path:
    """Makes the table, and lets a compaction end between the last file that the statement writes and its commit: the
    statement reads until the compaction has the lock, which it needs to commit."""
    session, table, gate = spark.newSession(), f"statistics_{base.name}", str(base.parent / "gate")

    def once_open(number: int) -> bool:
        """Lets only one row wait for the gate, so that the compaction has a free core."""
        while number == 34 and not Path(gate).exists():
            time.sleep(0.02)
        return True

    session.udf.register("once_open", once_open, "boolean")

    def run(statement: str) -> None:
        session.sql(statement).collect()

    run(
        f"CREATE TABLE {table} (id BIGINT, qty INT, ver BIGINT, region STRING) USING hudi"
        f" PARTITIONED BY (region) LOCATION '{base}' TBLPROPERTIES (type='mor', primaryKey='id', preCombineField='ver',"
        " 'hoodie.index.type'='BUCKET', 'hoodie.bucket.index.num.buckets'='2', 'hoodie.bucket.index.hash.field'='id',"
        " 'hoodie.clean.automatic'='false', 'hoodie.compact.inline'='false')"
    )
    for key, value in SESSION.items():
        run(f"SET {key}={value}")
    run(f"INSERT INTO {table} SELECT id, cast(id % 97 as int), 1L, 'eu' FROM range(0, 400)")
    run(f"INSERT INTO {table} SELECT id, cast(id % 97 as int), 1L, 'us' FROM range(400, 600)")
    run(f"UPDATE {table} SET qty = 4, ver = 4L WHERE id % 5 = 1")
    run(f"DELETE FROM {table} WHERE id % 19 = 3")
    commit = WriteClient.commit_compaction

    def commit_once_it_has_written(client: WriteClient, instant: str, *more: Any) -> None:
        Path(gate).touch()
        logs = f"*/.*_{max(_begun(base))}.log.*"
        assert eventually(lambda: {path.parent.name for path in base.glob(logs)} == {"region=eu", "region=us"}, 60)
        commit(client, instant, *more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compaction_plans, "QUIET_SECONDS", 0.0)
        patched.setattr(WriteClient, "commit_compaction", commit_once_it_has_written)
        write = partial(run, statement.format(table=table, condition="id % 30 = 4 AND once_open(id)"))
        try:
            _compact_beside(spark, base, write)
        finally:
            Path(gate).touch()
    assert _found_by_a_filter(spark, base) < _rows_of_before(spark, base), "has Hudi been mended?"
    run(f"DROP TABLE {table}")
    return base


def _compact_beside(spark: SparkSession, base: Path, write: Callable[[], None]) -> None:
    """Compacts the table; the write begins before the compaction commits. Returns when both have ended."""
    beside, known = threading.Thread(target=write), _begun(base)

    def begin() -> None:
        beside.start()
        assert eventually(lambda: _begun(base) > known, 60)

    run_job(spark, base, "compaction", index=INDEX, context=At("comparing the record keys", begin))
    beside.join(120)


def _begun(base: Path) -> set[str]:
    requested = (base / ".hoodie" / "timeline").glob("*.deltacommit.requested")
    return {path.name.split(".")[0] for path in requested}


def _rows_of_before(spark: SparkSession, base: Path) -> int:
    options = {"hoodie.enable.data.skipping": "false"}
    return spark.newSession().read.format("hudi").options(**options).load(str(base)).where("ver <= 4").count()


def _found_by_a_filter(spark: SparkSession, base: Path) -> int:
    return spark.newSession().read.format("hudi").load(str(base)).where("ver <= 4").count()


@pytest.mark.exhaustive
def test_the_audit_sees_rows_that_a_filter_does_not_find(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(tables.snapshot(spark, base))
    audit = run_job(spark, base, "audit", index=INDEX).details
    assert (audit["rows"], audit["clean"]) == (before, False)
    assert audit["keys_hidden_by_statistics"] > 0
    # The reads of jobs find all rows, whatever they filter by.
    monkeypatch.setattr(rows, "narrowed", lambda *_: None)
    table = hudi_table(spark, base, INDEX)
    assert rows.current(table).where("ver <= 4").count() == _rows_of_before(spark, base)
    assert rows.of_partitions(table, PARTITIONS).count() == before


@pytest.mark.exhaustive
def test_the_audit_sees_what_an_update_hides(spark: SparkSession, tmp_path: Path) -> None:
    """The statistics of the update have values, but only those of the rows that it changed."""
    base = _hiding(spark, tmp_path / "updated", "UPDATE {table} SET qty = 4, ver = 204L WHERE {condition}")
    audit = run_job(spark, base, "audit", index=INDEX).details
    assert (audit["keys_hidden_by_statistics"] > 0, audit["clean"]) == (True, False)
    # The next commit to the partitions shows the rows again.
    assert run_job(spark, base, "compaction", index=INDEX).details["file_groups"] > 0
    assert _found_by_a_filter(spark, base) == _rows_of_before(spark, base)
    assert run_job(spark, base, "audit", index=INDEX).details["clean"]


@pytest.mark.exhaustive
def test_a_statement_with_a_filter_changes_all_rows_by_the_printed_options(spark: SparkSession, base: Path) -> None:
    printed = writer_options(
        Target.of(Registration("t", str(base), "sales", NOW, NOW, index=INDEX), lock_options={}, num_buckets=2),
        WriterEngine.SPARK_SQL,
        callback=Callback("http://127.0.0.1:1/"),
    )
    options = {key: value for key, value in printed.options.items() if ".callback." not in key}
    rows_before = len(tables.snapshot(spark, base))
    LongSession(spark, base, {**options, **tables.LOCK}).run("UPDATE {table} SET qty = -7, ver = 9L WHERE ver >= 0")
    after = spark.read.format("hudi").load(str(base)).groupBy("qty").count().collect()
    assert [tuple(row) for row in after] == [(-7, rows_before)]


@pytest.mark.exhaustive
def test_a_compaction_that_waits_for_the_writes_in_flight_hides_nothing(spark: SparkSession, base: Path) -> None:
    session = LongSession(spark, base, SESSION)
    for rest in range(20, 23):
        update = f"UPDATE {{table}} SET qty = {rest}, ver = 5{rest}L WHERE id % 30 = {rest}"
        _compact_beside(spark, base, partial(session.run, update))
        assert _found_by_a_filter(spark, base) == _rows_of_before(spark, base)
    assert run_job(spark, base, "audit", index=INDEX).details["clean"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("kind", "params", "buckets"),
    [
        ("bucket_expansion", {"factor": 2}, 4),
        pytest.param("clustering", {"sort_by": ["qty"]}, 2, marks=pytest.mark.exhaustive),
    ],
)
def test_a_rewrite_keeps_rows_that_statistics_hide(
    spark: SparkSession, base: Path, kind: str, params: dict[str, object], buckets: int
) -> None:
    before = tables.snapshot(spark, base)
    result = run_job(spark, base, kind, params, index=INDEX, writers_query_pruning_off=True)
    assert result.details["rows"] == len(before)
    assert tables.snapshot(spark, base) == before
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    tables.in_order(spark, base, buckets)
    # The rewrite's own statistics are right again.
    assert run_job(spark, base, "audit", index=INDEX).details["clean"]


@pytest.mark.exhaustive
def test_rows_that_are_deleted_while_a_rewrite_reads_are_not_missing(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, count=300, updates=1)
    gone = tables.rows(spark, 0, 300, ts=5).where("city >= 500")
    left = 300 - gone.count()
    delete = partial(tables.upsert, gone, base, {**options, "hoodie.datasource.write.operation": "delete"})

    result = run_job(spark, base, "bucket_expansion", {"factor": 2}, context=At("rewriting", delete))

    assert result.details["rows"] == left
    assert len(proved(spark, base, 8)) == left


@pytest.mark.exhaustive
def test_a_rewrite_that_is_given_too_few_rows_changes_nothing(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tables.snapshot(spark, base)
    monkeypatch.setattr(rows, "_SKIP_NOTHING", {"hoodie.enable.data.skipping": "true"})
    # Hudi uses the statistics of partitions only where no filter chooses partitions by the values of their fields.
    monkeypatch.setattr(rows, "narrowed", lambda *_: None)
    assert rows.of_partitions(hudi_table(spark, base, INDEX), PARTITIONS).count() < len(before)
    params = {"factor": 2, "engine": "hudi"}
    with pytest.raises(RefusedError, match="its base file has"):
        run_job(spark, base, "bucket_expansion", params, index=INDEX, writers_query_pruning_off=True)
    monkeypatch.undo()
    assert tables.snapshot(spark, base) == before
    assert tables.left_behind(base) == []
