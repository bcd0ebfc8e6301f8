"""Tests which pending instants count as left behind by dead jobs and writers."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs.format.instants import wall_clock
from jobs.hudi.records import Instant
from jobs.protocol.leftovers import ENDING, is_leftover

_BEGUN = "20260101120000000"
_LONG = ENDING + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("heartbeat", "age", "facts", "expected"),
    [
        ("dead", _LONG, {}, True),
        ("alive", _LONG, {}, False),
        ("alive", _LONG, {"retries": True, "stopped": True}, False),
        (None, _LONG, {}, False),
        (None, _LONG, {"retries": True}, True),
        (None, _LONG, {"stopped": True}, True),
        (None, ENDING, {"stopped": True}, False),
        (None, _LONG, {"stopped_by_service": True}, True),
        ("dead", _LONG, {"flink": True}, False),
        (None, _LONG, {"flink": True, "retries": True}, False),
        ("dead", _LONG, {"flink": True, "stopped": True}, True),
        ("alive", _LONG, {"flink": True, "stopped": True}, False),
    ],
)
def test_an_instant_is_left_over_only_if_nobody_works_on_it(
    heartbeat: str | None, age: timedelta, facts: dict[str, bool], expected: bool
) -> None:
    declared = SimpleNamespace(
        writers_stopped=facts.get("stopped", False), writers_retry_conflicts=facts.get("retries", False)
    )
    table = SimpleNamespace(
        declared=declared, may_have_flink=facts.get("flink", False), now=lambda: wall_clock(_BEGUN) + age
    )
    client = SimpleNamespace(has_heartbeat=lambda _: heartbeat is not None, is_dead=lambda _: heartbeat == "dead")
    item = Instant(_BEGUN, "deltacommit", "INFLIGHT")
    stopped = facts.get("stopped_by_service", False)
    assert is_leftover(cast("Any", table), cast("Any", client), item, writers_stopped=stopped) is expected
