"""Tests that an idle worker makes few calls and sends few heartbeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jobs.hudi.executors import Executors
from jobs.hudi.idle_jvm import spark_options
from jobs.worker.slots import Slots


@pytest.mark.parametrize(
    ("master", "options", "found"),
    [
        ("local[2,4]", {}, "30s"),
        ("local[2,4]", {"spark.executor.heartbeatInterval": "5s"}, None),
        ("local[2,4]", {"spark.network.timeout": "20s"}, None),
        ("local[2,4]", {"spark.storage.blockManagerHeartbeatTimeoutMs": "20000"}, None),
        ("spark://host:7077", {}, None),
        ("yarn", {}, None),
    ],
)
def test_only_the_executor_in_a_local_driver_sends_few_heartbeats(
    master: str, options: dict[str, str], found: str
) -> None:
    assert spark_options(master, options).get("spark.executor.heartbeatInterval") == found


def _executors(master: str, asked: list[bool]) -> Executors:
    scala = SimpleNamespace(isStopped=lambda: asked.append(True) or False)
    context: Any = SimpleNamespace(
        _jsc=SimpleNamespace(sc=lambda: scala), master=master, getConf=lambda: SimpleNamespace(get=lambda _name: None)
    )
    return Executors(context)


def test_an_idle_worker_asks_only_a_local_jvm_seldom_for_its_state() -> None:
    local: list[bool] = []
    executors = _executors("local[2,4]", local)
    assert not any(executors.has_ended(is_idle=True) for _ in range(5))
    assert len(local) == 1
    assert not any(executors.has_ended() for _ in range(5))
    assert len(local) == 6
    others: list[bool] = []
    of_cluster = _executors("spark://host:7077", others)
    assert not any(of_cluster.has_ended(is_idle=True) for _ in range(5))
    assert len(others) == 5


def test_slots_say_that_they_worked_while_a_job_runs_and_once_after_its_end() -> None:
    slots = Slots(1, 0, take=lambda _only: None, takes_no_more=lambda: True)
    assert not slots.have_worked()
    with slots.taken(is_submitted=True):
        assert slots.have_worked()
        assert slots.have_worked()
    assert slots.have_worked()
    assert not slots.have_worked()
    with slots.taken(is_submitted=False):
        pass
    assert slots.have_worked()
    assert not slots.have_worked()
