"""The writers of `by_itself.py`: each one runs beside the daemon until its end is requested, and knows the expected
rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import BucketIndex
    from tests.acceptance.daemon import Daemon

Json = dict[str, Any]


class Writer(Protocol):
    """One kind of writer; `index` is the index of its table. `declared` is what the owner declares about it at
    registration, `settings` are settings of the service. A clustering orders by `sort_by`. Two jobs for which the
    writer has to be stopped are at least `pause_seconds` apart.
    """

    index: BucketIndex | None
    declared: Json
    settings: dict[str, str]
    sort_by: str
    pause_seconds: int

    def running(self, folder: Path, base: Path) -> Any:
        """Runs the writer within the block, which begins when the table exists."""

    def registered(self, daemon: Daemon, table: str) -> None:
        """Tells the writer that the table is registered, so that it can request its options."""

    def changed(self, options: Mapping[str, str]) -> None:
        """Adds these options to those of the writer, as its owner does before an index is built."""

    def compared(self, spark: SparkSession, base: Path) -> Json:
        """Compares the table with the expected rows after the writer's end; returns `ok` and the counts."""


def printed_options(daemon: Daemon, table: str, engine: str) -> dict[str, str]:
    """Returns the options that the service prints for a writer of this engine."""
    answer = daemon.call("GET", f"/v1/tables/{table}/writer-options", params={"engine": engine})
    assert answer.is_success, answer.text
    options: dict[str, str] = answer.json()["options"]
    return options
