"""A worker that changes indexes or the past of a table is suspended (SIGSTOP) until the next attempt has ended and a
writer has gone on. Then the worker continues, and changes nothing. `test_frozen_attempts` does so with compactions,
replacements and cleanings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import BucketIndex
from tests.integration import indexed, tables
from tests.integration.run import hudi_table, run_job, work_order
from tests.integration.tables import INDEX
from tests.integration.test_frozen_attempts import suspend
from tests.integration.test_index_builds import order as of_index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.integration.doomed import Spares

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(600)]

COW = "COPY_ON_WRITE"
COUNT = 60
PLAIN: dict[str, Any] = {"num_buckets": None, "table_type": COW, "partitioned": False}
STOPPED = {"writers_stopped": True}

PROPERTIES = {"at": "file", "name": ".hoodie/hoodie.properties.backup"}
ENTRIES = {"at": "file", "name": ".hoodie/metadata/record_index/*"}


@dataclass
class Scene:
    """A table before a job: the job's parameters, the options of a writer that goes on after the job, and the rows that
    the job leaves. If these are None, the job is to change none."""

    params: dict[str, Any]
    options: dict[str, str]
    rows: list[str] | None = None
    index: BucketIndex | None = None
    order: dict[str, Any] = field(default_factory=dict)


def index_to_build(spark: SparkSession, base: Path) -> Scene:
    options = tables.write_table(spark, base, count=COUNT, updates=1, **PLAIN)
    return Scene(of_index("build", "record"), {**options, **indexed.GLOBAL, **indexed.FEW_FILES})


def index_to_drop(spark: SparkSession, base: Path) -> Scene:
    """The writer afterwards builds the index anew."""
    scene = index_to_build(spark, base)
    run_job(spark, base, "index", scene.params, index=None)
    return replace(scene, params=of_index("drop", "record"))


def metadata_to_rebuild(spark: SparkSession, base: Path) -> Scene:
    return replace(index_to_drop(spark, base), params={"action": "rebuild"}, order={"declared": STOPPED})


def savepoint_to_restore(spark: SparkSession, base: Path) -> Scene:
    """The index that came since makes the restore build the metadata table anew."""
    options = tables.write_table(spark, base, count=COUNT, updates=1, **PLAIN, **indexed.FEW_FILES)
    savepoint = run_job(spark, base, "savepoint", index=None).details["savepoint"]
    before = tables.snapshot(spark, base)
    run_job(spark, base, "index", of_index("build", "record"), index=None)
    for ts in (7, 8):
        tables.upsert(tables.rows(spark, 0, COUNT + 30, ts=ts), base, {**options, **indexed.GLOBAL})
    params = {"savepoint": savepoint, "table_name": "test"}
    return Scene(params, {**options, **indexed.GLOBAL}, before, order={"writers_stopped": True})


def commit_of_version_6_to_roll_back(spark: SparkSession, base: Path) -> Scene:
    shape = {"version": 6, "table_type": COW, "partitioned": False}
    options = tables.write_table(spark, base, count=COUNT, updates=1, **shape)
    before = tables.snapshot(spark, base)
    tables.upsert(tables.rows(spark, 30, 90, ts=7), base, options)
    last = hudi_table(spark, base, INDEX).commits()[-1].write.instant
    return Scene({"instant": last, "table_name": "test"}, options, before, index=INDEX)


def case(kind: str, scene: Callable[[SparkSession, Path], Scene], point: dict[str, Any]) -> Any:
    name = f"{scene.__name__} {point['at']} {point['name'][-24:]}".replace("/", "-")
    return pytest.param(kind, scene, point, id=name)


CASES = [
    case("index", index_to_build, PROPERTIES),
    case("index", index_to_build, ENTRIES),
    case("index", index_to_build, {"at": "step", "name": "comparing"}),
    case("index", index_to_drop, {"at": "before", "name": "the dropping"}),
    case("index", index_to_drop, PROPERTIES),
    case("metadata_table", metadata_to_rebuild, {"at": "before", "name": "the building"}),
    # Not while entries of the index are written: tasks of Spark make no proof (see the limits).
    case("restore", savepoint_to_restore, PROPERTIES),
    case("rollback", commit_of_version_6_to_roll_back, {"at": "file", "name": ".hoodie/*.rollback.inflight"}),
]


@pytest.mark.parametrize(("kind", "prepare", "point"), CASES)
def test_a_worker_that_is_suspended_beyond_its_lease_changes_nothing_afterwards(
    spark: SparkSession,
    base: Path,
    spares: Spares,
    kind: str,
    prepare: Callable[[SparkSession, Path], Scene],
    point: dict[str, Any],
) -> None:
    scene = prepare(spark, base)
    wanted = tables.snapshot(spark, base) if scene.rows is None else scene.rows
    order = work_order(base, kind, scene.params, index=scene.index, **scene.order)
    suspend(
        spark,
        base,
        spares,
        order,
        point,
        wanted=wanted,
        write=lambda: tables.upsert(tables.rows(spark, 20, COUNT + 10, ts=11), base, scene.options),
    )
    tables.upsert(tables.rows(spark, 0, COUNT + 20, ts=12), base, scene.options)
    found = tables.snapshot(spark, base)
    assert (len(found), tables.duplicates(spark, base)) == (COUNT + 20, 0)
    assert found == tables.snapshot(spark, base, metadata=False)
    audit = run_job(spark, base, "audit", index=scene.index).details
    assert (audit["clean"], audit["rows"], audit["pending_instants"]) == (True, COUNT + 20, []), audit
    assert tables.left_behind(base) == []
