"""Values that a user gives: names of tables, times, `name=value` pairs, and files with JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import calls
from service.cli.client.completion import complete_table
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.spelling import guess

TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="Id, name or path of the table", autocompletion=complete_table)
]
TableOption = Annotated[
    str | None, typer.Option("--table", help="Id, name or path of a table", autocompletion=complete_table)
]


def several(what: str, **more: Any) -> Any:
    """Returns an option that limits a list to `what`, and may be repeated."""
    return typer.Option(help=f"Only {what}; repeat it for several. Default: any", **more)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def moment(text: str) -> datetime:
    """Parses an age (`90s`, `30m`, `24h`, `7d`), or a date or time of ISO 8601. A time without a zone is in this
    machine's zone."""
    try:
        if age := re.fullmatch(r"(\d{1,9})([smhd])", text):
            return datetime.now(UTC) - timedelta(seconds=int(age[1]) * _UNITS[age[2]])
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(
            f"{text!r} is neither an age, such as 24h, nor a time, such as 2026-01-31T08:00"
        ) from error


Since = Annotated[
    datetime | None,
    typer.Option("--since", parser=moment, metavar="TIME", help="Only from this time on; or an age, such as 24h"),
]
Until = Annotated[
    datetime | None,
    typer.Option("--until", parser=moment, metavar="TIME", help="Before this time, or this age, such as 1h"),
]

OwnerOption = Annotated[
    list[str] | None, typer.Option("--owner", help="Only tables of this owner; repeat it for one of several")
]
TagOption = Annotated[
    list[str] | None,
    typer.Option("--tag", help="Only tables with this tag, KEY or KEY=VALUE; repeat it for tables with all of several"),
]


def table_of(service: Connection, wanted: str) -> Json:
    """Returns the table with this id, name or path. Raises CommandError if there is no such table, or if several have
    this name."""
    if wanted.startswith("tbl_") and "/" not in wanted:
        try:
            return service.send(calls.get_table(wanted))
        except CommandError as error:
            if error.code is not ExitCode.NOT_FOUND:
                raise
    every = service.every(calls.list_tables())
    paths = {wanted.rstrip("/"), absolute(wanted), str(Path(wanted).resolve())}
    found = [table for table in every if table["base_path"] in paths] or [
        table for table in every if table["name"] == wanted
    ]
    if not found:
        names = (str(table["name"]) for table in every)
        hint = "`groundskeeper tables list` shows them; `groundskeeper tables add` registers one."
        raise CommandError.of(
            ExitCode.NOT_FOUND,
            "No such table is registered",
            f"No table has the id, name or path {wanted}.{guess(wanted, names)}",
            hint,
        )
    if len(found) > 1:
        named = ", ".join(f"{table['id']} ({table['base_path']})" for table in found)
        raise CommandError.usage(f"Several tables are named {wanted}: {named}.", "Give the id or the path.")
    return found[0]


def id_of(service: Connection, wanted: str | None) -> str | None:
    return None if wanted is None else str(table_of(service, wanted)["id"])


def absolute(path: str) -> str:
    """Returns a local path as an absolute one, and a URI unchanged; both without a slash at the end."""
    return path.rstrip("/") if "://" in path else str(Path(path).absolute())


def pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """Parses `name=value` texts."""
    found = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise CommandError.usage(f"{option}: {each!r} is not name=value.")
        found[name] = value
    return found


def values(given: Sequence[str] | None, option: str) -> Json:
    """Parses `name=value` texts whose values are JSON, or else text."""
    return {name: _value(text) for name, text in pairs(given, option).items()}


def from_file(file: Path | None, option: str) -> Json:
    """Reads a JSON object; from standard input if the file is `-`."""
    if file is None:
        return {}
    try:
        content = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text())
    except OSError as error:
        raise CommandError.usage(f"{option}: {file} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CommandError.usage(f"{option}: {file} is not JSON: {error}.") from error
    if not isinstance(content, dict):
        raise CommandError.usage(f"{option}: {file} is not a JSON object.")
    return dict(content)


def confirm(question: str, *, yes: bool) -> None:
    """Asks the user to confirm, unless `yes` is set. Raises CommandError without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError.usage("The command asks for a confirmation, but there is no terminal.", "Add --yes.")
    typer.confirm(question, abort=True)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
