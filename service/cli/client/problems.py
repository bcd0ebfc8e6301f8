"""`groundskeeper problems`"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from service.cli.client import given
from service.cli.client.command import Limit, of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import ExitCode
from service.cli.client.given import TableOption
from service.cli.client.output import Output, ago, clean
from service.standing.problem import Severity, StandingKind


@of_service
def problems(
    service: Connection,
    out: Output,
    *,
    table: TableOption = None,
    kind: Annotated[
        list[StandingKind] | None,
        typer.Option(
            metavar="KIND", help="Only of this kind, such as lock-awaited; repeat it for several. Default: any"
        ),
    ] = None,
    severity: Annotated[
        list[Severity] | None, typer.Option(help="Only of this severity; repeat it for several. Default: any")
    ] = None,
    limit: Limit = 100,
) -> None:
    """List what is wrong now, the most serious first, with the command that helps. Words in <> are yours to replace.
    Exit code 1 if a problem is critical, or a job failed for good; 0 if that is so of none of those listed."""
    page = _listed(
        service,
        limit,
        table_id=given.id_of(service, table),
        kind=[each.value for each in kind] if kind else None,
        severity=[each.value for each in severity] if severity else None,
    )
    if out.as_json:
        out.json(page)
    else:
        for number, each in enumerate(page["items"]):
            if number:
                out.say("")
            _show(out, each)
        if not page["items"]:
            out.note("There are no problems.")
        elif page["next_cursor"]:
            out.note(f"There are more: {_total(page)} in all. Raise --limit.")
    has_failed = any(each["kind"] == StandingKind.JOB_FAILING for each in page["items"])
    if page["counts"]["critical"] or has_failed:
        raise typer.Exit(ExitCode.FAILED)


def _listed(service: Connection, limit: int, **params: Any) -> Json:
    """Returns the problems as one page, with the counts of the last one."""
    items: list[Json] = []
    cursor: str | None = None
    while True:
        page = service.get("/v1/problems", limit=min(limit - len(items), 500), cursor=cursor, **params)
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None or len(items) >= limit:
            return {**page, "items": items}


def _show(out: Output, problem: Json) -> None:
    out.pairs(
        [
            (problem["severity"], problem["title"]),
            ("about", f"{problem['about']['type']} {problem['about']['name']} ({problem['about']['id']})"),
            ("since", ago(problem["since"])),
            ("detail", problem["detail"]),
            ("consequence", problem["consequence"]),
            ("remedy", problem["remedy"]),
        ]
    )
    # On one line, however long: a terminal copies a broken one with its breaks.
    out.line(f"{'command':<{len('consequence')}}  {clean(problem['command'])}")


def _total(page: Json) -> int:
    return sum(int(number) for number in page["counts"].values())
