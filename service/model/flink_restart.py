"""The ways to start a Flink job again after it was stopped for a job."""

from __future__ import annotations

from enum import StrEnum

from service.model.errors import ConflictError


class FlinkRestart(StrEnum):
    """The way in which a Flink job has to be started after file groups were replaced.

    A job with a bucket index reads the file groups from the table when it starts. The state of a job with another index
    may hold the file group of each key (`FLINK_STATE`, the default): then the job has to begin without that state.
    """

    FROM_SAVEPOINT = "from-savepoint"
    WITHOUT_STATE = "without-state"


class FlinkStateReturnsError(ConflictError):
    type = "flink-state-returns"
    title = "The Flink job with its state would write to file groups that are replaced now"
    hint = (
        "The state of a Flink job may hold the file group of each key, unless the table has a bucket index. Start the"
        ' job without its state afterwards, and confirm that with `{"restart": "without-state"}`. If its writers do use'
        " a bucket index, declare `index` for the table (PATCH /v1/tables/{id})."
    )
    why = (
        "The state of a Flink job says which file group a key is in, where the index is `FLINK_STATE`, Flink's default."
        " The waiting job replaces file groups, and a savepoint or checkpoint would bring the old ones back: Hudi"
        " commits what is written to them, and no reader sees it."
    )
    example = "s3a://lake/orders has no declared bucket index."
