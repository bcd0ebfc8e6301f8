"""`groundskeeper acknowledge` and `unacknowledge`"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from service.cli.client.command import of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.output import Output, ago
from service.model.formatting import count

Problems = Annotated[
    list[str], typer.Argument(metavar="PROBLEM", help="Ids, as `groundskeeper problems` shows them: prb_...")
]
Hours = Annotated[float | None, typer.Option(min=0.01, max=8760, help="For how long. Default: until the problem ends")]
Reason = Annotated[str | None, typer.Option(help="Why, for others")]


def acknowledgement(hours: float | None, reason: str | None) -> dict[str, Any]:
    """Returns the members of a request, without those that were not given."""
    until = {} if hours is None else {"until": (datetime.now(UTC) + timedelta(hours=hours)).isoformat()}
    return {**until, **({"reason": reason} if reason else {})}


def described(known: Json) -> str:
    until = f" until {known['until']}" if known["until"] else ""
    return f"{ago(known['at'])} by {known['by']}{until}" + (f": {known['reason']}" if known["reason"] else "")


@of_service
def acknowledge(
    service: Connection, out: Output, problems: Problems, *, hours: Hours = None, reason: Reason = None
) -> None:
    """Mark single problems as known, until each ends or becomes more serious, or for some hours."""
    wanted: Any = acknowledgement(hours, reason)
    found = [service.send(calls.acknowledge_problem(each, wanted)) for each in problems]
    out.document({"items": found})
    out.say(f"{count(len(found), 'problem')} acknowledged {described(found[0])}.")


@of_service
def unacknowledge(service: Connection, out: Output, problems: Problems) -> None:
    """Take back acknowledgements of problems: notifications report these problems again."""
    for each in problems:
        service.send(calls.unacknowledge_problem(each))
    out.say(f"{count(len(problems), 'problem')} no longer acknowledged.")
