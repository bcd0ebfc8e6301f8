"""The service finds and repairs writes to replaced file groups, as a long Spark SQL session makes them. A repair whose
files are gone fails, unless a later base file is proved to have their rows."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 - the name that PySpark users know

from jobs.contract import BucketIndex, WriterEngine
from jobs.errors import CommitUndoneError, DeletesLostError, FilesGoneError, RefusedError
from jobs.protocol.writer_engines import PRUNING
from jobs.services import later_overwrites
from service.catalog.registration import Registration
from service.writer_options.options import writer_options
from service.writer_options.written_table import Callback, Target
from tests.integration import tables
from tests.integration.hidden import hidden, write_stale
from tests.integration.independent import rows_by_hudi_rs, rows_by_spark
from tests.integration.long_session import LongSession
from tests.integration.plans import OtherRunner
from tests.integration.run import proved, run_job
from tests.integration.tables import INDEX, completed_files, newest, texts
from tests.integration.test_bucket_count import count_buckets, index_of
from tests.integration.writers import At, let_heartbeats_expire

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
PARQUET_METADATA = {"hoodie.partition.metafile.use.base.format": "true"}
UPDATE = "UPDATE {table} SET fare = -1.0, ts = 5 WHERE city < 500"
DELETE = "DELETE FROM {table} WHERE city >= 800"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
# Numbers of rows, among 300.
UPDATED, DELETED = 149, 61


def written_stale(
    spark: SparkSession, base: Path, statement: str, *, table_type: str, version: int = 9, partitioned: bool = True
) -> dict[str, str]:
    """Writes a table of 300 rows, clusters it inside its buckets, and commits the statement to the old file groups."""
    shape = {"table_type": table_type, "version": version, "partitioned": partitioned}
    options = tables.writer_options(base, **shape)  # type: ignore[arg-type]

    def write(path: Path) -> None:
        tables.write_table(spark, path, count=300, **shape)
        session = LongSession(spark, path, options)
        run_job(spark, path, "clustering", {"sort_by": ["city"]})
        session.run(statement)

    tables.prepared(base, f"stale {statement} {sorted(options.items())}", write)
    return options


def _by_partition(spark: SparkSession, base: Path) -> dict[str, set[tuple[str, int]]]:
    """Returns keys and ordering values of the rows, by the value of the partition column."""
    found: dict[str, set[tuple[str, int]]] = {}
    for row in tables.collected(spark, base).rows:
        found.setdefault(row["dt"], set()).add((row["id"], row["ts"]))
    return found


@pytest.mark.parametrize("how", ["rolled back", pytest.param("made anew", marks=pytest.mark.exhaustive)])
def test_a_repair_writes_no_row_of_a_stale_write_that_is_undone_meanwhile(
    spark: SparkSession, base: Path, how: str
) -> None:
    options = written_stale(spark, base, UPDATE, table_type=MOR, partitioned=False)

    def undo() -> None:
        if how == "rolled back":
            OtherRunner(spark, base, options).client.rollback(newest(base))
        else:
            tables.rows(spark, 0, 300).write.format("hudi").options(**options).mode("overwrite").save(str(base))

    with pytest.raises(CommitUndoneError):
        run_job(spark, base, "repair", context=At("waiting for writers to finish", undo))

    assert {row["ts"] for row in tables.collected(spark, base).rows} == {0}
    tables.upsert(tables.rows(spark, 0, 60, ts=9), base, options)
    assert len(proved(spark, base, 4)) == 300


def test_a_repair_of_instants_that_the_table_does_not_know_is_refused_with_their_names(
    spark: SparkSession, base: Path
) -> None:
    options = written_stale(spark, base, UPDATE, table_type=MOR, partitioned=False)
    stale, unknown = newest(base), ["20200101000000000", "20990101000000000"]
    before = tables.snapshot(spark, base)
    for params in ({"instants": [*unknown, stale]}, {"accepted": unknown}):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "repair", params)
        planned = run_job(spark, base, "repair", params, dry_run=True).details["refusals"]
        found = [(each.type, each.detail) for each in refused.value.reasons]
        assert (
            [(each["type"], each["detail"]) for each in planned] == found == [("instants-unknown", ", ".join(unknown))]
        )
    assert (newest(base), tables.snapshot(spark, base)) == (stale, before)
    OtherRunner(spark, base, options).client.rollback(stale)
    # The service may not know yet that somebody has rolled the commit back.
    assert run_job(spark, base, "repair", {"instants": [stale]}).details["repaired"] == []


@pytest.mark.parametrize("partitioned", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_repair_brings_back_no_row_of_a_stale_write_before_an_overwrite(
    spark: SparkSession, base: Path, *, partitioned: bool
) -> None:
    """The rows of the stale write have a greater ordering value than those of the overwrite."""
    options = written_stale(spark, base, UPDATE, table_type=MOR, partitioned=partitioned)
    before = _by_partition(spark, base)
    overwrite = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    tables.upsert(
        tables.rows(spark, 0, 60, ts=1).where("dt = '2026-01-01'" if partitioned else "true"), base, overwrite
    )
    overwritten = _by_partition(spark, base)
    assert set(before) == set(overwritten)
    assert {ts for _, ts in overwritten["2026-01-01"]} == {1}

    repaired = run_job(spark, base, "repair").details

    assert len(repaired["repaired"]) == 1
    found = _by_partition(spark, base)
    kept = {"2026-01-01"} if partitioned else set(found)
    assert {path for path in found if found[path] == overwritten[path]} == kept
    assert len(proved(spark, base, 4)) == sum(map(len, found.values()))


@pytest.mark.exhaustive
def test_an_audit_finds_rows_that_a_repair_has_brought_back_after_an_overwrite(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions of this service made such repairs."""
    options = written_stale(spark, base, UPDATE, table_type=MOR, partitioned=False)
    stale = newest(base)
    overwrite = {**options, "hoodie.datasource.write.operation": "insert_overwrite"}
    tables.upsert(tables.rows(spark, 0, 60, ts=1), base, overwrite)
    by = newest(base)
    monkeypatch.setattr(later_overwrites, "left", lambda strays, deletes, *_: (strays, list(deletes)))
    repair, _ = run_job(spark, base, "repair").instants
    assert {row["ts"] for row in tables.collected(spark, base).rows} == {1, 5}

    (finding,) = run_job(spark, base, "audit").details["findings"]

    assert finding["type"] == "overwritten-rows-back"
    assert finding["detail"] == f"rows of {stale} in '', which {by} had removed, by {repair}"
    tables.upsert(tables.rows(spark, 0, 60, ts=1), base, overwrite)
    assert run_job(spark, base, "audit").details["clean"]


@pytest.mark.parametrize(
    ("table_type", "version", "partitioned"),
    [
        (MOR, 9, False),
        pytest.param(MOR, 9, True, marks=pytest.mark.exhaustive),
        pytest.param(COW, 6, True, marks=pytest.mark.exhaustive),
        pytest.param(COW, 9, True, marks=pytest.mark.exhaustive),
        pytest.param(MOR, 6, True, marks=pytest.mark.exhaustive),
    ],
)
def test_a_stale_update_is_found_protected_from_cleaning_and_repaired(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int, *, partitioned: bool
) -> None:
    base = tmp_path / "trips"
    shape = {"table_type": table_type, "version": version, "partitioned": partitioned}
    options = written_stale(spark, base, UPDATE, **shape)  # type: ignore[arg-type]

    audit = run_job(spark, base, "audit").details
    assert not audit["clean"]
    (stale,) = audit["stale_writes"]
    assert stale["operation"] == "UPSERT_PREPPED"
    with pytest.raises(RefusedError, match="UPSERT_PREPPED"):
        run_job(spark, base, "cleaning", {"retain": 1})
    assert run_job(spark, base, "repair", dry_run=True).details["stale"] == [stale["instant"]]

    result = run_job(spark, base, "repair")

    assert result.details["repaired"] == [stale["instant"]]
    assert result.details["rows"] == UPDATED
    assert len(proved(spark, base, 4)) == 300
    rows = spark.read.format("hudi").load(str(base))
    expected = tables.rows(spark, 0, 300)
    expected = expected.withColumn("fare", F.when(F.col("city") < 500, -1.0).otherwise(F.col("fare")))
    expected = expected.withColumn("ts", F.when(F.col("city") < 500, 5).otherwise(F.col("ts")).cast("long"))
    assert _sorted_rows(rows.select(*expected.columns)) == _sorted_rows(expected)
    assert rows_by_hudi_rs(base) == rows_by_spark(spark, base)
    assert list(tmp_path.glob("*groundskeeper*")) == []
    tables.upsert(tables.rows(spark, 0, 400, ts=9), base, options)
    assert len(proved(spark, base, 4)) == 400
    # No repair is left, and the table may be cleaned again.
    assert run_job(spark, base, "repair").details["repaired"] == []
    run_job(spark, base, "cleaning", {"retain": 1})


@pytest.mark.parametrize(
    ("table_type", "is_parquet"),
    [(MOR, True), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in [(COW, True), (MOR, False)])],
)
def test_a_repair_reads_partitions_whose_metadata_are_parquet_files_or_gone(
    spark: SparkSession, base: Path, tmp_path: Path, table_type: str, *, is_parquet: bool
) -> None:
    """An option of writers and Hudi's `repair_migrate_partition_meta` make such files, without which readers that list
    the storage find no partition. Readers of the metadata table do not need them."""
    shape = {"table_type": table_type, "metadata": not is_parquet, "num_buckets": 1}
    more, index = PARQUET_METADATA if is_parquet else {}, BucketIndex(1, ("id",))
    options = tables.write_table(spark, base, count=60, **shape, **more)  # type: ignore[arg-type]
    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=index)
    with hidden(base, newest(base), tmp_path / "away"):
        tables.upsert(tables.rows(spark, 0, 30, ts=5), base, options)
    kept = {
        path: path.read_bytes()
        for path in base.rglob(".hoodie_partition_metadata*")
        if ".hoodie/" not in str(path) and path.suffix == (".parquet" if is_parquet else "")
    }
    for path in kept if not is_parquet else ():
        path.unlink()
    assert kept

    assert run_job(spark, base, "repair", index=index).details["rows"] == 30

    for path, content in kept.items():
        path.write_bytes(content)
    assert sum(row["ts"] == 5 for row in tables.collected(spark, base).rows) == 30
    assert len(proved(spark, base, 1, index)) == 60


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_a_stale_delete_of_merge_on_read_is_repaired(spark: SparkSession, base: Path, version: int) -> None:
    written_stale(spark, base, DELETE, table_type=MOR, version=version)
    assert not run_job(spark, base, "audit").details["clean"]

    result = run_job(spark, base, "repair")

    assert result.details["deletes"] == DELETED
    assert len(proved(spark, base, 4)) == 300 - DELETED
    assert spark.read.format("hudi").load(str(base)).where("city >= 800").count() == 0


@pytest.mark.exhaustive
def test_stale_deletes_of_copy_on_write_are_reported_as_lost_until_they_are_run_again(
    spark: SparkSession, base: Path
) -> None:
    options = written_stale(spark, base, DELETE, table_type=COW)
    (stale,) = run_job(spark, base, "audit").details["stale_writes"]

    with pytest.raises(DeletesLostError, match=f"{DELETED} of {stale['instant']}"):
        run_job(spark, base, "repair")
    # The empty file groups no longer exist, so writers can write again; but the audit still has findings.
    audit = run_job(spark, base, "audit").details
    assert (audit["clean"], audit["buckets_with_several_file_groups"]) == (False, 0)

    LongSession(spark, base, options).run(DELETE)
    result = run_job(spark, base, "repair", {"accepted": [stale["instant"]]})

    assert result.details["repaired"] == [stale["instant"]]
    assert len(proved(spark, base, 4)) == 300 - DELETED


@pytest.mark.parametrize(("version", "partitioned"), [(9, False), pytest.param(6, True, marks=pytest.mark.exhaustive)])
def test_upserts_of_copy_on_write_fail_after_a_stale_update_until_a_repair(
    spark: SparkSession, base: Path, version: int, *, partitioned: bool
) -> None:
    options = written_stale(spark, base, UPDATE, table_type=COW, version=version, partitioned=partitioned)
    later = tables.rows(spark, 0, 10, ts=9)
    with pytest.raises(Py4JJavaError, match="belong to the same bucket id"):
        tables.upsert(later, base, options)
    # The repair would wait two minutes for the writer that has failed.
    let_heartbeats_expire(base)

    findings = {each["type"]: each for each in run_job(spark, base, "diagnosis").details["findings"]}

    assert "several-file-groups-in-bucket" not in findings
    cure = findings["stale-file-groups-in-bucket"]["cure"]
    assert run_job(spark, base, cure["kind"], cure["params"]).details["rows"] == UPDATED
    tables.upsert(later, base, options)
    assert tables.duplicates(spark, base) == 0
    rows = spark.read.format("hudi").load(str(base))
    assert (rows.count(), rows.where("ts = 9").count()) == (300, 10)
    findings = {each["type"] for each in run_job(spark, base, "diagnosis").details["findings"]}
    assert "stale-file-groups-in-bucket" not in findings


@pytest.mark.exhaustive
def test_later_writes_and_deletes_win_over_a_repaired_stale_write(spark: SparkSession, base: Path) -> None:
    options = written_stale(spark, base, UPDATE, table_type=MOR)
    cheap = tables.rows(spark, 0, 300, ts=9).where("city < 100")
    newer = cheap.count()
    tables.upsert(cheap, base, options)
    gone = tables.rows(spark, 0, 300).where("city >= 400 and city < 500")
    tables.upsert(gone, base, {**options, "hoodie.datasource.write.operation": "delete"})

    result = run_job(spark, base, "repair")

    rows = spark.read.format("hudi").load(str(base))
    assert rows.where("ts = 9").count() == newer
    assert rows.where("city >= 400 and city < 500").count() == 0
    assert rows.where("ts = 5").count() == result.details["rows"] == UPDATED - newer - gone.count()
    assert result.details["superseded"] == newer + gone.count()
    proved(spark, base, 4)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
@pytest.mark.parametrize("named", [True, False])
def test_a_write_to_replaced_file_groups_and_to_a_new_partition_by_the_old_number_is_repaired_in_both(
    spark: SparkSession, tmp_path: Path, table_type: str, version: int, named: bool
) -> None:
    """The writer behaves like a Flink job that was not stopped: it sees neither the replacement nor the hashing
    config."""
    base = tmp_path / "trips"
    options = tables.write_table(spark, base, count=300, table_type=table_type, version=version, metadata=False)
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    new_partition = tables.rows(spark, 1000, 1100, ts=5).withColumn("dt", F.lit("2026-02-01"))
    with hidden(base, newest(base), tmp_path / "away"):
        write_stale(tables.rows(spark, 0, 150, ts=5).union(new_partition), base, options)
    audit = run_job(spark, base, "audit").details
    assert audit["misplaced"] > 0
    (stale,) = audit["stale_writes"]

    result = run_job(spark, base, "repair", {"instants": [stale["instant"]]} if named else {})

    assert result.details["repaired"] == [stale["instant"]]
    assert (result.details["moved"], result.details["superseded"]) == (audit["misplaced"], 0)
    assert len(proved(spark, base, 8)) == 400
    assert spark.read.format("hudi").load(str(base)).where("ts = 5").count() == 250
    tables.upsert(tables.rows(spark, 0, 300, ts=9), base, options)
    assert len(proved(spark, base, 8)) == 400


def _sorted_rows(frame: object) -> list[str]:
    return sorted(str(row) for row in frame.collect())  # type: ignore[attr-defined]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("table_type", "version"), [(MOR, 9), (COW, 6)])
def test_a_long_session_with_the_printed_options_goes_to_the_right_file_groups(
    spark: SparkSession, base: Path, table_type: str, version: int
) -> None:
    options = tables.write_table(spark, base, count=300, table_type=table_type, version=version)
    table = Registration("t", str(base), "trips", NOW, NOW, index=INDEX)
    target = Target.of(table, lock_options={}, num_buckets=4)
    printed = writer_options(target, WriterEngine.SPARK, callback=Callback("http://127.0.0.1:1/")).options
    printed = {key: value for key, value in printed.items() if ".callback." not in key}
    session = LongSession(spark, base, {**options, **printed})
    run_job(spark, base, "clustering", {"sort_by": ["city"]})
    session.run(UPDATE)
    session.run("SELECT count(*) FROM {table}")
    run_job(spark, base, "bucket_expansion", {"factor": 2})
    session.run(DELETE)

    assert len(proved(spark, base, 8)) == 300 - DELETED
    rows = spark.read.format("hudi").option(PRUNING, "false").load(str(base))
    assert (rows.where("ts = 5").count(), rows.where("city >= 800").count()) == (UPDATED, 0)


COMPACTED = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}


def test_a_base_file_of_a_dead_writer_does_not_prove_that_the_rows_are_there(
    spark: SparkSession, tmp_path: Path, base: Path
) -> None:
    options = tables.write_table(spark, base, count=100, table_type=COW, partitioned=False)
    count_buckets(spark, base, 4, 7)
    with hidden(base, newest(base), tmp_path / "away"):
        stale = write_stale(tables.rows(spark, 0, 100, ts=5), base, options)
    for path in list(base.glob(f"*_{stale}.parquet")):
        file_id = path.name.partition("_")[0]
        shutil.move(path, base / f"{file_id}_0-999-999_{int(stale) + 1000}.parquet")

    with pytest.raises(FilesGoneError, match=stale):
        run_job(spark, base, "repair", {"instants": [stale]})

    assert [each["instant"] for each in run_job(spark, base, "audit").details["stale_writes"]] == [stale]


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_compaction_proves_only_logs_that_had_completed(
    spark: SparkSession, tmp_path: Path, base: Path, version: int, *, is_late: bool
) -> None:
    options = tables.write_table(spark, base, count=100, version=version, partitioned=False)
    count_buckets(spark, base, 4, 7)
    rows = tables.rows(spark, 0, 100, ts=5)
    before = {path.name for path in completed_files(base)}
    with hidden(base, newest(base), tmp_path / "away"):
        write_stale(rows, base, {**options, **COMPACTED})
    new = sorted(path for path in completed_files(base) if path.name not in before)
    write = next(path for path in new if path.name.endswith(".deltacommit"))
    (compaction,) = [path for path in new if path.name.endswith(".commit")]
    stale = write.name.partition("_")[0].partition(".")[0]
    logs = [path for path in base.glob(".*.log.*") if not path.name.endswith(".crc")]
    for path in logs:
        if version == 6 or f"_{stale}.log" in path.name:
            path.unlink()
    if is_late and version == 9:
        after = int(compaction.name.partition("_")[0]) + 1
        write.rename(write.with_name(f"{stale}_{after}.deltacommit"))
    elif is_late:
        write.touch()

    if is_late:
        with pytest.raises(FilesGoneError):
            run_job(spark, base, "repair", {"instants": [stale]})
    else:
        assert run_job(spark, base, "repair", {"instants": [stale]}).details["rows"] == 100
        found, expected = texts(spark, base, rows)
        assert found == expected
        assert len(proved(spark, base, 7, index_of(4))) == 100
