"""`groundskeeper context`: names for services, and the service that commands call. Variables of the environment take
precedence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from groundskeeper_client import Client, ClientError
from service.cli.client.command import AsJson, FormOption, ended_properly
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Form, Output
from service.cli.client.spelling import guess
from service.cli.client.stored_contexts import Context, Contexts, read, write

app = typer.Typer(help="Name services, and choose the one that commands call.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the context, such as prod")]


@app.command("add")
def add(
    name: Name,
    url: Annotated[str, typer.Option("--url", help="Address of the service")],
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with a token. The file stays where it is")
    ] = None,
) -> None:
    """Add a context, or replace the one of this name. The first context is used at once."""
    with ended_properly(Output()) as out:
        if not name.isprintable() or not name.strip() or len(name) > 64:
            raise CommandError.usage("A context's name is 1 to 64 characters that can be printed.")
        try:
            Client(url).close()
        except ClientError as error:
            raise CommandError.usage(str(error)) from error
        known = read()
        context = Context(url, str(token_file.absolute()) if token_file else None)
        write(Contexts(known.current or name, {**known.contexts, name: context}))
        out.say(f"{name} is {url}{'.' if known.current else ', and is used from now on.'}")


@app.command("use")
def use(name: Name) -> None:
    """Have commands call the service of this context from now on."""
    with ended_properly(Output()) as out:
        known = _with(name)
        write(Contexts(name, known.contexts))
        out.say(f"Commands call {known.contexts[name].url} now.")
        if os.environ.get("GROUNDSKEEPER_URL"):
            out.note("In this shell GROUNDSKEEPER_URL is set, and takes precedence.")


@app.command("list")
def list_contexts(as_json: AsJson = False, form: FormOption = Form.TABLE) -> None:
    """List the contexts. The one in use has a star."""
    with ended_properly(Output(as_json=as_json, form=form)) as out:
        known = read()
        items: list[dict[str, Any]] = [
            {"name": name, "url": each.url, "token_file": each.token_file, "in_use": name == known.current}
            for name, each in known.contexts.items()
        ]
        out.document({"items": items})
        rows = [("*" if each["in_use"] else "", each["name"], each["url"], each["token_file"] or "") for each in items]
        out.table(("", "NAME", "URL", "TOKEN FILE"), rows, empty="There are no contexts.")


@app.command("remove")
def remove(name: Name) -> None:
    """Remove a context. The file with the context's token stays."""
    with ended_properly(Output()) as out:
        known = _with(name)
        rest = {each: context for each, context in known.contexts.items() if each != name}
        write(Contexts(None if known.current == name else known.current, rest))
        out.say(f"Removed {name}.")


def _with(name: str) -> Contexts:
    known = read()
    if name not in known.contexts:
        detail = f"No context is named {name}.{guess(name, known.contexts)}"
        raise CommandError.of(ExitCode.NOT_FOUND, "There is no such context", detail, "`context list` shows them.")
    return known
