"""`groundskeeper problems`, `acknowledge` and `unacknowledge`"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import ProblemKind, Severity
from service.cli.client import arguments
from service.cli.client.arguments import OwnerOption, TableOption, TagOption, several
from service.cli.client.command import Limit, of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import ExitCode
from service.cli.client.output import Output, ago, clean
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
    """Mark single problems as known, until each ends or becomes more serious, or only for some hours."""
    wanted: Any = acknowledgement(hours, reason)
    found = [service.send(calls.acknowledge_problem(each, wanted)) for each in problems]
    out.document({"items": found})
    out.say(f"{count(len(found), 'problem')} acknowledged {described(found[0])}.")


@of_service
def unacknowledge(service: Connection, out: Output, problems: Problems) -> None:
    """Take back acknowledgements of problems. Notifications then report these problems again."""
    for each in problems:
        service.send(calls.unacknowledge_problem(each))
    out.say(f"{count(len(problems), 'problem')} no longer acknowledged.")


@of_service
def problems(
    service: Connection,
    out: Output,
    *,
    table: TableOption = None,
    kind: Annotated[list[ProblemKind] | None, several("of this kind, such as lock-awaited", metavar="KIND")] = None,
    severity: Annotated[list[Severity] | None, several("of this severity")] = None,
    owner: OwnerOption = None,
    tag: TagOption = None,
    limit: Limit = 100,
) -> None:
    """List what is wrong now, the most serious first, with a command that helps. Replace words in <> before you use the
    command. Exit code 1 if a listed problem is critical or says that a job failed for good, else 0."""
    table_id = arguments.id_of(service, table)
    listed = calls.list_problems(table_id=table_id, kind=kind, severity=severity, owner=owner, tag=tag)
    # The counts come from the last page.
    page = service.items(listed, limit)
    out.document(page)
    for number, each in enumerate(page["items"]):
        if number:
            out.say("")
        _show(out, each)
    if not page["items"]:
        out.note("There are no problems.")
    elif page["next_cursor"]:
        out.note(f"There are more: {sum(page['counts'].values())} in all. Raise --limit.")
    has_failed = any(each["kind"] == ProblemKind.JOB_FAILING for each in page["items"])
    if page["counts"]["critical"] or has_failed:
        raise typer.Exit(ExitCode.FAILED)


def _show(out: Output, problem: Json) -> None:
    out.pairs(
        [
            (problem["severity"], problem["title"]),
            ("id", problem["id"]),
            ("about", f"{problem['about']['type']} {problem['about']['name']} ({problem['about']['id']})"),
            ("since", ago(problem["since"])),
            ("detail", problem["detail"]),
            ("consequence", problem["consequence"]),
            ("remedy", problem["remedy"]),
            ("known", described(known) if (known := problem["acknowledged"]) else None),
        ]
    )
    # The command is on one line, however long it is, because copying a wrapped line from a terminal copies its breaks.
    if not out.as_json:
        out.line(f"{'command':<{len('consequence')}}  {clean(problem['command'])}")
