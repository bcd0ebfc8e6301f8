"""`groundskeeper tables writer-options`: options in the form that a writer or a tool needs."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from groundskeeper_client import calls
from groundskeeper_client.generated.models import WriterEngine
from service.cli.client import arguments
from service.cli.client.arguments import TableName
from service.cli.client.command import of_service
from service.cli.client.connection import Connection, Json
from service.cli.client.failure import CommandError
from service.cli.client.output import Output, clean


class Form(StrEnum):
    SQL = "sql"
    PROPERTIES = "properties"
    DDL = "ddl"
    JSON = "json"


@of_service
def writer_options(
    service: Connection,
    out: Output,
    table: TableName,
    *,
    engine: Annotated[WriterEngine, typer.Option(help="Engine of the writer")] = WriterEngine.SPARK,
    hudi_version: Annotated[
        str | None, typer.Option(help="Hudi version of the writer. Default: the declared one, or 1.2.0")
    ] = None,
    form: Annotated[
        Form | None,
        typer.Option(
            "--format",
            help="sql: SET or WITH; properties: name=value; ddl: CREATE TABLE; json: one object with the options of the"
            " writer. Default: sql, and properties for DataFrames",
        ),
    ] = None,
) -> None:
    """Show the options that a writer of a table needs. Further advice goes to standard error."""
    table_id = arguments.table_of(service, table)["id"]
    found = service.send(calls.get_writer_options(table_id, engine=engine, hudi_version=hudi_version))
    out.document(found)
    if not out.as_json:
        for line in shown(found, form or (Form.SQL if found["sql"] else Form.PROPERTIES)).splitlines():
            out.line(clean(line))
    for note in found["notes"]:
        out.note(note)


def shown(found: Json, form: Form) -> str:
    """Returns the options in this form. Raises CommandError if the engine does not have this form."""
    sql, session = found["sql"], found["session_conf"]
    match form:
        case Form.JSON:
            return json.dumps(found["options"], indent=2)
        case Form.PROPERTIES:
            return "".join(
                f"{_escaped(name)}={_escaped(value)}\n" for name, value in {**found["options"], **session}.items()
            )
        case Form.SQL:
            text = "\n".join(text for purpose, text in sql.items() if purpose != "create")
        case Form.DDL:
            text = sql.get("create", "")
    if not text:
        hint = "DataFrames take properties or json." if found["engine"] == WriterEngine.SPARK else ""
        raise CommandError.usage(f"There is no {form} for {found['engine']} and this table.", hint)
    return text


def _escaped(text: str) -> str:
    """Escapes the characters that have a meaning in a file of Java properties."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")
