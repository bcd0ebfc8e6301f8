"""`groundskeeper problems`"""

from __future__ import annotations

from typing import Annotated

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import ProblemKind, Severity
from service.cli.client import acknowledgements, arguments
from service.cli.client.arguments import OwnerOption, TableOption, TagOption, several
from service.cli.client.command import Limit, of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import ExitCode
from service.cli.client.output import Output, ago, clean


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
    """List what is wrong now, the most serious first, with the command that helps. Replace words in <> before you use
    it. Exit code 1 if a listed problem is critical or says that a job failed for good, else 0."""
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
            ("known", acknowledgements.described(known) if (known := problem["acknowledged"]) else None),
        ]
    )
    # The command is on one line, however long, because a terminal copies a wrapped line with its breaks.
    if not out.as_json:
        out.line(f"{'command':<{len('consequence')}}  {clean(problem['command'])}")
