"""A record index beside a bucket index on merge-on-read tables: an audit finds the keys that Hudi 1.2 leaves out of the
record index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from jobs.errors import RefusedError
from tests.integration import indexed, tables
from tests.integration.run import proved, run_job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MOR = "MERGE_ON_READ"


@pytest.mark.exhaustive
@pytest.mark.parametrize("compacted", [False, True], ids=["logs", "compacted by Hudi"])
@pytest.mark.parametrize(("kind", "version"), [("record", 9), ("record", 8), ("record", 6), ("partitioned_record", 9)])
def test_a_bucket_index_on_merge_on_read_loses_new_keys_in_a_record_index(
    spark: SparkSession, base: Path, kind: str, version: int, *, compacted: bool
) -> None:
    """The fault is of Hudi 1.2.0 alone: no job has changed the table. Once Hudi is right, the finding is wrong."""
    flags = indexed.GLOBAL if kind == "record" else indexed.BY_PARTITION
    kept = {name: value for name, value in flags.items() if name != "hoodie.index.type"} | indexed.FEW_FILES
    shape: dict[str, Any] = {"version": version, "partitioned": kind != "record", "table_type": MOR}
    options = tables.write_table(spark, base, count=40, num_buckets=2, **shape, **kept)
    index = BucketIndex(2, ("id",))
    assert run_job(spark, base, "audit", index=index).details["clean"]
    inline = {"hoodie.compact.inline": str(compacted).lower(), "hoodie.compact.inline.max.delta.commits": "1"}

    tables.upsert(tables.rows(spark, 30, 60, ts=1), base, options | inline)

    assert len(tables.snapshot(spark, base)) == 60
    (found,) = run_job(spark, base, "audit", index=index).details["findings"]
    assert (found["type"], found["detail"].partition(",")[0]) == ("index-differs-from-rows", "20")
    cure = found["cure"]
    run_job(spark, base, cure["kind"], cure["params"], index=index)
    assert run_job(spark, base, "audit", index=index).details["clean"]
    without = {name: value for name, value in options.items() if name not in kept}
    tables.upsert(tables.rows(spark, 0, 70, ts=3), base, without)
    assert len(proved(spark, base, 2, index)) == 70
    with pytest.raises(RefusedError) as refused:
        run_job(spark, base, "index", {"action": "build", "index": kind}, index=index)
    assert [each.type for each in refused.value.reasons] == ["index-not-kept"]
