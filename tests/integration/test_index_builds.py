"""Indexes are built and dropped by jobs: rows stay as they are, writers go on, and readers find the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError, WritersActiveError
from jobs.hudi.indexer import Indexer
from jobs.job_context import JobContext
from jobs.table_errors import IndexDiffersError, IndexTooSlowError
from tests.acceptance.storage import listing
from tests.integration import indexed, tables
from tests.integration.run import run_job
from tests.integration.writers import HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
FLAT: dict[str, Any] = {"num_buckets": None, "table_type": COW, "partitioned": False}
COUNT = 60
NOTE = ".hoodie/.aux/groundskeeper.indexing"
# Two files instead of ten keep the tests quick.
BUILDS: dict[str, dict[str, Any]] = {
    "record": {"file_groups": 2},
    "partitioned_record": {"file_groups": 2},
    "column_stats": {"columns": ["city", "region", "id"]},
    "bloom_filters": {},
}
CONDITIONS = ("id = 'k7'", "id in ('k1', 'k59', 'nobody')", "city = 433", "region = 'r3'", "ts >= 1")


def job(spark: SparkSession, base: Path, action: str, index: str | None = None, **more: Any) -> dict[str, Any]:
    """Runs a job of the kind, and asserts that no row changes, nor a file if there is nothing to do."""
    rows, files = tables.snapshot(spark, base, metadata=False), listing(base)
    details = run_job(spark, base, "index", order(action, index), index=None, **more).details
    if more.get("dry_run") or details.get("nothing_to_do"):
        assert listing(base) == files
        return details
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    return details


def order(action: str, index: str | None = None) -> dict[str, Any]:
    chosen = BUILDS.get(index or "", {}) if action == "build" else {}
    return {"action": action, **({"index": index} if index else {}), **chosen}


def assert_right(spark: SparkSession, base: Path, *partitions: str) -> None:
    """Asserts that the table has exactly these indexes, and that jobs and readers find the same rows by them."""
    found = run_job(spark, base, "index", {}, index=None).details
    assert (found["compared"], found["differences"]) == (sorted(partitions), [])
    # If the table has no index, a single condition is enough for readers.
    indexed.found_by_indexes(spark, base, CONDITIONS if partitions else CONDITIONS[:1])
    assert not (base / NOTE).exists()


def require_built(
    spark: SparkSession,
    base: Path,
    index: str,
    *,
    version: int = 9,
    table_type: str = COW,
    partitioned: bool = True,
    to_the_end: bool = True,
) -> None:
    shape = {"version": version, "table_type": table_type, "partitioned": partitioned}
    options = tables.write_table(spark, base, count=COUNT, updates=1, num_buckets=None, **shape)
    dry = job(spark, base, "build", index, dry_run=True)
    assert (dry["refusals"], dry["indexes"]) == ([], [])
    assert dry["cost"]["entries_per_commit"] > 0
    assert dry["cost"]["bytes_per_commit"] > 0

    done = job(spark, base, "build", index)

    names = done["partitions"]
    assert_right(spark, base, *names)
    assert all(each["base_files"] and each["age_seconds"] >= 0 for each in done["indexes"])
    assert job(spark, base, "build", index)["nothing_to_do"] is True
    # A writer whose session was open before gets the options that the result names.
    more = {each["name"]: each["value"] for each in done["writer_options"]}
    tables.upsert(tables.rows(spark, 0, COUNT + 10, ts=5), base, {**options, **more})
    assert len(tables.snapshot(spark, base)) == COUNT + 10
    assert_right(spark, base, *names)

    assert job(spark, base, "drop", index)["indexes"] == []
    assert job(spark, base, "drop", index)["nothing_to_do"] is True
    assert_right(spark, base)
    if not to_the_end:
        return
    # A writer with the options from before the job neither builds the index again nor misses it.
    tables.upsert(tables.rows(spark, 5, COUNT + 20, ts=6), base, options)
    assert len(tables.snapshot(spark, base)) == COUNT + 20
    assert_right(spark, base)
    assert run_job(spark, base, "audit", index=None).details["clean"]


def test_a_table_without_a_metadata_table_has_no_index(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=COUNT, metadata=False, **FLAT)
    assert not (base / ".hoodie/metadata").exists()
    for dry_run in (True, False):
        found = job(spark, base, "verify", dry_run=dry_run)
        assert (found["indexes"], found["compared"]) == ([], [])
        found = job(spark, base, "drop", "column_stats", dry_run=dry_run)
        assert (found["indexes"], found["nothing_to_do"]) == ([], True)
    dry = job(spark, base, "build", "column_stats", dry_run=True)
    assert [each["type"] for each in dry["refusals"]] == ["no-metadata-table"]


# Statistics of columns are built, compared and found incomplete in `test_partial_statistics.py`, and below.
@pytest.mark.parametrize(
    "index",
    ["bloom_filters", *(pytest.param(each, marks=pytest.mark.exhaustive) for each in ("column_stats", "record"))],
)
def test_an_index_is_built_kept_by_writers_and_dropped(spark: SparkSession, tmp_path: Path, index: str) -> None:
    # A table without partitions is quicker, because a commit writes entries for each partition.
    shape: dict[str, Any] = {"table_type": MOR} if index == "record" else {"table_type": COW, "partitioned": False}
    # The next test has a writer with the options from before the index was built.
    require_built(spark, tmp_path / "trips", index, to_the_end=index == "record", **shape)


@pytest.mark.exhaustive
@pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "flat"])
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("index", BUILDS)
def test_any_index_is_built_and_dropped_on_any_table(
    spark: SparkSession, tmp_path: Path, index: str, version: int, table_type: str, *, partitioned: bool
) -> None:
    if index == "partitioned_record" and (version < 9 or not partitioned):
        pytest.skip("refused, or the same as a global one")
    require_built(spark, tmp_path / "trips", index, version=version, table_type=table_type, partitioned=partitioned)


def test_a_write_in_flight_delays_a_build_and_a_writer_with_stale_options_loses_no_row(
    spark: SparkSession, base: Path
) -> None:
    options = tables.write_table(spark, base, count=COUNT, **FLAT)
    writer = HeldWriter(tables.rows(spark, 0, COUNT + 10, ts=5), base, options).start()
    with pytest.raises(WritersActiveError):
        run_job(spark, base, "index", {**order("build", "bloom_filters"), "wait_seconds": 0}, index=None)
    writer.let_go_after(1)
    done = run_job(spark, base, "index", order("build", "bloom_filters"), index=None).details
    writer.finish()
    assert len(tables.snapshot(spark, base)) == COUNT + 10
    assert_right(spark, base, *done["partitions"])
    # The options of this writer do not name the index: it drops it.
    tables.upsert(tables.rows(spark, 0, COUNT + 20, ts=6), base, options)
    assert len(tables.snapshot(spark, base)) == COUNT + 20
    assert_right(spark, base)


def test_an_index_that_differs_or_takes_too_long_is_taken_back(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tables.write_table(spark, base, count=COUNT, **FLAT)
    build, context = Indexer.build, JobContext()

    def without_entries(self: Indexer, *of: Any) -> None:
        build(self, *of)
        for file in (base / ".hoodie" / "metadata" / "column_stats").glob("*.hfile"):
            file.unlink()

    def build_too_slowly(self: Indexer, *of: Any) -> None:
        build(self, *of)
        context.end(IndexTooSlowError("after 1 s"))

    for spoiled, index, error in (
        (without_entries, "column_stats", IndexDiffersError),
        (build_too_slowly, "record", IndexTooSlowError),
    ):
        monkeypatch.setattr(Indexer, "build", spoiled)
        with pytest.raises(error):
            run_job(spark, base, "index", order("build", index), index=None, context=context)
        monkeypatch.undo()
        assert_right(spark, base)
    tables.upsert(tables.rows(spark, 0, COUNT, ts=6), base, options)
    assert len(tables.snapshot(spark, base)) == COUNT


def test_an_index_job_that_cannot_be_proved_is_refused(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=COUNT, **FLAT)

    def reasons(params: dict[str, Any], **declared: Any) -> list[str]:
        dry = run_job(spark, base, "index", params, index=None, dry_run=True, declared=declared).details["refusals"]
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "index", params, index=None, declared=declared)
        assert [each.type for each in refused.value.reasons] == [each["type"] for each in dry]
        return [each["type"] for each in dry]

    record = order("build", "record")
    assert reasons(order("build", "secondary")) == ["index-not-offered"]
    assert reasons(record, writers_hudi_version="0.15.0") == ["index-not-kept"]
    assert reasons(record, writers_hudi_version="1.1.1") == ["index-not-kept"]
    assert reasons(record, readers_hudi_version="1.0.2") == ["index-not-kept"]
    assert reasons(record, writers_engines=("flink",)) == ["index-not-kept"]
    assert reasons({**order("build", "column_stats"), "columns": ["citty"]}) == ["column-unknown"]
    twice = {"hoodie.datasource.write.operation": "insert", "hoodie.merge.allow.duplicate.on.inserts": "true"}
    options = tables.writer_options(base, **FLAT)
    tables.upsert(tables.rows(spark, 0, 1, ts=5), base, {**options, **twice})
    assert reasons(record) == ["keys-not-unique"]
    (base / ".hoodie" / "timeline" / "20261127000000000.indexing.requested").write_bytes(b"")
    assert "indexing-pending" in reasons(order("build", "bloom_filters"))


@pytest.mark.exhaustive
def test_a_record_index_is_not_dropped_while_a_secondary_index_needs_it(spark: SparkSession, base: Path) -> None:
    indexed.write(spark, base, {**indexed.GLOBAL, **indexed.SECONDARY_ON_CITY}, table_type=COW)
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "index", order("drop", "record"), index=None)
    assert [each.type for each in refused.value.reasons] == ["index-in-use"]
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "index", order("build", "partitioned_record"), index=None)
    assert [each.type for each in refused.value.reasons] == ["other-record-index"]
    run_job(spark, base, "index", {"action": "drop", "index": "secondary", "name": "city"}, index=None)
    assert_right(spark, base, "record_index")
    job(spark, base, "drop", "record")
    assert_right(spark, base)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "keeps",
    [pytest.param(True, id="with its option"), pytest.param(False, id="with the options of before")],
)
@pytest.mark.parametrize("index", ["record", "bloom_filters"])
def test_statements_of_a_session_that_was_open_before_lose_no_row(
    spark: SparkSession, base: Path, index: str, *, keeps: bool
) -> None:
    """Spark SQL builds column statistics by default, and so a second index after ours."""
    tables.write_table(spark, base, count=COUNT, **FLAT)
    session, name = spark.newSession(), f"t_{index}_{keeps}"
    session.sql(f"create table {name} using hudi location '{base}'")
    session.sql("set hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    try:
        assert session.sql(f"select id from {name}").count() == COUNT
        done = job(spark, base, "build", index)
        for each in done["writer_options"] if keeps else ():
            session.sql(f"set {each['name']}={each['value']}")
        session.sql(f"update {name} set fare = -1 where id = 'k7'")
        session.sql(f"delete from {name} where id = 'k8'")
        found = {row.id: row.fare for row in session.sql(f"select id, fare from {name}").collect()}
    finally:
        session.sql(f"drop table {name}")
    assert (len(found), found["k7"], "k8" in found) == (COUNT - 1, -1, False)
    assert len(tables.snapshot(spark, base, metadata=False)) == COUNT - 1
    verified = run_job(spark, base, "index", {}, index=None).details
    assert [each for each in verified["differences"] if each["partition"] in done["partitions"]] == []
    assert not keeps or set(done["partitions"]) <= set(verified["compared"])
    indexed.found_by_indexes(spark, base, CONDITIONS)
    assert run_job(spark, base, "audit", index=None).details["clean"]
