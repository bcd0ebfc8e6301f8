"""A compaction or clustering by Hudi that loses, duplicates or invents rows fails before its commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.contract import Outcome
from jobs.errors import RowsDifferError
from jobs.hudi.client import WriteClient
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

KEY = "_hoodie_record_key"


def _without_one(rows: pa.Table) -> pa.Table:
    return rows.slice(1)


def _with_one_twice(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows.slice(0, 1)])


def _with_one_exchanged(rows: pa.Table) -> pa.Table:
    keys = ["k999999", *rows.column(KEY).to_pylist()[1:]]
    return rows.set_column(rows.schema.get_field_index(KEY), KEY, pa.array(keys, pa.string()))


def _damage_what_was_written(base: Path, damage: Callable[[pa.Table], pa.Table]) -> At:
    """Damages one of the job's new files before its commit, as a broken disk or an error of Hudi may do."""
    before = set(base.rglob("*.parquet"))

    def damage_newest() -> None:
        [path, *_] = sorted(path for path in set(base.rglob("*.parquet")) - before if ".hoodie" not in str(path))
        rows = damage(pq.read_table(path, partitioning=None))
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        pq.write_table(rows, path)

    return At("comparing the record keys", damage_newest)


@pytest.mark.exhaustive
def test_the_result_of_a_compaction_proves_its_keys(spark: SparkSession, base: Path) -> None:
    options = tables.write_table(spark, base, count=300, updates=1)
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    tables.upsert(tables.rows(spark, 290, 320, ts=3), base, options)  # 20 of these keys are new.
    tables.upsert(tables.rows(spark, 310, 315, ts=4), base, delete)  # These keys were new, too.
    tables.upsert(tables.rows(spark, 0, 7, ts=4), base, delete)
    tables.upsert(tables.rows(spark, 5000, 5004, ts=4), base, delete)  # These keys never existed.
    before = run_job(spark, base, "audit").details

    details = run_job(spark, base, "compaction").details
    assert (details["rows"], details["key_digest"]) == (before["rows"], before["key_digest"])
    proof = details["proof"]
    assert (proof["rows_before"], proof["inserted"], proof["deleted"], proof["left_out"]) == (300, 15, 7, [])
    assert run_job(spark, base, "audit").details["key_digest"] == before["key_digest"]


@pytest.mark.parametrize(
    "damage",
    [
        _without_one,
        pytest.param(_with_one_twice, marks=pytest.mark.exhaustive),
        pytest.param(_with_one_exchanged, marks=pytest.mark.exhaustive),
    ],
)
def test_a_compaction_that_changes_the_keys_is_not_committed(
    spark: SparkSession, base: Path, damage: Callable[[pa.Table], pa.Table]
) -> None:
    tables.write_table(spark, base, count=300, updates=1, partitioned=False)
    before = tables.snapshot(spark, base)
    with pytest.raises(RowsDifferError, match=r"file group 0000000\d-.*: 7\d rows with key digest"):
        run_job(spark, base, "compaction", context=_damage_what_was_written(base, damage))
    assert tables.snapshot(spark, base) == before

    again = run_job(spark, base, "compaction")
    assert again.outcome is Outcome.SUCCEEDED
    assert again.details["rows"] == 300
    assert not any(item.log_files for item in hudi_table(spark, base, INDEX).file_slices())
    assert proved(spark, base, 4) == before
    assert tables.left_behind(base) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("damage", [_without_one, _with_one_twice, _with_one_exchanged])
def test_a_clustering_that_changes_the_keys_is_rolled_back(
    spark: SparkSession, base: Path, damage: Callable[[pa.Table], pa.Table]
) -> None:
    options = tables.write_table(spark, base, count=300, num_buckets=None, table_type="COPY_ON_WRITE")
    before = tables.snapshot(spark, base)
    params = {"sort_by": ["city"]}
    with pytest.raises(RowsDifferError, match="partition '2026-01-01': 100 rows with key digest"):
        run_job(spark, base, "clustering", params, index=None, context=_damage_what_was_written(base, damage))
    assert tables.snapshot(spark, base) == before
    assert list(hudi_table(spark, base, None).pending()) == []

    # The files are not protected from other writers.
    tables.upsert(tables.rows(spark, 0, 10, ts=1), base, options)
    after = tables.snapshot(spark, base)
    details = run_job(spark, base, "clustering", params, index=None).details
    assert (details["rows"], details["proof"]["left_out"]) == (300, [])
    assert tables.snapshot(spark, base) == after
    assert details["key_digest"] == run_job(spark, base, "audit", index=None).details["key_digest"]


@pytest.mark.exhaustive
def test_a_clustering_of_logs_says_that_their_keys_were_not_compared(spark: SparkSession, base: Path) -> None:
    tables.write_table(spark, base, count=300, num_buckets=None, updates=1)
    before = tables.snapshot(spark, base)
    details = run_job(spark, base, "clustering", {"sort_by": ["city"]}, index=None).details
    assert details["proof"]["left_out"] == ["logs"]
    assert tables.snapshot(spark, base) == before


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [6, 8, 9])
def test_logs_that_were_rolled_back_and_file_groups_that_become_empty_are_proved_as_well(
    spark: SparkSession, base: Path, version: int
) -> None:
    options = tables.write_table(spark, base, count=100, partitioned=False, version=version)
    tables.upsert(tables.rows(spark, 0, 50, ts=1), base, options)
    table = hudi_table(spark, base, INDEX)
    with WriteClient(table, UNDER_OUR_LOCK) as client:
        client.roll_back(table.commits()[-1].write.instant, client.new_instant())
    delete = {**options, "hoodie.datasource.write.operation": "delete"}
    tables.upsert(tables.rows(spark, 0, 100, ts=4), base, delete)
    tables.upsert(tables.rows(spark, 0, 1, ts=5), base, options)
    before = tables.snapshot(spark, base)

    details = run_job(spark, base, "compaction").details
    assert (details["rows"], details["proof"]["rows_before"], details["proof"]["deleted"]) == (1, 100, 99)
    assert tables.snapshot(spark, base) == before
