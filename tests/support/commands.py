"""Calls commands of the command line in this process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from typer import testing

from service.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Typer rebuilds all commands of the program for each call, which takes longer than most calls.
testing._get_command = cache(testing._get_command)


def called(arguments: Sequence[str], env: Mapping[str, str | None] | None = None) -> testing.Result:
    """Calls a command without a terminal, as in a pipe. Exceptions of the command are raised here."""
    return testing.CliRunner().invoke(app, arguments, env=env, catch_exceptions=False)
