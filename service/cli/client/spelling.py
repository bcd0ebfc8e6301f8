"""Guesses for misspelled words, and errors of the command line in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

_CHOICE = re.compile(r"'(?P<given>.*)' is not one of (?P<known>'.*')\.$", re.DOTALL)
# At most this many names are compared, because comparing very many takes seconds.
_MOST_KNOWN = 20_000


def guess(given: str, known: Iterable[str]) -> str:
    """Returns a question such as " Is orders meant?"; empty if no known word is similar."""
    folded = {each.lower(): each for each, _ in zip(known, range(_MOST_KNOWN), strict=False)}
    found = get_close_matches(given.lower(), folded, n=1, cutoff=0.7)
    return f" Is {folded[found[0]]} meant?" if found else ""


class PlainGroup(TyperGroup):
    """A group of commands. Errors are in plain words, not in those of the validating library. Help texts are wrapped at
    the width of the terminal, not where the source has line breaks."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _simplify(self)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            message = str(error.message).removeprefix("Value error, ")
            if choice := _CHOICE.search(message):
                message += guess(choice["given"], re.findall(r"'([^']*)'", choice["known"]))
            error.message = message
            raise


def _simplify(command: Any) -> None:
    """Joins the lines of each paragraph in the help of a command and of all its subcommands. Shows flags without a
    type, because they take no value."""
    command.help = command.help and "\n\n".join(" ".join(each.split()) for each in command.help.split("\n\n"))
    for each in command.params:
        if getattr(each, "is_bool_flag", False):
            each.metavar = ""
    made = command.get_help_option

    def help_option(context: Any) -> Any:
        if option := made(context):
            option.metavar = ""
        return option

    command.get_help_option = help_option
    for each in getattr(command, "commands", {}).values():
        _simplify(each)
