"""Every service keeps vectors, BLOBs and variants: rows, types, footers and results of queries remain the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from jobs.contract import BucketIndex
from jobs.dataplane.footer_entries import VECTOR_COLUMNS
from jobs.errors import RefusedError
from tests.integration import tables, typed_table
from tests.integration.independent import rows_by_hudi_rs
from tests.integration.run import run_job
from tests.integration.typed_table import ROW_WRITER, VECTORS, Read, base_files, shapes, stored

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOR, COW = "MERGE_ON_READ", "COPY_ON_WRITE"
INDEX = BucketIndex(2, ("id",))
Job = tuple[str, dict[str, Any]]
EXPANSION: Job = ("bucket_expansion", {"factor": 2})
CONTRACTION: Job = ("bucket_contraction", {"factor": 2})
SORTING: Job = ("clustering", {"sort_by": ["id"]})
COMPACTION: Job = ("compaction", {})
AVRO, ROW, BOTH = "avro", "row", "both"


def write_table(
    spark: SparkSession, base: Path, table_type: str, writer: str, *, has_buckets: bool = True
) -> dict[str, str]:
    """Writes 40 rows; if `both` writers are used, the row writer writes 30 of them. Half of a merge-on-read table's
    rows are updated in logs."""
    options = tables.writer_options(
        base,
        table_type=table_type,
        num_buckets=INDEX.num_buckets if has_buckets else None,
        partitioned=False,
    )
    options["hoodie.metadata.index.column.stats.enable"] = "true"
    outside = base.parent / "outside.bin"
    first = 30 if writer == BOTH else 40
    tables.upsert(typed_table.rows(spark, 0, first, 1, outside), base, options | (ROW_WRITER if writer != AVRO else {}))
    if writer == BOTH:
        tables.upsert(typed_table.rows(spark, first, 40, 1, outside), base, options)
    if table_type == MOR:
        tables.upsert(typed_table.rows(spark, 10, 30, 2, outside), base, options)
    return options


def require_goes_on(spark: SparkSession, base: Path, options: dict[str, str], index: BucketIndex | None) -> None:
    """Asserts that a writer can update and add rows, and that an audit finds nothing."""
    tables.upsert(typed_table.rows(spark, 35, 50, 3, base.parent / "outside.bin"), base, options)
    found = Read.of(spark, base)
    assert found.rows == found.listed
    assert (len(found.rows), tables.duplicates(spark, base)) == (50, 0)
    audit = run_job(spark, base, "audit", index=index).details
    assert audit["clean"], audit


@pytest.mark.exhaustive
@pytest.mark.parametrize("writer", [AVRO, ROW])
def test_base_files_that_are_split_sorted_and_merged_keep_types_footers_and_bytes(
    spark: SparkSession, tmp_path: Path, writer: str
) -> None:
    base = tmp_path / "typed"
    options = write_table(spark, base, COW, writer)
    before, by_others = Read.of(spark, base), rows_by_hudi_rs(base)
    types, bytes_before = shapes(base_files(base)), stored(base_files(base))
    [(schema, entries)] = types
    assert ("(Enum)" in schema, dict(entries)[VECTOR_COLUMNS]) == (writer == AVRO, VECTORS.encode())
    assert not {"f32", "f64", "i8", "pic", "variant"} & {*before.with_statistics}

    for kind, params in (EXPANSION, SORTING, CONTRACTION):
        result = run_job(spark, base, kind, params, index=INDEX)
        written = base_files(base, result.instants)
        assert written
        assert shapes(written) == types
        assert stored(written).equals(bytes_before)
        assert Read.of(spark, base) == before
        assert rows_by_hudi_rs(base) == by_others

    require_goes_on(spark, base, options, INDEX)


@pytest.mark.exhaustive
@pytest.mark.parametrize("writer", [ROW, *(pytest.param(each, marks=pytest.mark.exhaustive) for each in (AVRO, BOTH))])
@pytest.mark.parametrize(
    ("kind", "params"),
    [
        EXPANSION,
        *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in (SORTING, CONTRACTION, COMPACTION)),
    ],
)
def test_vectors_and_blobs_of_logs_are_merged_into_base_files_with_their_footers(
    spark: SparkSession, tmp_path: Path, writer: str, kind: str, params: dict[str, Any]
) -> None:
    base = tmp_path / "typed"
    options = write_table(spark, base, MOR, writer)
    before = Read.of(spark, base)

    result = run_job(spark, base, kind, params, index=INDEX)

    assert Read.of(spark, base) == before
    # hudi-rs cannot read a BLOB whose type is an enum in the logs and a text in the base file.
    assert len(rows_by_hudi_rs(base)) == 40
    require_vectors(base_files(base, result.instants))
    require_goes_on(spark, base, options, INDEX)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "params"), [EXPANSION, SORTING, CONTRACTION])
def test_files_of_both_writers_keep_their_own_types_unless_they_are_merged(
    spark: SparkSession, tmp_path: Path, kind: str, params: dict[str, Any]
) -> None:
    base = tmp_path / "typed"
    options = write_table(spark, base, COW, BOTH)
    before = Read.of(spark, base)
    result = run_job(spark, base, kind, params, index=INDEX)
    assert Read.of(spark, base) == before
    require_vectors(base_files(base, result.instants))
    require_goes_on(spark, base, options, INDEX)


@pytest.mark.exhaustive
@pytest.mark.parametrize("writer", [AVRO, ROW])
@pytest.mark.parametrize(("table_type", "kind", "params"), [(COW, *SORTING), (MOR, *SORTING), (MOR, *COMPACTION)])
def test_hudis_own_clustering_and_compaction_keep_the_new_types_without_buckets(
    spark: SparkSession, tmp_path: Path, table_type: str, writer: str, kind: str, params: dict[str, Any]
) -> None:
    base = tmp_path / "typed"
    options = write_table(spark, base, table_type, writer, has_buckets=False)
    before = Read.of(spark, base)
    result = run_job(spark, base, kind, params, index=None)
    assert Read.of(spark, base) == before
    require_vectors(base_files(base, result.instants))
    require_goes_on(spark, base, options, None)


@pytest.mark.parametrize("table_type", [MOR, pytest.param(COW, marks=pytest.mark.exhaustive)])
def test_a_variant_that_only_spark_4_reads_is_kept_in_base_files_and_nothing_is_planned_that_must_read_it(
    spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "typed"
    options = tables.writer_options(base, table_type=table_type, num_buckets=2, partitioned=False)

    def write(first: int, last: int) -> None:
        frame = typed_table.rows(spark, first, last, first, base.parent / "outside.bin", {"hudi_type": "VARIANT"})
        tables.upsert(frame, base, options)

    def timeline() -> list[str]:
        return sorted(path.name for path in (base / ".hoodie" / "timeline").iterdir() if path.is_file())

    write(0, 40)
    before = base_files(base)
    for kind, params in (EXPANSION, SORTING, CONTRACTION):
        written = base_files(base, run_job(spark, base, kind, params, index=INDEX).instants)
        assert (stored(written).equals(stored(before)), shapes(written)) == (True, shapes(before))
    write(30, 50)
    names = timeline()
    audit = run_job(spark, base, "audit", index=INDEX).details
    assert {each["reason"]["type"] for each in audit["unchecked"]} == {"types-not-readable"}
    assert (audit["clean"], audit["findings"]) == (False, [])
    for kind, params in (COMPACTION, EXPANSION, CONTRACTION) if table_type == MOR else ():
        require_refused(spark, base, kind, params, INDEX)
    assert timeline() == names


@pytest.mark.exhaustive
def test_a_variant_is_not_clustered_by_hudi(spark: SparkSession, tmp_path: Path) -> None:
    base = tmp_path / "typed"
    options = tables.writer_options(base, table_type=COW, num_buckets=None, partitioned=False)
    frame = typed_table.rows(spark, 0, 40, 1, base.parent / "outside.bin", {"hudi_type": "VARIANT"})
    tables.upsert(frame, base, options)
    require_refused(spark, base, *SORTING, None)
    tables.upsert(frame, base, options)


def require_refused(
    spark: SparkSession, base: Path, kind: str, params: dict[str, Any], index: BucketIndex | None
) -> None:
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, kind, params, index=index)
    assert refused.value.problem().type == "types-not-readable"


def require_vectors(files: list[Path]) -> None:
    assert files
    for footer in map(pq.ParquetFile, files):
        assert (footer.metadata.metadata or {}).get(VECTOR_COLUMNS) == VECTORS.encode()
        kinds = {column.path: column for column in map(footer.schema.column, range(len(footer.schema)))}
        assert [kinds[name].length for name in ("f32", "f64", "i8")] == [16, 24, 5]
        assert str(kinds["pic.type"].logical_type) in ("Enum", "String")
