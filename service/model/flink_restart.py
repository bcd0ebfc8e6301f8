"""The ways in which a Flink job can start again after it was stopped for a job of this service."""

from __future__ import annotations

from enum import StrEnum

from service.model.errors import ConflictError


class FlinkRestart(StrEnum):
    """The way in which a Flink job has to be started after file groups were replaced.

    A Flink job with a bucket index reads the file groups from the table when it starts. If the index is another one,
    the state of the Flink job may contain the file group of each key (`FLINK_STATE`, the default). Such a Flink job has
    to start without that state.
    """

    FROM_SAVEPOINT = "from-savepoint"
    WITHOUT_STATE = "without-state"


class FlinkStateReturnsError(ConflictError):
    type = "flink-state-returns"
    title = "The Flink job with its state would write to file groups that are replaced now"
    hint = (
        'Start the Flink job without its state afterwards, and confirm that with `{"restart": "without-state"}`. If the'
        " writers of the table do use a bucket index, declare `index` for the table (PATCH /v1/tables/{id}): then the"
        " state contains no file groups."
    )
    why = (
        "The state of a Flink job contains the file group of each key if the index is `FLINK_STATE`, Flink's default."
        " The waiting job replaces file groups. A Flink job from a savepoint or checkpoint would write to the old file"
        " groups: Hudi commits these rows, but no reader sees them."
    )
    example = "s3a://lake/orders has no declared bucket index."
