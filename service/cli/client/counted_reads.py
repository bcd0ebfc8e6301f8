"""`groundskeeper tables count-reads`"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import LineageDatasetIn, LineageEventIn, LineageRunIn
from service.cli.client.command import of_service
from service.cli.client.connection import Connection, Patience
from service.cli.client.failure import CommandError
from service.cli.client.output import Output
from service.model.formatting import count

if TYPE_CHECKING:
    from service.cli.client.spark_event_logs import EventLogs, QueryReads

# For two days the service recognizes a run that is reported again.
_MOST_HOURS = 47
_PAUSE_SECONDS = 30.0
_PRODUCER = "https://spark.apache.org/event-log"


@of_service
def count_reads(
    service: Connection,
    out: Output,
    folder: Annotated[str, typer.Argument(help="Folder of Spark's event logs, or its URI: s3://logs/spark-events")],
    *,
    hours: Annotated[int, typer.Option(min=1, max=_MOST_HOURS, help="Only queries of the last hours")] = 24,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new queries, until Ctrl-C")] = False,
) -> None:
    """Count the reads of tables in the event logs of Spark. A query counts once for each table, even if the command is
    repeated. Objectives and the order of jobs use the number of reads."""
    # The import of Arrow takes a second, and other commands do not need it.
    from service.cli.client.spark_event_logs import EventLogs

    try:
        logs = EventLogs(folder)
    except (OSError, ValueError) as error:
        raise CommandError.usage(f"The folder cannot be read: {error}") from error
    reported: set[str] = set()
    while True:
        _count(service, out, logs, datetime.now(UTC) - timedelta(hours=hours))
        for path, why in logs.unreadable.items():
            if path not in reported:
                reported.add(path)
                out.note(f"Left out: {path}: {why}.")
        if not follow:
            return
        time.sleep(_PAUSE_SECONDS)


def _count(service: Connection, out: Output, logs: EventLogs, since: datetime) -> None:
    retries = Patience(away=lambda: out.note("The service cannot be reached; trying again."))
    queries = counted = repeated = unknown = 0
    for query in logs.new(since):
        answer = service.send(calls.post_lineage(_event(query)), retries)
        queries += 1
        counted += answer["counted"]
        repeated += answer["repeated"]
        unknown += answer["unknown"]
    out.document({"queries": queries, "counted": counted, "repeated": repeated, "unknown": unknown})
    if not out.as_json and (queries or not logs.unreadable):
        seen = f"; {repeated} were counted before" if repeated else ""
        others = f"; {count(unknown, 'read')} of tables that are not registered" if unknown else ""
        out.say(f"{count(counted, 'read')} counted, of {queries} queries of tables{seen}{others}.")


def _event(query: QueryReads) -> LineageEventIn:
    return LineageEventIn(
        run=LineageRunIn(run_id=query.run), producer=_PRODUCER, inputs=[_dataset(each) for each in query.paths]
    )


def _dataset(path: str) -> LineageDatasetIn:
    """Returns the dataset of a path, with the names that OpenLineage prescribes."""
    scheme, separator, rest = path.partition("://")
    if not separator:
        return LineageDatasetIn(namespace="file", name=path.removeprefix("file:"))
    host, _, name = rest.partition("/")
    return LineageDatasetIn(namespace=f"{scheme}://{host}", name=name)
