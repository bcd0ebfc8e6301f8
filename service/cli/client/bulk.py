"""Changes of many tables, such as `groundskeeper tables pause`, and jobs on many tables. Each command makes one
call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from service.cli.client import arguments, declarations
from service.cli.client.completion import complete_setting
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Output
from service.cli.client.policies import edit
from service.cli.client.problems import Hours, Reason, acknowledgement
from service.model.formatting import count

MOST = 500
"""The largest number of tables of one call."""

Names = Annotated[list[str] | None, typer.Argument(metavar="TABLE", help="Names or ids of the tables")]
Pattern = Annotated[
    str | None,
    typer.Option("--all", metavar="PATTERN", help="Also tables with names of this pattern, such as 'orders_*'"),
]


def change(service: Connection, out: Output, names: list[str] | None, pattern: str | None, **wanted: Any) -> None:
    """Sends the call, and prints an outcome for each table. Ends with exit code 1 if a table was refused."""
    ids = [arguments.table_of(service, each)["id"] for each in names or ()]
    if pattern is not None:
        ids += [each["id"] for each in service.items(calls.list_tables(name=pattern), MOST + 1)["items"]]
    tables = list(dict.fromkeys(ids))
    if not tables:
        raise CommandError.usage("There are no such tables.", "Name them, or give --all and a pattern.")
    if len(tables) > MOST:
        raise CommandError.usage(f"There are more than {MOST} such tables.", "Give a narrower pattern, and repeat.")
    body: Any = {**wanted, "tables": tables}
    answer = service.send(calls.change_tables(body))
    out.document(answer)
    out.table(("TABLE", "OUTCOME", "JOB"), [_row(each) for each in answer["items"]], empty="")
    out.note(f"{count(answer['done'], 'table')} done, {answer['unchanged']} unchanged, {answer['refused']} refused.")
    if answer["refused"]:
        raise typer.Exit(ExitCode.FAILED)


def _row(item: Json) -> tuple[str, str, str]:
    problem = item["problem"]
    said = f"{item['outcome']}: {problem['title']}. {problem['detail']}" if problem else item["outcome"]
    return item["table_name"] or item["table_id"], said, item["job_id"] or "-"


ACTIONS = {
    "pause": "Pause the automatic jobs of tables. Jobs that have begun go on, and jobs can still be submitted.",
    "resume": "Resume the automatic jobs of tables, even if the policy of a pattern pauses them.",
    "unacknowledge": "Take back the acknowledgements of the problems of tables.",
}


def of_action(action: str) -> Callable[..., None]:
    """Returns the command that does one of `ACTIONS` on tables."""

    def act(service: Connection, out: Output, tables: Names = None, *, pattern: Pattern = None) -> None:
        change(service, out, tables, pattern, action=action)

    act.__doc__ = ACTIONS[action]
    return act


def acknowledge(
    service: Connection,
    out: Output,
    tables: Names = None,
    *,
    pattern: Pattern = None,
    hours: Hours = None,
    reason: Reason = None,
) -> None:
    """Mark the present problems of tables as known, until each ends or becomes more serious."""
    change(service, out, tables, pattern, action="acknowledge", **acknowledgement(hours, reason))


def set_policy(
    service: Connection,
    out: Output,
    tables: Names = None,
    *,
    pattern: Pattern = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Such as compaction.commits=10; the value is JSON or text; repeat it for several",
            autocompletion=complete_setting,
        ),
    ] = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(help="Setting to remove, so that weaker levels apply again; repeat it for several"),
    ] = None,
) -> None:
    """Set some settings of each table's own policy; all others stay."""
    policy: Json = {}
    edit(policy, set_, option="--set")
    if not policy and not unset:
        raise CommandError.usage("Nothing to set: give --set or --unset.")
    change(service, out, tables, pattern, action="policy", policy=policy, unset=unset or [])


def label(
    service: Connection,
    out: Output,
    tables: Names = None,
    *,
    pattern: Pattern = None,
    owner: Annotated[str | None, typer.Option(help="Who is responsible; '' for nobody")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag, KEY=VALUE or KEY; repeat it for several")] = None,
    untag: Annotated[list[str] | None, typer.Option(metavar="KEY", help="Tag to remove; repeat it for several")] = None,
) -> None:
    """Declare the owner of tables, and add or remove tags."""
    if owner is None and not tag and not untag:
        raise CommandError.usage("Nothing to declare: give --owner, --tag or --untag.")
    wanted: Json = {} if owner is None else {"owner": owner or None}
    wanted |= {"tags": declarations.tags(tag), "remove_tags": untag or []}
    change(service, out, tables, pattern, action="label", **wanted)
