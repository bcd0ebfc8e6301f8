"""A commit that comes in while a table adopts a bucket index, or gives it up, is refused, and loses no row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import RefusedError
from tests.integration import tables
from tests.integration.run import run_job
from tests.integration.tables import left_behind
from tests.integration.test_bucket_index import COW, MOR, STOPPED, bucketed, plain_table, proved
from tests.integration.writers import At, HeldWriter

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ADOPT = {"action": "adopt", "num_buckets": 4}
# The step at which a write of this kind is begun and completed.
_MEANWHILE = [
    (COW, "rewriting", "double"),
    (COW, "waiting for writers", "double"),
    (COW, "rewriting", "upsert"),
    (COW, "waiting for writers", "upsert"),
    (COW, "rewriting", "delete"),
    (COW, "waiting for writers", "insert_overwrite"),
    (MOR, "rewriting", "upsert"),
    (MOR, "waiting for writers", "upsert"),
    (MOR, "waiting for writers", "delete"),
]
_OF_A_SHORT_RUN = 1


@pytest.mark.parametrize(
    ("table_type", "step", "operation"),
    [
        pytest.param(*each, marks=[pytest.mark.exhaustive] if number >= _OF_A_SHORT_RUN else [])
        for number, each in enumerate(_MEANWHILE)
    ],
)
def test_a_write_that_begins_during_the_adoption_is_refused_and_stays(
    spark: SparkSession, base: Path, table_type: str, step: str, operation: str
) -> None:
    old = plain_table(spark, base, table_type=table_type, partitioned=operation != "double")
    written: list[list[str]] = []

    def goes_on() -> None:
        options = {**old, "hoodie.datasource.write.operation": operation.replace("double", "insert")}
        tables.upsert(tables.rows(spark, 0, 3) if operation == "double" else changed(spark), base, options)
        written.append(tables.snapshot(spark, base))

    with pytest.raises(RefusedError) as caught:
        run_job(spark, base, "bucket_index", ADOPT, index=None, declared=STOPPED, context=At(step, goes_on))

    assert caught.value.problem().type == "writers-not-stopped"
    assert tables.snapshot(spark, base) == written[0] == tables.snapshot(spark, base, metadata=False)
    assert left_behind(base) == []
    if operation == "double":
        assert tables.duplicates(spark, base) == 3
        return
    before = tables.snapshot(spark, base)
    done = run_job(spark, base, "bucket_index", ADOPT, index=None, declared=STOPPED).details
    assert proved(spark, base, tables.INDEX) == before
    tables.upsert(tables.rows(spark, 280, 350, ts=9), base, bucketed(old, done))
    proved(spark, base, tables.INDEX)


def changed(spark: SparkSession) -> Any:
    return tables.rows(spark, 250, 330, ts=4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", [250, 0])
def test_a_write_in_flight_when_the_adoption_begins_is_waited_for(spark: SparkSession, base: Path, first: int) -> None:
    old = plain_table(spark, base, table_type=COW)
    # An insert of keys that exist doubles them.
    options = {**old, "hoodie.datasource.write.operation": "upsert" if first else "insert"}
    late = HeldWriter(tables.rows(spark, first, 330, ts=4), base, options).start()
    context = At("rewriting", lambda: None, ("counting rows", lambda: late.let_go_after(8)))
    given: dict[str, Any] = {"index": None, "declared": STOPPED, "context": context}

    if first:
        done = run_job(spark, base, "bucket_index", ADOPT, **given).details
        late.finish()
        assert len(proved(spark, base, tables.INDEX)) == done["rows"] == 330
        return
    with pytest.raises(RefusedError) as caught:
        run_job(spark, base, "bucket_index", ADOPT, **given)
    late.finish()
    assert caught.value.problem().type == "keys-twice-in-partition"
    assert (len(tables.snapshot(spark, base)), tables.duplicates(spark, base)) == (630, 300)
    assert left_behind(base) == []
