"""The options that every command of the client has, and the end of a command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from service.cli.client.connection import DEFAULT_URL, Connection, connected
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Form, Output

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="GROUNDSKEEPER_URL",
        help=f"Address of the service. Default: the address of the context, or {DEFAULT_URL}",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help="File with a token. Default: GROUNDSKEEPER_TOKEN, or the token of the context"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON as the API returns it; the same as -o json")]
FormOption = Annotated[Form, typer.Option("--output", "-o", help="Form of the output; name prints ids only")]
Limit = Annotated[int, typer.Option(min=1, help="Most items to list")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")]

P = ParamSpec("P")

_COMMON: dict[str, tuple[Any, Any]] = {
    "url": (Url, None),
    "token_file": (TokenFile, None),
    "as_json": (AsJson, False),
    "output_form": (FormOption, Form.TABLE),
}


def of_service(command: Callable[Concatenate[Connection, Output, P], None]) -> Callable[..., None]:
    """Gives a command the options --url, --token-file, --json and --output, and calls it with a connection and an
    output. If a command writes to a file, it defines --output itself."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[2:]

    @functools.wraps(command)
    def run(
        *arguments: Any,
        url: str | None,
        token_file: Path | None,
        as_json: bool,
        output_form: Form = Form.TABLE,
        **options: Any,
    ) -> None:
        with ended_properly(Output(as_json=as_json, form=output_form)) as out, connected(url, token_file) as service:
            command(service, out, *arguments, **options)

    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _COMMON.items()
        if name != "output_form" or all(each.name != "output" for each in own)
    ]
    run.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]  # this is what typer reads
    run.__annotations__ = {each.name: each.annotation for each in (*own, *common)}
    return run


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds a command of the service to a group, under this name."""
    return lambda function: app.command(name)(of_service(function))


@contextmanager
def ended_properly(out: Output) -> Iterator[Output]:
    """Turns a failure of the block into a message and an exit code."""
    try:
        yield out
    except CommandError as error:
        out.failure(error)
        raise typer.Exit(error.code) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(ExitCode.INTERRUPTED) from error
