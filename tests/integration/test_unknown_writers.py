"""No row is lost or doubled if an index is adopted, or the number of buckets changes, while a writer goes on that a
user easily forgets."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import JobError
from tests.integration import run, tables
from tests.integration.hidden import write_stale
from tests.integration.long_session import LongSession
from tests.integration.old_writer import OldWriter
from tests.integration.run import run_job
from tests.integration.tables import texts
from tests.integration.test_bucket_count import count_buckets, index_of
from tests.integration.test_bucket_index import COW, MOR, adopt, bucketed, plain_table, proved

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from jobs.contract import BucketIndex

pytestmark = pytest.mark.exhaustive


def mend(spark: SparkSession, base: Path, index: BucketIndex = tables.INDEX) -> list[str]:
    """Repairs what an audit finds, and returns the repaired instants."""
    audit = run_job(spark, base, "audit", index=index).details
    cures = [each["cure"]["params"]["instants"] for each in audit["findings"] if each["type"] == "rows-in-wrong-bucket"]
    named = [instant for instants in cures for instant in instants]
    done = run_job(spark, base, "repair", {"instants": named} if named else {}, index=index).details
    return [*done["repaired"], *(each["instant"] for each in audit["stale_writes"])]


def require_rows(spark: SparkSession, base: Path, *expected: DataFrame) -> None:
    found, wanted = texts(spark, base, *expected)
    assert found == wanted


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_four_buckets_become_six_and_four_again_beside_a_writer_with_four(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    options = tables.write_table(spark, base, count=300, table_type=table_type)
    count_buckets(spark, base, 4, 6)
    changed, new = tables.rows(spark, 0, 60, ts=5), tables.rows(spark, 300, 330, ts=5)
    write_stale(changed.union(new), base, options)
    refused: list[Any] = []
    try:
        count_buckets(spark, base, 6, 4)
    except JobError as error:
        refused.append(error.problem().type)
        assert mend(spark, base)
        count_buckets(spark, base, 6, 4)
    print("refused", refused)
    require_rows(spark, base, changed, tables.rows(spark, 60, 300), new)
    assert len(run.proved(spark, base, 4, index_of(4))) == 330
    tables.upsert(tables.rows(spark, 50, 340, ts=7), base, options)
    assert len(run.proved(spark, base, 4, index_of(4))) == 340


@pytest.mark.parametrize("table_type", [MOR, COW])
def test_a_sql_session_with_a_relation_from_before_an_adoption_loses_no_row(
    spark: SparkSession, base: Path, table_type: str
) -> None:
    old = plain_table(spark, base, table_type=table_type, partitioned=False)
    session = LongSession(spark, base, {**tables.LOCK, "hoodie.index.type": "SIMPLE"})
    result = adopt(spark, base, num_buckets=4)

    def run(statement: str) -> None:
        """Runs a statement, and again if it fails, as users do. On copy-on-write an `UPDATE` fails, because Hudi does
        not find the replaced file group."""
        try:
            session.run(statement)
        except Exception as error:
            print(statement, str(error)[:200])
            session.run("REFRESH TABLE {table}")
            session.run(statement)

    run("UPDATE {table} SET fare = -1 WHERE city < 200")
    run("DELETE FROM {table} WHERE city >= 900")
    run(
        "INSERT INTO {table} SELECT concat(id, 'x') AS id, ts, region, city, fare, note, price, day, at, items, scores,"
        " blob, dt FROM {table} WHERE city >= 800 AND city < 820"
    )
    run("UPDATE {table} SET fare = -2 WHERE city >= 810 AND city < 820")
    rows = tables.rows(spark, 0, 300).where("city < 900")
    rows = rows.withColumn("fare", rows.fare.cast("double")).selectExpr(
        "id", "ts", "dt", "region", "city",
        "CASE WHEN city < 200 THEN -1D WHEN city >= 810 AND city < 820 THEN -2D ELSE fare END AS fare",
        "note", "price", "day", "at", "items", "scores", "blob",
    )  # fmt: skip
    copies = rows.where("city >= 800 AND city < 820").selectExpr("concat(id, 'x') AS id", *rows.columns[1:])
    print(mend(spark, base))
    require_rows(spark, base, rows, copies)
    count = rows.count() + copies.count()
    tables.upsert(tables.rows(spark, 400, 420, ts=7), base, bucketed(old, result))
    assert len(proved(spark, base, tables.INDEX)) == count + 20


@pytest.mark.parametrize("version", ["0.15.0", "1.0.2"])
@pytest.mark.parametrize("table_type", [MOR, COW])
def test_an_older_writer_keeps_its_index_after_an_adoption(
    spark: SparkSession, base: Path, table_type: str, version: str
) -> None:
    old = plain_table(spark, base, table_type=table_type, version=6, partitioned=False)
    result = adopt(spark, base, num_buckets=4)
    with closing(OldWriter(version)) as writer:
        writer.upsert(base, {**old, "hoodie.parquet.small.file.limit": "0"}, 280, 340, ts=5)
        writer.upsert(base, old, 330, 350, ts=6)
    print(mend(spark, base))
    parts = [tables.rows(spark, 0, 280), tables.rows(spark, 280, 330, ts=5), tables.rows(spark, 330, 350, ts=6)]
    require_rows(spark, base, *parts)
    tables.upsert(tables.rows(spark, 320, 360, ts=9), base, bucketed(old, result))
    assert len(proved(spark, base, tables.INDEX)) == 360
