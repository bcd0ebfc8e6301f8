"""`groundskeeper config`"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from jobs.redaction import MASK, redacted
from service.cli.client import stored_contexts
from service.cli.client.connection import DEFAULT_URL
from service.cli.client.output import Output, compact

app = typer.Typer(help="See the settings.", no_args_is_help=True)


@app.command("show")
def show(
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that differ from their default")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the settings as JSON, with name, value and source")
    ] = False,
) -> None:
    """Show the settings that a service or worker in this shell would have, and their sources. Secrets are masked. A
    variable GROUNDSKEEPER_... that is not a setting is an error."""
    # The import is made here, so that the other commands start at once.
    from service.runtime.effective_settings import Effective, effective

    url, token = os.environ.get("GROUNDSKEEPER_URL"), os.environ.get("GROUNDSKEEPER_TOKEN")
    context = None if url else stored_contexts.read().in_use
    source = "context" if context else "environment" if url else "default"
    settings = [
        *effective(),
        Effective("GROUNDSKEEPER_URL", redacted(context.url if context else url or DEFAULT_URL), source),
        Effective("GROUNDSKEEPER_TOKEN", MASK if token else None, "environment" if token else "default"),
    ]
    if changed:
        settings = [each for each in settings if each.source != "default"]
    out = Output(as_json=as_json)
    out.document({"settings": [each.to_json() for each in settings]})
    out.table(
        ("NAME", "VALUE", "SOURCE"),
        [(each.name, "" if each.value is None else compact(each.value), each.source) for each in settings],
        empty="All settings are the defaults.",
    )
