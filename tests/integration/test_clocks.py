"""Our instants follow the clock of writers whose clock or zone differs from the worker's, and no row is lost."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import get_java_class

from jobs.errors import ClocksDisagreeError
from jobs.format.clock_frame import LATE_START, utc_now
from jobs.format.instants import wall_clock
from jobs.hudi import table_clock
from jobs.hudi.client import WriteClient
from jobs.hudi.instant_generators import instant_generators
from jobs.hudi.jvm import Jvm
from jobs.hudi.options import UNDER_OUR_LOCK
from tests.integration import tables
from tests.integration.old_writer import OldWriter
from tests.integration.run import hudi_table, run_job
from tests.integration.tables import INDEX
from tests.integration.writers import At
from tests.support.wall_clock import LIBRARY, NOT_INSTALLED, shifted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CLOSE = timedelta(seconds=60)


@contextmanager
def clock_of(spark: SparkSession, zone: str) -> Iterator[None]:
    """Makes this JVM a writer's in a zone, such as `GMT-00:10`, which is a clock that is ten minutes behind as well."""
    jvm: Any = spark._jvm
    zones = jvm.java.util.TimeZone
    before = zones.getDefault()
    instants = get_java_class(jvm.org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator)
    last = instants.getDeclaredField("LAST_INSTANT_TIME")
    last.setAccessible(True)
    try:
        zones.setDefault(zones.getTimeZone(zone))
        # The writer of another process would not know the instants of this one.
        last.get(None).set("0")
        yield
    finally:
        zones.setDefault(before)
        last.get(None).set("0")


class Writer:
    """A writer in a zone, and its expected rows."""

    def __init__(self, spark: SparkSession, base: Path, zone: str, **shape: Any) -> None:
        self._spark, self._base, self._zone = spark, base, zone
        self._options = tables.writer_options(base, **shape)
        self._rows: dict[str, int] = {}
        self._ts = 0

    def write(self, first: int, last: int, *, zone: str | None = None) -> None:
        self._ts += 1
        with clock_of(self._spark, zone or self._zone):
            tables.upsert(tables.rows(self._spark, first, last, ts=self._ts), self._base, self._options)
        self._rows |= {f"k{number}": self._ts for number in range(first, last)}

    def check(self) -> None:
        for metadata in ("true", "false"):
            read = self._spark.read.format("hudi").option("hoodie.metadata.enable", metadata).load(str(self._base))
            found = [(row.id, row.ts) for row in read.select("id", "ts").collect()]
            assert dict(found) == self._rows
            assert len(found) == len(self._rows)


def cared_for(spark: SparkSession, base: Path, writer: Writer) -> list[str]:
    """Runs a compaction (or clustering) and a cleaning between the batches of a writer, and returns their instants."""
    is_merge_on_read = hudi_table(spark, base, INDEX).is_merge_on_read
    kind, params = ("compaction", {}) if is_merge_on_read else ("clustering", {"sort_by": ["city"]})
    instants = run_job(spark, base, kind, params, writers_retry_conflicts=True).instants
    writer.write(0, 300)
    writer.write(100, 200)
    cleaned = run_job(spark, base, "cleaning", {"retain": 1}).instants
    writer.check()
    return [*instants, *cleaned]


def first_and_exhaustive(*cases: Any) -> list[Any]:
    return [cases[0], *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in cases[1:])]


@pytest.mark.parametrize(
    ("zone", "offset", "table_type", "version", "timeline"),
    first_and_exhaustive(
        ("GMT-08:00", -8 * HOUR, "MERGE_ON_READ", 9, "LOCAL"),
        ("GMT-08:00", -8 * HOUR, "MERGE_ON_READ", 6, "LOCAL"),
        ("GMT+05:30", 5.5 * HOUR, "MERGE_ON_READ", 9, "LOCAL"),
        ("GMT+05:30", 5.5 * HOUR, "MERGE_ON_READ", 6, "LOCAL"),
        ("GMT-00:10", -10 * MINUTE, "COPY_ON_WRITE", 9, "LOCAL"),
        ("GMT-00:01", -MINUTE, "MERGE_ON_READ", 9, "LOCAL"),
        ("GMT-00:01", -MINUTE, "MERGE_ON_READ", 6, "LOCAL"),
        ("GMT+00:10", 10 * MINUTE, "MERGE_ON_READ", 9, "LOCAL"),
        ("GMT+00:10", 10 * MINUTE, "COPY_ON_WRITE", 6, "LOCAL"),
        ("GMT-08:00", timedelta(), "MERGE_ON_READ", 9, "UTC"),
    ),
)
def test_services_name_their_instants_by_the_clock_of_the_writers(
    spark: SparkSession,
    base: Path,
    zone: str,
    offset: timedelta,
    table_type: str,
    version: int,
    timeline: str,
) -> None:
    more = {"hoodie.table.timeline.timezone": timeline}
    writer = Writer(spark, base, zone, table_type=table_type, version=version, partitioned=False, **more)
    writer.write(0, 400)
    writer.write(0, 200)

    instants = cared_for(spark, base, writer)

    assert instants
    for instant in instants:
        assert abs(wall_clock(instant) - offset - utc_now()) < 3 * CLOSE
    table = hudi_table(spark, base, INDEX)
    moments = [item.requested for item in table.instants()]
    assert moments == sorted(moments)
    if version >= 8:
        for item in table.instants():
            assert item.requested < item.completed


@pytest.mark.exhaustive
def test_tables_of_two_zones_are_cared_for_at_once(spark: SparkSession, tmp_path: Path) -> None:
    behind = Writer(spark, tmp_path / "behind", "GMT-08:00")
    ahead = Writer(spark, tmp_path / "ahead", "GMT+09:30")
    for _ in range(2):
        behind.write(0, 300)
        ahead.write(0, 300)

    for _ in range(2):
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(run_job, spark, tmp_path / name, "compaction") for name in ("behind", "ahead")]
            found = [each.result().instants for each in running]
        for instants, offset in zip(found, (-8 * HOUR, 9.5 * HOUR), strict=True):
            assert instants
            assert all(abs(wall_clock(instant) - offset - utc_now()) < CLOSE for instant in instants)
        for writer in (behind, ahead):
            writer.write(0, 200)
            writer.check()


def test_clocks_that_nobody_has_measured_are_waited_for_as_hudi_does(spark: SparkSession) -> None:
    jvm = Jvm(spark)
    generators = instant_generators(jvm)
    clock, _ = generators.take(jvm, "/no/table", "/no/table", 5000)
    try:
        for is_known, least, most in ((False, 0.2, 60.0), (True, 0.0, 0.2)):
            clock.know(is_known, 0, 0, 0)
            quickest = min(_seconds_of_instant(clock) for _ in range(5))
            assert least <= quickest < most
    finally:
        generators.give_back("/no/table", "/no/table")


def _seconds_of_instant(clock: Any) -> float:
    begun = time.monotonic()
    while clock.generateTime(True) > 4_000_000_000_000:  # forgets the last one first
        begun = time.monotonic()
    return time.monotonic() - begun


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_the_instants_of_a_copied_table_come_right_after_its_last_one(
    spark: SparkSession, tmp_path: Path, base: Path, version: int
) -> None:
    writer = Writer(spark, tmp_path / "original" / "trips", "GMT+08:00", version=version)
    for _ in range(3):
        writer.write(0, 300)
    shutil.copytree(tmp_path / "original" / "trips", base, copy_function=shutil.copyfile)

    copied = Writer(spark, base, "GMT+08:00", version=version)
    copied._rows, copied._ts = dict(writer._rows), writer._ts
    (instant,) = run_job(spark, base, "compaction").instants
    assert abs(wall_clock(instant) - 8 * HOUR - utc_now()) < 5 * CLOSE
    copied.check()
    copied.write(0, 200)
    copied.check()
    cared_for(spark, base, copied)


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
def test_services_are_refused_while_the_clock_of_the_newest_write_is_behind(
    spark: SparkSession, base: Path, version: int
) -> None:
    writer = Writer(spark, base, "GMT", version=version)
    writer.write(0, 300)
    writer.write(0, 200, zone="GMT-00:10")

    with pytest.raises(ClocksDisagreeError, match="behind the last instant") as caught:
        run_job(spark, base, "compaction")
    assert caught.value.retriable
    plan = run_job(spark, base, "compaction", dry_run=True).details
    assert [refusal["type"] for refusal in plan["refusals"]] == ["clocks-disagree"]
    assert run_job(spark, base, "audit").error is None

    # The writer has its own clock again, which is later than all instants.
    writer.write(0, 100)
    cared_for(spark, base, writer)


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", [9, 6])
@pytest.mark.parametrize("other", ["GMT-00:01", "America/Los_Angeles"])
def test_services_are_refused_beside_two_processes_whose_clocks_disagree(
    spark: SparkSession, base: Path, version: int, other: str
) -> None:
    options = tables.writer_options(base, partitioned=False, version=version)
    with OldWriter("1.1.1", "GMT") as one, OldWriter("1.1.1", other) as two:
        one.upsert(base, options, 0, 60, create=True)
        for ts in range(1, 4):
            two.upsert(base, options, 0, 60, ts=2 * ts - 1)
            time.sleep(0 if version >= 8 else LATE_START.total_seconds() / 4)
            one.upsert(base, options, 0, 60, ts=2 * ts)
        before = one.snapshot(base)
        timeline = set(hudi_table(spark, base, INDEX).timeline_files())

        for kind in ("compaction", "clustering", "bucket_expansion", "cleaning", "archival"):
            with pytest.raises(ClocksDisagreeError, match="Some writers of this table name their instants"):
                run_job(spark, base, kind, {"factor": 2} if kind == "bucket_expansion" else {})

        assert set(hudi_table(spark, base, INDEX).timeline_files()) == timeline
        assert one.snapshot(base) == two.snapshot(base) == before


@pytest.mark.exhaustive
@pytest.mark.skipif(LIBRARY is None, reason=NOT_INSTALLED)
@pytest.mark.parametrize(
    ("kind", "step", "version"),
    # Before version 8 Hudi finds a conflict of such a write with a plan of a compaction.
    [("compaction", "compacting", 9), ("clustering", "rewriting", 9), ("clustering", "rewriting", 6)],
)
def test_a_clock_that_is_set_back_while_a_job_executes_keeps_it_from_its_commit(
    spark: SparkSession, base: Path, kind: str, step: str, version: int
) -> None:
    options = tables.writer_options(base, partitioned=False, version=version)
    params = {"sort_by": ["city"]} if kind == "clustering" else {}
    with OldWriter("1.1.1", "GMT") as before, OldWriter("1.1.1", "GMT", shifted(-300)) as after:
        before.upsert(base, options, 0, 60, create=True)
        before.upsert(base, options, 0, 40, ts=1)
        seen: list[str] = []

        def set_back() -> None:
            after.upsert(base, options, 0, 9, ts=2)
            seen.extend(tables.snapshot(spark, base))

        with pytest.raises(ClocksDisagreeError, match=r"that it was before|behind the last instant"):
            run_job(spark, base, kind, params, context=At(step, set_back), writers_retry_conflicts=True)
        # The result of such a write depends on Hudi alone; the job has not changed it.
        assert tables.snapshot(spark, base) == seen
        if version >= 8:
            assert_noticed(spark, base)


@pytest.mark.exhaustive
@pytest.mark.skipif(LIBRARY is None, reason=NOT_INSTALLED)
@pytest.mark.parametrize("version", [9, 6])
def test_a_clock_that_was_set_back_after_a_job_is_noticed(spark: SparkSession, base: Path, version: int) -> None:
    options = tables.writer_options(base, partitioned=False, version=version)
    with OldWriter("1.1.1", "GMT") as before, OldWriter("1.1.1", "GMT", shifted(-300)) as after:
        before.upsert(base, options, 0, 60, create=True)
        before.upsert(base, options, 0, 40, ts=1)
        assert run_job(spark, base, "compaction").instants
        time.sleep(3)
        after.upsert(base, options, 0, 9, ts=2)
    if version >= 8:
        assert_noticed(spark, base)
    with pytest.raises(ClocksDisagreeError, match="behind the last instant"):
        run_job(spark, base, "compaction")


def test_no_live_writer_looks_dead_to_a_job_during_which_the_clock_is_set(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.write_table(spark, base, count=60, partitioned=False)
    interval = {"hoodie.client.heartbeat.interval_in_ms": "1000"}
    table = hudi_table(spark, base, INDEX, hudi_options=interval)
    beat = base / ".hoodie" / ".heartbeat" / "20260101000000000"
    with table.clock.kept(writes=True), WriteClient(table, UNDER_OUR_LOCK) as client:
        beat.parent.mkdir(exist_ok=True)
        for step in (HOUR, -HOUR):
            monkeypatch.setattr(table_clock, "utc_now", lambda step=step: utc_now() + step)
            beat.touch()
            assert not client.is_dead(beat.name), step
        monkeypatch.undo()
        deadline = time.monotonic() + 60
        while not client.is_dead(beat.name):
            assert time.monotonic() < deadline
            time.sleep(0.2)


def assert_noticed(spark: SparkSession, base: Path) -> None:
    """Asserts that a poll reports the offset. Before table version 8 this needs several commits, whose files appear at
    the same intervals as their instants."""
    findings = run_job(spark, base, "audit", {"rows": False}).details["findings"]
    assert "instants-out-of-order" in [each["type"] for each in findings]
    clock = hudi_table(spark, base, INDEX).clock
    clock.reload()
    assert clock.frame.set_back is not None
    assert clock.frame.set_back.by < timedelta(seconds=300)
