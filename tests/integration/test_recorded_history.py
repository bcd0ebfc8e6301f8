"""Records real runs, and checks them against the rules of the protocol's model (`tests/model`)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from jobs.contract import ExpansionStep
from jobs.hudi import hashing_config
from jobs.hudi.lock import TableLock
from jobs.job_context import JobContext
from jobs.protocol.replacement import Replacement
from tests.integration import tables
from tests.integration.run import hudi_table, proved, run_job
from tests.integration.tables import INDEX
from tests.integration.test_stale_writes import LongSession
from tests.integration.writers import At
from tests.model.history import BASELINE, Event, What
from tests.model.replay import of_instant, violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

UPDATE = "UPDATE {table} SET fare = -1.0, ts = 5 WHERE city < 500"


class Recorder:
    """Records when our jobs take the lock, read the timeline and write hashing configs."""

    def __init__(self, spark: SparkSession, base: Path, patch: pytest.MonkeyPatch) -> None:
        self._spark = spark
        self._base = base
        self.events: list[Event] = []
        held, known, write = TableLock.held, Replacement._known, hashing_config.write

        @contextmanager
        def recorded_held(lock: TableLock, checkpoint: Callable[[], None]) -> Iterator[TableLock]:
            # The recorded begin and end lie within the time for which the lock is held, because a writer's steps
            # right before or after it are not under it.
            with held(lock, checkpoint) as ours:
                self.note(What.LOCKED, by=lock._owner)
                try:
                    yield ours
                finally:
                    self.note(What.UNLOCKED, by=lock._owner)

        def recorded_known(replacement: Any, outcome: Any) -> Any:
            self.note(What.LOOKED, outcome.instant)
            return known(replacement, outcome)

        def recorded_write(table: Any, current: Any, new: Any, instant: str) -> None:
            write(table, current, new, instant)
            self.note(What.CONFIG_WRITTEN, BASELINE, number=current.default)
            self.note(What.CONFIG_WRITTEN, instant, number=new.default)

        patch.setattr(TableLock, "held", recorded_held)
        patch.setattr(Replacement, "_known", recorded_known)
        patch.setattr(hashing_config, "write", recorded_write)

    def note(self, what: What, instant: str = "", **more: Any) -> None:
        self.events.append(Event(self.now(), what, instant, **more))

    def now(self) -> str:
        return hudi_table(self._spark, self._base, INDEX).now().strftime("%Y%m%d%H%M%S%f")[:17]

    def history(self) -> list[Event]:
        """Returns the recorded events together with those of the timeline."""
        table = hudi_table(self._spark, self._base, INDEX)
        found = list(self.events)
        for commit in table.commits():
            write = commit.write
            replaced: dict[str, list[str]] = {}
            for partition, file_id in write.replaced:
                replaced.setdefault(partition, []).append(file_id)
            stats: dict[str, list[dict[str, str]]] = {}
            for partition, file_id in write.written:
                stats.setdefault(partition, []).append({"fileId": file_id})
            metadata = {
                "operationType": write.operation,
                "partitionToWriteStats": stats,
                "partitionToReplaceFileIds": replaced,
            }
            action = "replacecommit" if write.replaced else "deltacommit"
            found += of_instant(write.instant, action, metadata, completed_at=commit.completed)
        return found


@pytest.mark.exhaustive
def test_an_expansion_beside_a_writer_and_a_repair_follow_the_rules(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tables.write_table(spark, base, copied=False)
    recorder = Recorder(spark, base, monkeypatch)

    def writer_commits() -> None:
        tables.upsert(tables.rows(spark, 0, 700, ts=3), base, options)

    context = At("rewriting", writer_commits, (ExpansionStep.DRAINING, writer_commits))
    run_job(spark, base, "bucket_expansion", {"factor": 2}, context=context)
    tables.upsert(tables.rows(spark, 0, 700, ts=4), base, options)
    _judge(recorder, spark, base)
    assert violations(recorder.history()) == []
    assert len(proved(spark, base, 8)) == 700


@pytest.mark.exhaustive
def test_a_stale_write_breaks_the_rules_until_its_incident_is_repaired(
    spark: SparkSession, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = tables.write_table(spark, base, count=300)
    session = LongSession(spark, base, options)
    recorder = Recorder(spark, base, monkeypatch)
    run_job(spark, base, "clustering", {"sort_by": ["city"]})
    session.run(UPDATE)

    (stale,) = run_job(spark, base, "audit").details["stale_writes"]
    assert any(stale["instant"] in told for told in violations(recorder.history()))

    recorder.note(What.INCIDENT, stale["instant"])
    lock = TableLock(hudi_table(spark, base, INDEX), "the test")
    for ours in run_job(spark, base, "repair").instants:
        # Hudi's own writer makes these instants while we hold the lock for it.
        recorder.note(What.JUDGED, ours)
    with lock.held(JobContext().checkpoint):
        recorder.note(What.REPAIRED, stale["instant"])
    assert violations(recorder.history()) == []


def _judge(recorder: Recorder, spark: SparkSession, base: Path) -> None:
    """Records which commits an audit finds correct, as the service does after each commit."""
    stale = {each["instant"] for each in run_job(spark, base, "audit").details["stale_writes"]}
    for commit in hudi_table(spark, base, INDEX).commits():
        recorder.note(What.INCIDENT if commit.write.instant in stale else What.JUDGED, commit.write.instant)
