"""A Flink job writes partitions that have numbers of buckets of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.flink import timeline
from tests.flink.job import FlinkJob
from tests.flink.test_beside_flink import COW, MOR
from tests.flink.test_flink_writer import BESIDE_OTHERS
from tests.flink.test_goes_on import goes_on, refusal_types, stopped
from tests.flink.test_state_index import PAUSE
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.flink.cluster import FlinkCluster

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]
EXPRESSIONS = "hoodie.bucket.index.partition.expressions"
OWN = {EXPRESSIONS: "p0,8;late,2", "hoodie.bucket.index.partition.rule.type": "regex"}


@dataclass(frozen=True)
class InCatalog(FlinkJob):
    """A job whose table was created in a catalog of Hudi, at `<catalog>/<database>/<table>`."""

    def statements(self) -> list[str]:
        database, catalog = self.base.parent, self.base.parent.parent  # type: ignore[union-attr]
        table = self.table().replace("CREATE TEMPORARY TABLE ", f"CREATE TABLE IF NOT EXISTS lakes.{database.name}.")
        return [
            f"CREATE CATALOG lakes WITH ('type' = 'hudi', 'mode' = 'dfs', 'catalog.path' = '{catalog.as_uri()}')",
            f"CREATE DATABASE IF NOT EXISTS lakes.{database.name}",
            table,
            *super().statements(),
        ]


def job_of(kind: type[FlinkJob], base: Path, table_type: str) -> FlinkJob:
    job = kind(base, last=20_000, keys=600, late=450, rate=60, table_type=table_type, table_name=base.name)
    if table_type == COW:
        job = replace(job, checkpoint_seconds=8, more_settings={PAUSE: "8 s"})
    return replace(job, options={**BESIDE_OTHERS, "metadata.enabled": "true", **OWN})


def numbers(spark: SparkSession, base: Path) -> list[int]:
    rules: Any = hudi_table(spark, base, INDEX).bucket_rules()
    return [rules.buckets_of(each) for each in ("p0", "p1", "late")]


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_job_goes_on_when_partitions_that_have_numbers_of_their_own_are_expanded(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path, table_type: str
) -> None:
    base = tmp_path / "lakes" / "db" / "lake"
    base.parent.mkdir(parents=True)
    job = job_of(InCatalog, base, table_type)
    saved = stopped(flink, job)
    assert numbers(spark, base) == [8, 4, 2]

    run_job(spark, base, "bucket_expansion", {"factor": 2}, writers_stopped=True)

    assert numbers(spark, base) == [16, 8, 4]
    goes_on(flink, spark, job, saved, None)
    # The audit also looks for rows in wrong buckets.
    assert run_job(spark, base, "audit").details["clean"]


def test_numbers_that_only_the_options_of_a_job_have_are_found_and_have_to_go_before_a_repair(
    flink: FlinkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    base = tmp_path / "lake"
    job = job_of(FlinkJob, base, MOR)
    saved = stopped(flink, job)
    for kind, number in (("bucket_expansion", 8), ("bucket_contraction", 2), ("bucket_count", 3)):
        params = {"num_buckets": number}
        assert refusal_types(spark, base, kind, params, writers_stopped=True) == {"bucket-index-contradicted"}
    audit = run_job(spark, base, "audit").details
    [found] = [each for each in audit["findings"] if each["type"] == "rows-in-wrong-bucket"]
    # The cure would be without harm only for a job that is given other options.
    assert found["cure"] is None, found
    assert EXPRESSIONS in found["hint"]

    by = [commit.instant for commit in timeline.commits(base) if commit.rows]
    assert run_job(spark, base, "repair", {"instants": by}, writers_stopped=True).details["moved"] > 0

    goes_on(flink, spark, replace(job, options={**job.options, **dict.fromkeys(OWN, "")}), saved)
