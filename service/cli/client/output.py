"""The output of a command: JSON, or text for people. Control characters, which names may contain, are not printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.client.connection import Json
from service.cli.client.failure import CommandError
from service.cli.client.spelling import guess
from service.model.formatting import duration

_STYLES = {
    "succeeded": "green",
    "delivered": "green",
    "ready": "green",
    "ok": "green",
    "held": "yellow",
    "failed": "red",
    "refused": "red",
    "dead": "red",
    "open": "red",
    "running": "cyan",
    "leased": "cyan",
    "queued": "yellow",
    "suspected": "yellow",
    "unknown": "yellow",
}

Columns = Mapping[str, str | Callable[[Json], Any]]
"""The columns of a table by their headings. A column is the name of a member of each item, such as `target.type`, or a
function of the item."""


class Form(StrEnum):
    """A form of output. `TABLE` is for people, all others for programs."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


class Output:
    """Prints what a command has to say. On a terminal, tables fit its width, and states have colours unless NO_COLOR is
    set. Otherwise the columns are plain and complete, so that other programs can read them. `as_json`, or another form
    for programs, prints only documents, lines and the failure, without texts for people."""

    def __init__(self, *, as_json: bool = False, form: Form = Form.TABLE) -> None:
        self.form = Form.JSON if as_json else form
        self.as_json = self.form is not Form.TABLE
        self.console = Console(highlight=False, markup=False, emoji=False)
        self._errors = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def document(self, document: Any) -> None:
        """Prints the document in the chosen form; prints nothing if this form is for people."""
        match self.form:
            case Form.JSON:
                self.line(json.dumps(document, indent=2, ensure_ascii=not self.console.is_terminal))
            case Form.YAML:
                self.line(as_yaml(document).rstrip("\n"))
            case Form.NAME:
                for each in document.get("items", [document]):
                    self.line(clean(_name_of(each)))

    def answer(self, document: Any, text: str) -> None:
        """Prints the API's answer, or `text` in the form for people."""
        self.document(document)
        self.say(text)

    def line(self, text: str) -> None:
        """Prints a line unchanged, however long it is."""
        print(text, flush=True)  # Rich would wrap the line.

    def say(self, text: str, *, style: str | None = None) -> None:
        if self.as_json:
            return
        if self.console.is_terminal:
            self.console.print(Text(clean(text), style=style or ""))
        else:
            self.line(clean(text))

    def note(self, text: str) -> None:
        """Prints to stderr."""
        if not self.as_json:
            self._errors.print(Text(clean(text)), soft_wrap=True)

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
        """Prints a table. The first column is never broken into lines."""
        if self.as_json:
            return
        shown = [[clean(str(cell)) for cell in row] for row in rows]
        if not shown:
            self.note(empty)
        elif self.console.is_terminal:
            table = Table(box=None, pad_edge=False, header_style="bold")
            for number, heading in enumerate(headings):
                table.add_column(heading, no_wrap=number == 0, overflow="fold")
            for cells in shown:
                table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
            self.console.print(table)
        else:
            _print_plain([list(headings), *shown])

    def listing(self, page: Json, columns: Columns, *, empty: str) -> None:
        """Prints the items of an answer, either as the API returns them or as a table."""
        self.document(page)
        rows = ([_cell(each, column) for column in columns.values()] for each in page["items"])
        self.table(list(columns), rows, empty=empty)

    def details(self, document: Json, *members: str | tuple[str, Any]) -> None:
        """Prints an object, either as the API returns it or as names and values. A member stands for its name and
        value."""
        self.document(document)
        self.pairs(members, document)

    def pairs(self, pairs: Iterable[str | tuple[str, Any]], document: Json | None = None) -> None:
        """Prints names and values, without names that have no value. A name alone is a member of `document`."""
        if self.as_json:
            return
        named = ((each.replace("_", " "), _cell(document, each)) if isinstance(each, str) else each for each in pairs)
        shown = [[name, clean(str(value))] for name, value in named if value not in (None, "", [], {})]
        if not self.console.is_terminal:
            _print_plain(shown)
            return
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True, style="bold")
        table.add_column(overflow="fold")
        for name, value in shown:
            table.add_row(name, Text(value, style=_STYLES.get(value, "")))
        self.console.print(table)

    def failure(self, error: CommandError) -> None:
        """Prints title, detail and hint to stderr, or the problem document."""
        if self.as_json:
            self._errors.print(json.dumps(error.document, indent=2), soft_wrap=True)
            return
        title, detail, hint = (clean(str(error.document.get(part) or "")) for part in ("title", "detail", "hint"))
        unknown = [each["field"] for each in error.document.get("errors", ()) if each["message"] == "is not known here"]
        if unknown:
            # The import is made here because it takes as long as a whole command.
            from service.cli.client.completion import every_member

            detail += "".join(f".{each}" for name in unknown if (each := guess(name, every_member(name.count(".")))))
        self._errors.print(Text(f"groundskeeper: {title}", style="bold red"), soft_wrap=True)
        for text in (detail if detail != title else "", hint):
            if text:
                self._errors.print(Text(f"  {text}"), soft_wrap=True)


def as_yaml(document: Any) -> str:
    # The import is made here because it takes as long as a whole command.
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120))


def _name_of(item: Any) -> str:
    """Returns the word by which commands identify an object."""
    return next((str(item[each]) for each in ("id", "pattern", "name", "base_path") if item.get(each)), "")


def clean(text: str) -> str:
    """Replaces characters that could move the cursor of a terminal or break the line."""
    return "".join(each if each.isprintable() else " " for each in text)


def ago(moment: str | None, now: datetime | None = None) -> str:
    """Formats a time of the API as an age."""
    if moment is None:
        return ""
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds()
    return f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"


def took(document: Mapping[str, Any]) -> str:
    """Returns the time from the submission of a job to its end, or until now."""
    end = document["finished_at"]
    until = datetime.fromisoformat(end) if end else datetime.now(UTC)
    return duration(max(0.0, (until - datetime.fromisoformat(document["created_at"])).total_seconds()))


def compact(value: Any) -> str:
    """Returns a text unchanged, and any other value as JSON on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def age(member: str) -> Callable[[Json], str]:
    """Returns a column with the time since a moment in a member, or until this moment."""
    return lambda item: ago(_cell(item, member) or None)


def _cell(item: Any, column: str | Callable[[Json], Any]) -> Any:
    """Returns a value of an item in words. A list becomes its elements, null an empty text."""
    if not isinstance(column, str):
        return column(item)
    for part in column.split("."):
        item = item and item[part]
    if isinstance(item, list):
        return ", ".join(map(str, item))
    return "" if item is None else item


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)
