"""After a SIGKILL of the worker at any step of an index job, writers go on, and the next attempt succeeds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.errors import HudiError
from jobs.hudi.indexer import Indexer
from tests.integration import dying_job, tables
from tests.integration.dying_job import DyingJob
from tests.integration.run import perform_order, run_job, work_order
from tests.integration.test_index_builds import COUNT, COW, NOTE, assert_right, order

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

BEFORE = {"at": "before", "name": "the index"}
INFLIGHT = {"at": "file", "name": ".hoodie/metadata/.hoodie/timeline/*1.deltacommit.inflight"}
FILE_GROUPS = {"at": "file", "name": ".hoodie/metadata/record_index/*.hfile"}
PROPERTIES = {"at": "file", "name": ".hoodie/hoodie.properties.backup"}
BUILT = {"at": "after", "name": "the index"}
SECOND = {"at": "file", "name": ".hoodie/metadata/.hoodie/timeline/*2.deltacommit.inflight"}
COMPARING = {"at": "step", "name": "comparing"}
BEFORE_DROP = {"at": "before", "name": "the dropping"}
AFTER_DROP = {"at": "after", "name": "the dropping"}

# The points at which one attempt after the other dies.
_LONG = [
    ("build", "record", 9, (INFLIGHT,)),
    ("build", "record", 9, (BEFORE,)),
    ("build", "record", 9, (INFLIGHT, BEFORE_DROP)),
    ("build", "record", 9, (FILE_GROUPS, AFTER_DROP)),
    ("build", "record", 9, (PROPERTIES, BEFORE_DROP)),
    ("build", "record", 9, (BUILT,)),
    ("build", "record", 9, (COMPARING,)),
    ("build", "column_stats", 9, (SECOND,)),
    ("build", "column_stats", 9, (INFLIGHT, BUILT)),
    ("build", "bloom_filters", 9, (INFLIGHT,)),
    ("build", "record", 6, (FILE_GROUPS,)),
    ("build", "column_stats", 6, (PROPERTIES,)),
    ("build", "record", 8, (FILE_GROUPS,)),
    ("drop", "record", 9, (BEFORE_DROP,)),
    ("drop", "record", 9, (PROPERTIES,)),
    ("drop", "column_stats", 9, (AFTER_DROP,)),
]


@pytest.mark.timeout(1800)
@dying_job.cases("action index version points", ("build", "record", 9, (BUILT,)), _LONG)
def test_wherever_the_worker_is_killed_the_next_attempt_succeeds(
    spark: SparkSession,
    base: Path,
    spares_if_killed: Spares | None,
    action: str,
    index: str,
    version: int,
    points: tuple[dict[str, Any], ...],
) -> None:
    shape = {"num_buckets": None, "table_type": COW, "version": version, "partitioned": bool(spares_if_killed)}
    options = tables.write_table(spark, base, count=COUNT, **shape)
    if action == "drop":
        done = run_job(spark, base, "index", order("build", index), index=None).details
        options |= {each["name"]: each["value"] for each in done["writer_options"]}
    rows = tables.snapshot(spark, base)
    job = DyingJob(spark, work_order(base, "index", order(action, index), index=None), spares_if_killed)
    for death in job.deaths(points):
        assert death.result is None
        assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    # The lock of a dead worker on the same machine does not stop a writer for long: the next job breaks it.
    assert (base / NOTE).exists()

    done = job.finish().details

    names = [] if action == "drop" else done["partitions"]
    assert_right(spark, base, *names)
    assert not (base / ".hoodie" / "lock").exists()
    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    if action == "build":
        options |= {each["name"]: each["value"] for each in done["writer_options"]}
    else:
        options |= {each: "false" for each in options if each.startswith("hoodie.metadata.") and index[:6] in each}
    tables.upsert(tables.rows(spark, 0, COUNT + 10, ts=5), base, options)
    assert len(tables.snapshot(spark, base)) == COUNT + 10
    assert_right(spark, base, *names)
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("index", "point"),
    [
        *(("record", each) for each in (BEFORE, INFLIGHT, FILE_GROUPS, BUILT)),
        *(("column_stats", each) for each in (BEFORE, INFLIGHT, SECOND, BUILT)),
    ],
)
def test_a_writer_goes_on_beside_what_a_dead_worker_has_left(
    spark: SparkSession, base: Path, spares: Spares, index: str, point: dict[str, Any]
) -> None:
    options = tables.write_table(spark, base, count=COUNT, num_buckets=None, table_type=COW)
    job = DyingJob(spark, work_order(base, "index", order("build", index), index=None), spares)
    assert job.die_at(point).result is None
    # Somebody has removed the lock file, which another provider would have let expire.
    (base / ".hoodie" / "lock").unlink()
    tables.upsert(tables.rows(spark, 0, COUNT + 10, ts=5), base, options)
    rows = tables.snapshot(spark, base, metadata=False)
    assert len(rows) == COUNT + 10

    done = run_job(spark, base, "index", order("build", index), index=None).details

    assert tables.snapshot(spark, base) == tables.snapshot(spark, base, metadata=False) == rows
    assert_right(spark, base, *done["partitions"])
    assert run_job(spark, base, "audit", index=None).details["clean"]


@pytest.mark.exhaustive
def test_an_attempt_that_was_frozen_removes_no_index_that_another_one_builds(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=COUNT, num_buckets=None, table_type=COW, partitioned=False)
    first = work_order(base, "index", order("build", "record"), index=None)
    following = DyingJob(spark, replace(first, attempt=2))
    following.overtake(monkeypatch, Indexer, "build", BUILT)
    with pytest.raises(HudiError, match="has changed meanwhile"):
        perform_order(spark, first)

    assert (base / NOTE).exists()
    done = following.finish().details
    assert (done["undone"], done["nothing_to_do"]) == (False, True)
    assert_right(spark, base, "record_index")
