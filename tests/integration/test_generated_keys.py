"""Tests a table without a record key, as `CREATE TABLE` without a primary key makes it. Hudi generates a key for each
row, and statements, including `MERGE`, write to the file groups from which they have read their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration import tables
from tests.integration.long_session import LongSession
from tests.integration.run import run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

OPTIONS = {
    **tables.LOCK,
    "hoodie.embed.timeline.server": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.compact.inline": "false",
}
MATCHED = "WHEN MATCHED THEN UPDATE SET n = s.n, v = s.v, dt = s.dt WHEN NOT MATCHED THEN INSERT *"


def _rows(spark: SparkSession, base: Path) -> dict[int, int]:
    """Returns `v` by `n`, as readers find it by the metadata table and by listing."""
    found = []
    for metadata in ("true", "false"):
        frame = spark.read.format("hudi").option("hoodie.metadata.enable", metadata).load(str(base))
        rows = [(row.n, row.v) for row in frame.select("n", "v").collect()]
        assert len(rows) == len(dict(rows))
        found.append(dict(rows))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("statement", ["UPDATE", "DELETE", "MERGE"])
def test_rows_of_a_stale_statement_are_brought_back(spark: SparkSession, base: Path, statement: str) -> None:
    writer = spark.newSession()
    for key, value in OPTIONS.items():
        writer.conf.set(key, value)
    name = f"without_key_{statement.lower()}"
    writer.sql(
        f"CREATE TABLE {name} (n BIGINT, v BIGINT, dt STRING) USING hudi PARTITIONED BY (dt) LOCATION '{base}'"
        " TBLPROPERTIES ('type'='mor')"
    )
    writer.sql(f"INSERT INTO {name} SELECT id, id % 10, concat('d', id % 2) FROM range(60)")
    expected = {number: number % 10 for number in range(60)}
    spark.range(50, 70).selectExpr("id n", "25L v", "concat('d', id % 2) dt").createOrReplaceGlobalTempView(name)
    stale = LongSession(spark, base, OPTIONS)
    run_job(spark, base, "compaction", index=None)
    run_job(spark, base, "clustering", {"sort_by": ["v"]}, index=None)

    match statement:
        case "UPDATE":
            stale.run("UPDATE {table} SET v = 40 WHERE n % 4 = 1")
            expected |= {number: 40 for number in expected if number % 4 == 1}
        case "DELETE":
            stale.run("DELETE FROM {table} WHERE n % 4 = 1")
            expected = {number: v for number, v in expected.items() if number % 4 != 1}
        case _:
            stale.run(f"MERGE INTO {{table}} t USING global_temp.{name} s ON t.n = s.n {MATCHED}")
            expected |= dict.fromkeys(range(50, 70), 25)
    lost = run_job(spark, base, "audit", index=None).details["stale_writes"]
    run_job(spark, base, "repair", {"instants": [each["instant"] for each in lost]}, index=None)

    assert len(lost) == 1
    assert _rows(spark, base) == expected
    assert run_job(spark, base, "audit", index=None).details["clean"]
    writer.sql(f"REFRESH TABLE {name}")
    writer.sql(f"UPDATE {name} SET v = 60 WHERE n % 8 = 0")
    expected |= {number: 60 for number in expected if number % 8 == 0}
    assert _rows(spark, base) == expected
