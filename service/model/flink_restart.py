"""How a Flink job is started again after it was stopped for a job."""

from __future__ import annotations

from enum import StrEnum


class FlinkRestart(StrEnum):
    """How a Flink job has to be started after file groups were replaced.

    With a bucket index it looks the file groups up when it starts. With any other index its state may hold the file
    group of each key (`FLINK_STATE`, the default): then it has to begin without that state.
    """

    FROM_SAVEPOINT = "from-savepoint"
    WITHOUT_STATE = "without-state"
