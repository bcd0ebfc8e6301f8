"""The options that every command of the client has, and the end of a command."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from service.cli.client.connection import DEFAULT_URL, Connection, token_of
from service.cli.client.failure import CommandError, ExitCode
from service.cli.client.output import Output

Url = Annotated[str, typer.Option("--url", envvar="GROUNDSKEEPER_URL", help="Address of the service")]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", help="File with a token. Default: the variable GROUNDSKEEPER_TOKEN")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON as the API returns it")]
Limit = Annotated[int, typer.Option(min=1, help="Most items to list")]

P = ParamSpec("P")

_COMMON = {"url": (Url, DEFAULT_URL), "token_file": (TokenFile, None), "as_json": (AsJson, False)}


def of_service(command: Callable[Concatenate[Connection, Output, P], None]) -> Callable[..., None]:
    """Gives a command the options --url, --token-file and --json, and calls it with a connection and an output."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[2:]

    @functools.wraps(command)
    def run(*arguments: Any, url: str, token_file: Path | None, as_json: bool, **options: Any) -> None:
        with ended_properly(Output(as_json=as_json)) as out, Connection(url, token_of(token_file)) as service:
            command(service, out, *arguments, **options)

    common = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _COMMON.items()
    ]
    run.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]  # this is what typer reads
    run.__annotations__ = {each.name: each.annotation for each in (*own, *common)}
    return run


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
