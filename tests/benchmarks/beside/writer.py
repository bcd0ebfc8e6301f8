"""The writers of `by_itself.py`: each runs beside the daemon until it is told to end, and knows what must be there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from jobs.contract import BucketIndex
    from tests.acceptance.daemon import Daemon

Json = dict[str, Any]


class Writer(Protocol):
    """One kind of writer, of a table with `index`, or with another than a bucket index.

    `declared` is what its owner says of it at registration, `settings` are for the service. A clustering orders by
    `sort_by`. `pause_seconds` lie between two jobs of a kind for which it has to be stopped.
    """

    index: BucketIndex | None
    declared: Json
    settings: dict[str, str]
    sort_by: str
    pause_seconds: int

    def running(self, folder: Path, base: Path) -> Any:
        """A context in which it writes; the table is there when it is entered."""

    def registered(self, daemon: Daemon, table: str) -> None:
        """The table has been registered; the writer may ask for its options."""

    def compared(self, spark: SparkSession, base: Path) -> Json:
        """After its end: `ok`, and the counts of what was found."""


def printed_options(daemon: Daemon, table: str, engine: str) -> dict[str, str]:
    """What the service tells a writer of this engine to set."""
    answer = daemon.call("GET", f"/v1/tables/{table}/writer-options", params={"engine": engine})
    assert answer.is_success, answer.text
    options: dict[str, str] = answer.json()["options"]
    return options
