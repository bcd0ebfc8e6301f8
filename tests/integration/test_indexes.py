"""The services neither drop nor build any index of Hudi 1.2, and each index agrees with a scan afterwards."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.errors import IndexesChangedError, LeaseLostError, RefusedError
from jobs.hudi.client import WriteClient
from jobs.hudi.metadata_table import MetadataTable
from jobs.hudi.table import HudiTable
from jobs.protocol import replacement
from jobs.services.checks import file_values
from tests.integration import indexed, tables
from tests.integration.indexed import COUNT, NOTE, assert_right, index_state
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.writers import At

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
STOPPED = {"declared": {"writers_stopped": True}}
ALONE = {
    "column statistics": indexed.STATISTICS,
    "of some columns": indexed.OF_SOME_COLUMNS,
    "bloom filters": {**indexed.BLOOM, "hoodie.index.type": "BLOOM"},
    "global record": indexed.GLOBAL,
    "partitioned record": indexed.BY_PARTITION,
    "secondary": {**indexed.GLOBAL, **indexed.SECONDARY_ON_CITY},
    "expression": {**indexed.STATISTICS, **indexed.YEAR},
    "all": indexed.ALL,
    "all by partition": indexed.ALL_BY_PARTITION,
}


def served(spark: SparkSession, base: Path, kind: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Runs a job that must change neither rows nor indexes."""
    rows, state = tables.snapshot(spark, base), index_state(spark, base)
    details = run_job(spark, base, kind, params, index=None, **more).details
    assert index_state(spark, base) == state
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    return details


def test_a_table_keeps_all_its_indexes_at_once(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A client sets its own first 32 columns by default, and other file groups have no statistics of these columns.
    options = indexed.write(spark, base, indexed.ALL | indexed.OF_SOME_COLUMNS, table_type=COW, partitioned=False)
    rows, state = tables.snapshot(spark, base), index_state(spark, base)

    assert served(spark, base, "clustering", {"sort_by": ["city"]})["file_groups"] == {"before": 2, "after": 1}
    lose_a_rebuild(spark, base, monkeypatch)
    assert (base / NOTE).exists()
    assert tables.snapshot(spark, base) == rows
    findings = run_job(spark, base, "audit", {"rows": False}, index=None).details["findings"]
    (found,) = [each for each in findings if each["type"] == "indexes-unbuilt"]
    assert set(found["detail"].split(", ")) == {"expr_index_day", "secondary_index_city"}
    cure = found["cure"]
    run_job(spark, base, cure["kind"], cure["params"], index=None, job_id="job_rebuild", **STOPPED)
    assert (index_state(spark, base), (base / NOTE).exists()) == (state, False)
    assert tables.snapshot(spark, base, metadata=True) == rows

    tables.upsert(tables.rows(spark, 0, COUNT + 20, ts=3), base, options)
    # A clean beside that index would stop all writers (`test_expression_indexes.py`).
    run_job(spark, base, "index", {"action": "drop", "index": "expression", "name": "day"}, index=None)
    assert served(spark, base, "cleaning", {"retain": 1})["files_deleted"]
    kept = {name: value for name, value in options.items() if name not in indexed.YEAR}
    tables.upsert(tables.rows(spark, 0, COUNT + 20, ts=4), base, kept)
    assert len(tables.snapshot(spark, base)) == COUNT + 20
    assert_right(spark, base)
    assert run_job(spark, base, "audit", index=None).details["clean"]


def lose_a_rebuild(spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begins to build the metadata table anew, and loses the lease before the first index that has a definition."""
    build, begun = MetadataTable._build, count(1)

    def build_or_lose(table: MetadataTable, *of: Any) -> None:
        if next(begun) == 2:
            raise LeaseLostError
        build(table, *of)

    with monkeypatch.context() as patch:
        patch.setattr(MetadataTable, "_build", build_or_lose)
        with pytest.raises(LeaseLostError):
            run_job(spark, base, "metadata_table", {"action": "rebuild"}, index=None, job_id="job_rebuild", **STOPPED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("compacted", [True, False], ids=["compacted", "not compacted"])
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("name", ALONE)
def test_services_keep_an_index_right(
    spark: SparkSession, base: Path, name: str, table_type: str, *, compacted: bool
) -> None:
    shape = {"hoodie.metadata.compact.max.delta.commits": "1" if compacted else "1000"}
    options = indexed.write(spark, base, ALONE[name], table_type=table_type, **shape)

    if table_type == MOR:
        served(spark, base, "compaction", {})
        tables.upsert(tables.rows(spark, 0, 9, ts=2), base, options)
    served(spark, base, "savepoint", {})
    served(spark, base, "clustering", {})
    served(spark, base, "clustering", {"sort_by": ["city"]})
    assert_right(spark, base)
    tables.upsert(tables.rows(spark, 5, COUNT + 10, ts=3), base, options)
    assert_right(spark, base)
    served(spark, base, "metadata_table", {"action": "rebuild"}, **STOPPED)
    assert_right(spark, base)
    for ts in (4, 5, 6):
        tables.upsert(tables.rows(spark, 0, 9, ts=ts), base, options)
    served(spark, base, "archival", {"retain": 2})
    assert len(tables.snapshot(spark, base)) == COUNT + 10
    assert_right(spark, base)
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("table_type", [COW, MOR])
@pytest.mark.parametrize("name", ["global record", "partitioned record", "all", "all by partition"])
def test_an_index_has_no_entries_of_rows_that_a_service_removes(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch, name: str, table_type: str
) -> None:
    # A commit that is older than a compaction of the metadata table cannot be restored.
    late = {"hoodie.metadata.compact.max.delta.commits": "60"}
    options = indexed.write(spark, base, {**ALONE[name], **late}, table_type=table_type)
    before = tables.snapshot(spark, base)
    savepoint = run_job(spark, base, "savepoint", {}, index=None).details["savepoint"]
    tables.upsert(tables.rows(spark, 5, COUNT + 10, ts=3), base, options)
    after, state = tables.snapshot(spark, base), index_state(spark, base)
    tables.upsert(tables.rows(spark, 0, COUNT + 20, ts=4), base, options)
    last = max(item.requested for item in hudi_table(spark, base, None).instants() if item.state == "COMPLETED")
    named = {"table_name": "test"}

    run_job(spark, base, "rollback", {"instant": last, **named}, index=None, writers_stopped=True)
    assert tables.snapshot(spark, base) == after
    assert_right(spark, base)
    run_job(spark, base, "restore", {"savepoint": savepoint, **named}, index=None, writers_stopped=True)
    assert tables.snapshot(spark, base) == before
    assert index_state(spark, base) == state
    assert_right(spark, base)

    run_job(spark, base, "savepoint", {"action": "delete", "instant": savepoint}, index=None)
    monkeypatch.setattr(HudiTable, "now", lambda table: table.clock.now() + timedelta(days=60))
    old = {"days_retain": 20, "limit_partitions": 2, "wait_seconds": 1}
    if name == "all":
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, "partition_ttl", old, index=None)
        assert [reason.type for reason in refused.value.reasons] == ["secondary-index"]
    else:
        assert len(run_job(spark, base, "partition_ttl", old, index=None).details["partitions"]) == 2
        assert len(tables.snapshot(spark, base)) == COUNT // 3
    monkeypatch.undo()
    tables.upsert(tables.rows(spark, 0, COUNT, ts=6), base, options)
    assert len(tables.snapshot(spark, base)) == COUNT
    assert_right(spark, base)


@pytest.mark.exhaustive
def test_a_replacement_is_not_committed_if_an_index_was_built_meanwhile(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=60, num_buckets=None, table_type=COW)
    options = tables.writer_options(base, num_buckets=None, table_type=COW, **indexed.GLOBAL)
    rewrite = replacement.Replacement._round

    def built_meanwhile(self: Any, *arguments: Any, **more: Any) -> None:
        rewrite(self, *arguments, **more)
        if "record_index" not in hudi_table(spark, base, None).metadata_partitions:
            tables.upsert(tables.rows(spark, 0, 3, ts=1), base, options)

    monkeypatch.setattr(replacement.Replacement, "_round", built_meanwhile)
    with pytest.raises(IndexesChangedError, match="record_index"):
        run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)
    monkeypatch.undo()

    run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None)
    tables.upsert(tables.rows(spark, 0, 60, ts=2), base, options)
    assert len(tables.snapshot(spark, base)) == 60
    assert tables.left_behind(base) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("engine", ["arrow", "hudi"])
def test_a_compaction_is_not_committed_if_an_index_was_built_meanwhile(
    spark: SparkSession, base: Path, engine: str
) -> None:
    options = tables.write_table(spark, base, count=60, updates=1)
    indexes = {"hoodie.metadata.index.column.stats.enable": "true"}

    def built_meanwhile() -> None:
        tables.upsert(tables.rows(spark, 0, 3, ts=2), base, options | indexes)

    context = At("comparing the record keys", built_meanwhile)
    with pytest.raises(IndexesChangedError, match="column_stats"):
        run_job(spark, base, "compaction", {"engine": engine}, context=context, job_id="job_first")
    run_job(spark, base, "compaction", job_id="job_first")
    assert len(proved(spark, base, 4)) == 60


@pytest.mark.exhaustive
def test_a_rebuild_after_hudis_own_indexer_leaves_no_index_empty(spark: SparkSession, base: Path) -> None:
    """Hudi would write each index at the indexer's instant, and roll the one before back."""
    indexed.write(spark, base, indexed.GLOBAL | indexed.STATISTICS, table_type=COW)
    table = hudi_table(spark, base, None)
    several = {
        "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.NoopLockProvider",
    }
    with WriteClient(table, {"hoodie.clean.failed.writes.policy": "LAZY", **several}, indexed.BLOOM) as client:
        types = table.jvm.hudi.metadata.MetadataPartitionType
        wanted, none = table.jvm.objects([types.BLOOM_FILTERS]), table.jvm.list([])
        instant = client._client.scheduleIndexing(wanted, none).get()
        client._client.index(instant)
    assert hudi_table(spark, base, None).instants()[-1].action == "indexing"

    run_job(spark, base, "metadata_table", {"action": "rebuild"}, index=None, **STOPPED)

    assert {"bloom_filters", "record_index", "column_stats"} <= set(index_state(spark, base)[0])
    assert_right(spark, base)
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
def test_no_service_builds_the_statistics_of_partitions(spark: SparkSession, base: Path) -> None:
    """Hudi 1.0 has separate options for column statistics and for statistics of partitions, so its tables may lack the
    latter."""
    options = indexed.write(spark, base, indexed.STATISTICS, table_type=MOR)
    table = hudi_table(spark, base, None)
    context = table.jvm.engine_context
    table.jvm.hudi.metadata.HoodieTableMetadataUtil.deleteMetadataTablePartition(
        table.meta, context, "partition_stats", False
    )
    served(spark, base, "compaction", {})
    served(spark, base, "clustering", {})
    served(spark, base, "metadata_table", {"action": "rebuild"}, **STOPPED)
    tables.upsert(tables.rows(spark, 0, COUNT, ts=3), base, options)
    assert len(tables.snapshot(spark, base)) == COUNT


KEYS = {
    "in one partition": (indexed.GLOBAL, "'k0' in '2026-01-01' and '2026-01-01'"),
    "in two partitions": (indexed.GLOBAL, "'k0' in '2026-01-01' and '2026-01-02'"),
    "in one partition of a partitioned index": (indexed.BY_PARTITION, "'k0' in '2026-01-01' and '2026-01-01'"),
    "in one file group": (indexed.GLOBAL, "'k0' in '2026-01-01' and '2026-01-01'"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("where", KEYS)
def test_a_duplicate_key_is_reported_before_anything_is_planned(spark: SparkSession, base: Path, where: str) -> None:
    index, detail = KEYS[where]
    is_in_group = "group" in where
    # A row goes into a small file group, if there is one.
    limit = str(1 << 20) if is_in_group else "0"
    options = tables.writer_options(base, table_type=COW, num_buckets=None, **index, **indexed.FEW_FILES)
    options |= {"hoodie.embed.timeline.server": "true", "hoodie.parquet.small.file.limit": limit}
    if is_in_group:
        tables.upsert(tables.rows(spark, 0, COUNT), base, options)
    else:
        indexed.write(spark, base, index, table_type=COW)
    again = tables.rows(spark, 0, 1, ts=5, partitions=1)
    again = again if "one" in where else again.selectExpr("*", "'2026-01-02' as other").drop("dt")
    again = again.withColumnRenamed("other", "dt")
    # The writer does not look for the key.
    insert = {"hoodie.datasource.write.operation": "insert", "hoodie.merge.allow.duplicate.on.inserts": "true"}
    tables.upsert(again, base, options | insert)
    timeline = sorted((base / ".hoodie" / "timeline").iterdir())

    dry = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None, dry_run=True).details["refusals"]
    assert [each["detail"] for each in dry] == [detail]
    for kind, params in (("clustering", {"sort_by": ["city"]}), ("metadata_table", {"action": "rebuild"})):
        with pytest.raises(RefusedError) as refused:
            run_job(spark, base, kind, params, index=None, **STOPPED)
        assert [(each.type, each.detail) for each in refused.value.reasons] == [("keys-not-unique", detail)]

    assert sorted((base / ".hoodie" / "timeline").iterdir()) == timeline
    assert "record_index" in index_state(spark, base)[0]
    findings = run_job(spark, base, "audit", index=None).details["findings"]
    (found,) = (each["detail"] for each in findings if each["type"] == "index-differs-from-rows")
    assert "key 'k0'" in found
    assert ("second row" in found) == is_in_group


@pytest.mark.exhaustive
def test_an_audit_sees_an_index_that_does_not_agree_with_the_rows(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = indexed.write(spark, base, indexed.GLOBAL, table_type=COW)
    assert_right(spark, base)
    # Without this option Hudi writes the index from the reports of its own tasks, and our tasks report nothing.
    monkeypatch.setattr(replacement, "METADATA_AT_THE_END", {})
    run_job(spark, base, "clustering", {}, index=None)
    monkeypatch.undo()

    (finding,) = run_job(spark, base, "audit", index=None).details["findings"]

    # The index has each key at its current and at its old location.
    assert finding["type"] == "index-differs-from-rows"
    assert finding["detail"].startswith(f"{2 * COUNT}, such as key 'k0' in file group ")
    run_job(spark, base, finding["cure"]["kind"], finding["cure"]["params"], index=None, **STOPPED)
    tables.upsert(tables.rows(spark, 0, COUNT, ts=3), base, options)
    assert_right(spark, base)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("expression", "misled"), [("upper", "region = 'r3'"), ("identity", "upper(region) = 'R3'")])
def test_an_expression_index_that_hides_rows_from_other_filters_is_found(
    spark: SparkSession, base: Path, expression: str, misled: str
) -> None:
    options = {**indexed.UPPER_REGION, "hoodie.metadata.index.expression.options": f"expr={expression}"}
    indexed.write(spark, base, options, table_type=COW)
    session = spark.newSession()

    def rows_and_findings() -> tuple[int, list[str]]:
        read = session.read.format("hudi").options(**{"hoodie.enable.data.skipping": "true"}).load(str(base))
        findings = run_job(spark, base, "diagnosis", index=None).details["findings"]
        return read.where(misled).count(), [each["type"] for each in findings]

        # The fault is Hudi's own. Once Hudi is right, the finding is wrong.

    assert rows_and_findings() == (0, ["expression-index-misleads"])
    session.sql(f"create table region_{expression} using hudi location '{base}'")
    session.sql("set hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.InProcessLockProvider")
    session.sql(f"drop index expr_index_region on region_{expression}")
    session.sql(f"drop table region_{expression}")
    assert rows_and_findings() == (22, [])


@pytest.mark.exhaustive
def test_an_audit_finds_a_file_whose_index_entries_lack_some_of_its_values(spark: SparkSession, base: Path) -> None:
    of_files = {**indexed.BLOOM, "hoodie.index.type": "BLOOM", **indexed.STATISTICS, **indexed.YEAR}
    options = indexed.write(spark, base, of_files, table_type=COW)
    # Not `assert_right`: a query of `region = 'r3'` looks for 'r3' in the filters of `upper(region)` (Hudi 1.2.0).
    tables.upsert(tables.rows(spark, 0, 3, ts=2), base, {**options, **indexed.UPPER_REGION})
    table = hudi_table(spark, base, None)
    slices = table.file_slices()
    assert file_values.compare(table, slices) == []
    file = Path(str(slices[0].base_file).removeprefix("file:"))
    rows = pq.read_table(file)
    first = {"_hoodie_record_key": "x", "id": "x", "day": date(1990, 1, 1), "region": "nowhere"}
    for name, value in first.items():
        column = rows[name].to_pylist()
        new = pa.array([value, *column[1:]], rows[name].type)
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), new)
    pq.write_table(rows, file)
    file.with_name(f".{file.name}.crc").unlink()

    findings = run_job(spark, base, "audit", index=None).details["findings"]

    last = max(row for row in rows["day"].to_pylist()).year
    assert [each["detail"] for each in findings if each["type"] == "index-differs-from-rows"] == [
        f"key 'x' of file {file.name} is not in bloom_filters",
        f"the range 1990 to {last} of year(day) in file {file.name} is not in expr_index_day",
        f"upper(region) 'NOWHERE' of file {file.name} is not in expr_index_region",
    ]


_STATISTICS = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
_INDEXES = {
    "bloom": {"hoodie.index.type": "BLOOM", "hoodie.metadata.index.bloom.filter.enable": "true"},
    "global bloom": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "simple": {"hoodie.index.type": "SIMPLE"},
    "record": {"hoodie.index.type": "RECORD_INDEX", "hoodie.metadata.record.index.enable": "true", **_STATISTICS},
    "partitioned record": {
        "hoodie.index.type": "RECORD_LEVEL_INDEX",
        "hoodie.metadata.record.level.index.enable": "true",
    },
}


# `test_indexes` tests a table with all indexes together in each run.
@pytest.mark.exhaustive
@pytest.mark.parametrize("index", _INDEXES)
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_writer_finds_all_rows_after_a_clustering(
    spark: SparkSession, tmp_path: Path, index: str, table_type: str
) -> None:
    base = tmp_path / "plain"
    options = tables.write_table(spark, base, count=300, num_buckets=None, table_type=table_type, **_INDEXES[index])
    tables.upsert(tables.rows(spark, 300, 450), base, {**options, "hoodie.parquet.small.file.limit": "0"})
    tables.upsert(tables.rows(spark, 100, 350, ts=2), base, options)
    before = tables.snapshot(spark, base)

    merged = run_job(spark, base, "clustering", index=None).details
    ordered = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None).details

    assert (merged["file_groups"], ordered["rows"]) == ({"before": 6, "after": 3}, 450)
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == before
    frame = spark.read.format("hudi").option("hoodie.enable.data.skipping", "true").load(str(base))
    assert frame.where("_hoodie_record_key = 'k333'").count() == 1
    tables.upsert(tables.rows(spark, 0, 500, ts=3), base, options)
    assert len(tables.snapshot(spark, base)) == len(tables.snapshot(spark, base, metadata=False)) == 500
    assert spark.read.format("hudi").load(str(base)).where("ts = 3").count() == 500
    assert tables.duplicates(spark, base) == 0
    assert run_job(spark, base, "audit", index=None).details["clean"]
