"""Restores to a savepoint from before an index was built, or from before its column came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.errors import HudiError, LeaseLostError, WritersActiveError
from jobs.hudi import index_note
from jobs.services import restored_indexes
from tests.integration import indexed, tables
from tests.integration.dying_job import DyingJob
from tests.integration.run import hudi_table, perform_order, run_job, work_order
from tests.integration.test_evolved_schemas import ON_READ, RENAME, altering, values
from tests.integration.writers import At, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.hudi.client import WriteClient
    from jobs.hudi.table import HudiTable
    from tests.integration.doomed import Spares

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
FLAT: dict[str, Any] = {"num_buckets": None, "partitioned": False, "table_type": COW}
TIP = "if(ts > 0, concat('t', id), null)"
INDEXES = {
    "secondary_index_tip": {**indexed.GLOBAL, "hoodie.metadata.index.secondary.column": "tip"},
    "expr_index_tip": {
        "hoodie.metadata.index.expression.enable": "true",
        "hoodie.metadata.index.expression.column": "tip",
        "hoodie.metadata.index.expression.options": "expr=upper",
    },
}


def saved(spark: SparkSession, base: Path) -> dict[str, Any]:
    """Makes a savepoint, and returns the parameters of a restore to it."""
    savepoint = run_job(spark, base, "savepoint", index=None).details["savepoint"]
    return {"savepoint": savepoint, "table_name": "test"}


def restore_and_audit(spark: SparkSession, base: Path, to: dict[str, Any]) -> Any:
    done = run_job(spark, base, "restore", to, index=None, writers_stopped=True).details
    audit = run_job(spark, base, "audit", index=None).details
    assert audit["clean"], audit
    return done


def indexed_by_tip(spark: SparkSession, base: Path, index: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Writes a table that gets a column and its index after a savepoint; returns the options of the writers before, and
    the parameters of a restore."""
    more = {**indexed.FEW_FILES, **(indexed.GLOBAL if "secondary" in index else {})}
    options = tables.write_table(spark, base, count=20, **FLAT, **more)
    to = saved(spark, base)
    for number, last in enumerate(({}, INDEXES[index]), 1):
        tipped = tables.rows(spark, 10, 30, ts=number).withColumn("tip", F.expr(TIP))
        tables.upsert(tipped, base, {**options, "hoodie.embed.timeline.server": "true", **last})
    assert index in hudi_table(spark, base, None).metadata_partitions
    return options, to


def ids(spark: SparkSession, base: Path) -> int:
    """Returns the number of rows, after it has asserted that each has a key of its own."""
    found = [row[0] for row in spark.read.format("hudi").load(str(base)).select("id").collect()]
    assert len(found) == len(set(found))
    return len(found)


@pytest.mark.parametrize(
    ("shape", "dies"),
    [
        ({}, False),
        pytest.param({}, True, marks=pytest.mark.exhaustive),
        *(
            pytest.param(each, False, marks=pytest.mark.exhaustive)
            for each in ({"version": 6}, {"version": 8}, {"table_type": MOR}, {"table_type": MOR, "partitioned": True})
        ),
    ],
)
def test_a_record_index_that_was_built_after_the_savepoint_has_all_keys(
    spark: SparkSession, base: Path, shape: dict[str, Any], *, dies: bool
) -> None:
    options = tables.write_table(spark, base, count=20, **{**FLAT, **shape}, **indexed.FEW_FILES)
    to, before = saved(spark, base), tables.snapshot(spark, base)
    run_job(spark, base, "index", {"action": "build", "index": "record"}, index=None)
    indexing = {**options, **indexed.GLOBAL}
    tables.upsert(tables.rows(spark, 10, 30, ts=1), base, indexing)
    if dies:
        context = At("comparing the indexes", _lose)
        order = work_order(base, "restore", to, index=None, writers_stopped=True, job_id="job_dies")
        with pytest.raises(LeaseLostError):
            perform_order(spark, order, context)
        again = work_order(
            base, "restore", to, index=None, writers_stopped=True, job_id="job_dies", earlier_instants=context.instants
        )
        assert perform_order(spark, again).details["found_completed"]
    else:
        restore_and_audit(spark, base, to)
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    # A writer that looks its keys up in the index.
    tables.upsert(tables.rows(spark, 0, 25, ts=2), base, indexing)
    assert ids(spark, base) == 25
    audit = run_job(spark, base, "audit", index=None).details
    assert audit["clean"], audit


@pytest.mark.exhaustive
def test_the_attempt_after_a_restore_builds_no_index_beside_a_write_in_flight(spark: SparkSession, base: Path) -> None:
    """Somebody starts a writer after the first attempt has restored the rows and died."""
    options = tables.write_table(spark, base, count=20, **FLAT, **indexed.FEW_FILES)
    to = saved(spark, base)
    run_job(spark, base, "index", {"action": "build", "index": "record"}, index=None)
    tables.upsert(tables.rows(spark, 10, 30, ts=1), base, {**options, **indexed.GLOBAL})
    job = DyingJob(spark, work_order(base, "restore", to, index=None, writers_stopped=True))
    job.die_at({"at": "step", "name": "comparing the indexes"})
    writer = HeldWriter(tables.rows(spark, 0, 25, ts=2), base, options).start()
    with pytest.raises(WritersActiveError):
        job.finish()
    writer.finish()
    job.finish()
    assert (ids(spark, base), {row["ts"] for row in tables.collected(spark, base).rows}) == (25, {2})
    tables.upsert(tables.rows(spark, 5, 30, ts=3), base, {**options, **indexed.GLOBAL})
    assert ids(spark, base) == 30
    audit = run_job(spark, base, "audit", index=None).details
    assert audit["clean"], audit


BUILDING = "the building"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("version", "points"),
    [
        (9, ({"at": "before", "name": BUILDING}, {"at": "file", "name": ".hoodie/metadata/record_index/*"})),
        (9, ({"at": "file", "name": ".hoodie/hoodie.properties.backup"}, {"at": "after", "name": BUILDING})),
        (6, ({"at": "after", "name": "the restore"}, {"at": "after", "name": BUILDING})),
    ],
)
def test_wherever_a_restore_is_killed_the_next_attempt_completes_the_indexes(
    spark: SparkSession, base: Path, spares: Spares, version: int, points: tuple[dict[str, Any], ...]
) -> None:
    shape = {**FLAT, "version": version, **indexed.STATISTICS, **indexed.FEW_FILES}
    options = tables.write_table(spark, base, count=20, **shape)
    to, before = saved(spark, base), tables.snapshot(spark, base)
    run_job(spark, base, "index", {"action": "build", "index": "record"}, index=None)
    indexing = {**options, **indexed.GLOBAL}
    tables.upsert(tables.rows(spark, 10, 30, ts=1), base, indexing)
    job = DyingJob(spark, work_order(base, "restore", to, index=None, writers_stopped=True), spares)
    for death in job.deaths(points):
        assert death.result is None
        assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before

    job.finish()

    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    assert not (base / indexed.NOTE).exists()
    assert {"record_index", "column_stats"} <= hudi_table(spark, base, None).metadata_partitions
    tables.upsert(tables.rows(spark, 0, 25, ts=2), base, indexing)
    assert ids(spark, base) == 25
    audit = run_job(spark, base, "audit", index=None).details
    assert audit["clean"], audit
    assert tables.left_behind(base) == []


def _restore_as_before(table: HudiTable, client: WriteClient, _: object) -> tuple[str, ...]:
    """Does what a restore did before `restored_indexes`."""
    client.metadata_table.build_missing(index_note.keep(table))
    return ()


@pytest.mark.exhaustive
@pytest.mark.parametrize("index", INDEXES)
def test_a_rebuild_cures_a_table_that_an_older_restore_has_left(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    options, to = indexed_by_tip(spark, base, index)
    monkeypatch.setattr(restored_indexes, "settle", _restore_as_before)
    with pytest.raises(HudiError, match="tip"):
        restore_and_audit(spark, base, to)
    findings = run_job(spark, base, "audit", index=None).details["findings"]
    (cure,) = [each["cure"] for each in findings if each["type"] == "indexes-unbuilt"]
    run_job(spark, base, cure["kind"], cure["params"], index=None, declared={"writers_stopped": True})
    tables.upsert(tables.rows(spark, 0, 25, ts=3), base, options)
    assert ids(spark, base) == 25
    assert run_job(spark, base, "audit", index=None).details["clean"]


def _lose() -> None:
    raise LeaseLostError


@pytest.mark.exhaustive
@pytest.mark.parametrize("index", INDEXES)
def test_an_index_of_a_column_that_came_after_the_savepoint_is_dropped(
    spark: SparkSession, base: Path, index: str
) -> None:
    options, to = indexed_by_tip(spark, base, index)
    before = tables.rows(spark, 0, 20)
    wanted = sorted(str([*row]) for row in before.collect())

    assert restore_and_audit(spark, base, to)["indexes_dropped"] == [index]

    for metadata in (True, False):
        rows = tables.collected(spark, base, by_listing=not metadata).rows
        assert sorted(str([row[name] for name in before.columns]) for row in rows) == wanted
    assert "tip" not in rows[0]
    tables.upsert(tables.rows(spark, 0, 25, ts=3), base, options)
    assert ids(spark, base) == 25
    assert index not in hudi_table(spark, base, None).metadata_partitions


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("compacted", [True, False])
def test_statistics_that_came_back_after_a_column_was_renamed_cover_its_old_name(
    spark: SparkSession, base: Path, table_type: str, *, compacted: bool
) -> None:
    """The session of the `ALTER TABLE` drops indexes that it does not name, and the next write builds them anew."""
    shape = {**FLAT, "table_type": table_type, "hoodie.parquet.small.file.limit": "0"}
    more = {**indexed.GLOBAL, **indexed.STATISTICS, **indexed.FEW_FILES}
    options = tables.write_table(spark, base, count=20, **shape, **more)
    to, before = saved(spark, base), values(spark, base, "city")
    altering(spark, base, RENAME)()
    renamed = tables.rows(spark, 10, 30, ts=1).withColumnRenamed("city", "town")
    tables.upsert(renamed, base, {**options, ON_READ: "true"})
    if compacted:
        run_job(spark, base, "metadata_table", {"action": "compact"}, index=None)
    restore_and_audit(spark, base, to)
    assert values(spark, base, "city") == before
    for number, job in enumerate(_services(table_type), 2):
        run_job(spark, base, *job, index=None)
        assert values(spark, base, "city") == before[:20] or number > 2
        tables.upsert(tables.rows(spark, 20, 20 + number, ts=number), base, options)
        assert ids(spark, base) == 20 + number
        audit = run_job(spark, base, "audit", index=None).details
        assert audit["clean"], audit


def _services(table_type: str) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = [("clustering", {"sort_by": ["fare"]})]
    return found + ([("compaction", {})] if table_type == MOR else [])


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_first", [True, False])
def test_beside_duplicate_keys_a_record_index_is_as_at_the_savepoint_or_dropped(
    spark: SparkSession, base: Path, *, is_first: bool
) -> None:
    """The index was built before the savepoint, or after it, when the second row of the key had been deleted."""
    no_small_files = {"hoodie.parquet.small.file.limit": "0", "hoodie.embed.timeline.server": "true"}
    plain = tables.writer_options(
        base, **FLAT, **indexed.FEW_FILES, **no_small_files, **{"hoodie.index.type": "SIMPLE"}
    )
    indexing = {**plain, **indexed.GLOBAL}
    options = indexing if is_first else plain
    tables.upsert(tables.rows(spark, 0, 20), base, options)
    operation = "hoodie.datasource.write.operation"
    second = tables.rows(spark, 0, 1, ts=5)
    tables.upsert(second, base, {**options, operation: "insert", "hoodie.merge.allow.duplicate.on.inserts": "true"})
    to, before = saved(spark, base), tables.snapshot(spark, base)
    assert len(before) == 21
    if not is_first:
        tables.upsert(second, base, {**options, operation: "delete"})
        run_job(spark, base, "index", {"action": "build", "index": "record"}, index=None)
    tables.upsert(tables.rows(spark, 10, 30, ts=7), base, indexing)

    done = run_job(spark, base, "restore", to, index=None, writers_stopped=True).details

    assert list(done.get("indexes_dropped", [])) == ([] if is_first else ["record_index"])
    assert ("record_index" in hudi_table(spark, base, None).metadata_partitions) is is_first
    assert index_note.unbuilt(hudi_table(spark, base, None)) is None
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    tables.upsert(tables.rows(spark, 5, 25, ts=9), base, options)
    found = sorted((row["id"], row["ts"]) for row in tables.collected(spark, base).rows)
    assert found == sorted([("k0", 5), *((f"k{n}", 9 if n >= 5 else 0) for n in range(25))])
    findings = run_job(spark, base, "audit", index=None).details["findings"]
    assert {each["type"] for each in findings} - {"index-differs-from-rows"} == {"duplicate-keys"}
    assert len(findings) == 1 + is_first
