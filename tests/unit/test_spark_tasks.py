"""Tests the names that tasks on Spark give to their files."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jobs.dataplane import spark_tasks
from jobs.job_context import JobContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from jobs.dataplane.spark_tasks import Piece


class OneTask:
    """A Spark application whose first stage has one task, run in this process."""

    defaultParallelism = 1  # noqa: N815 - the name of Spark

    def accumulator(self, value: int) -> Any:
        return SimpleNamespace(value=value, add=lambda _: None)

    def parallelize(self, pieces: list[Piece], _: int) -> Any:
        def mapped(function: Callable[[list[Piece]], Iterator[str]]) -> Any:
            return SimpleNamespace(collect=lambda: list(function(pieces)))

        return SimpleNamespace(mapPartitions=mapped)


def file_name(token: str) -> list[str]:
    return [f"00000000-a_{token}_20260101000000000.parquet"]


def test_two_workers_that_have_run_as_many_tasks_give_the_files_of_one_plan_different_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that was suspended could write over a file that another one has committed."""
    task = SimpleNamespace(partitionId=lambda: 0, stageId=lambda: 4, taskAttemptId=lambda: 7)
    monkeypatch.setattr(spark_tasks, "TaskContext", SimpleNamespace(get=lambda: task))
    monkeypatch.setattr(spark_tasks, "reduce_task_overhead", lambda: None)
    monkeypatch.setattr(spark_tasks, "MOST_BYTES", 0)
    workers: list[Any] = [SimpleNamespace(jvm=SimpleNamespace(spark=SimpleNamespace(sparkContext=OneTask())))] * 2
    names = [
        name
        for worker in workers
        for name in spark_tasks.run_tasks(worker, "naming", file_name, [((), 1)], JobContext())
    ]
    assert len(set(names)) == 2
