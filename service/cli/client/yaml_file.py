"""Reads YAML files of users, and records the line of each value. The size is limited, and duplicate keys, anchors and
tags are refused. Plain words are read as in YAML 1.2: `off` and `22:00` are texts, not false and a number."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.cli.client.failure import CommandError, ExitCode

MOST_BYTES = 4 * 1024 * 1024
_DEEPEST = 20
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?[0-9]{1,30}")
_NUMBER = re.compile(r"[-+]?[0-9]{1,30}\.[0-9]{0,30}([eE][-+][0-9]{1,3})?")

FieldPath = tuple[str | int, ...]
"""The path to a value: names of members and numbers of items."""


@dataclass
class YamlFile:
    """A file that was read. `lines` has the line of each value, counted from 1."""

    name: str
    value: Any = None
    lines: dict[FieldPath, int] = field(default_factory=dict)

    def wrong(self, path: FieldPath, message: str) -> CommandError:
        """Returns the failure that names the file, the line and the field."""
        nearest = next((path[:end] for end in range(len(path), -1, -1) if path[:end] in self.lines), ())
        what = f"{path_text(path)}: {message}" if path else message
        return CommandError.of(
            ExitCode.USAGE, "The file is not valid", f"{self.name}, line {self.lines.get(nearest, 1)}: {what}"
        )


def path_text(path: FieldPath) -> str:
    """Returns the path to a value as text: `tables[0].lock.provider`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read(file: Path) -> YamlFile:
    """Reads one document; from standard input if the file is `-`. Raises CommandError."""
    import yaml  # The import takes a while, and few commands need it.

    found = YamlFile("standard input" if str(file) == "-" else str(file))
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise CommandError.usage(f"{file} cannot be read: {error.strerror}.") from error
    if len(content) > MOST_BYTES:
        raise CommandError.usage(f"{found.name} has more than {MOST_BYTES} bytes.", "Divide it into several files.")
    try:
        events = yaml.parse(content.decode(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        _Reader(found, yaml, events).document()
    except UnicodeDecodeError as error:
        raise CommandError.usage(f"{found.name} is not text in UTF-8.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        found.lines[()] = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
        raise found.wrong((), f"this is not YAML: {problem}.") from error
    return found


class _Reader:
    """Builds the values from the events of the parser, so that parsing ends as soon as a document is nested too
    deeply."""

    def __init__(self, found: YamlFile, yaml: Any, events: Any) -> None:
        self._found = found
        self._yaml = yaml
        self._events = events

    def document(self) -> None:
        for event in self._events:
            if isinstance(event, self._yaml.DocumentStartEvent):
                if self._found.lines:
                    self._found.lines[()] = event.start_mark.line + 1
                    raise self._found.wrong((), "a second document begins; one file holds one.")
                self._found.value = self._value(next(self._events), ())

    def _value(self, event: Any, path: FieldPath) -> Any:
        self._found.lines[path] = event.start_mark.line + 1
        if isinstance(event, self._yaml.AliasEvent) or event.anchor is not None:
            raise self._found.wrong(path, "anchors and aliases are not supported.")
        if event.tag is not None:
            raise self._found.wrong(path, "tags are not supported.")
        if len(path) > _DEEPEST:
            raise self._found.wrong(path, "this is nested too deeply.")
        if isinstance(event, self._yaml.ScalarEvent):
            return _plain(event.value) if event.implicit[0] else event.value
        if isinstance(event, self._yaml.SequenceStartEvent):
            return self._list(path)
        return self._object(path)

    def _list(self, path: FieldPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _object(self, path: FieldPath) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            if not isinstance(event, self._yaml.ScalarEvent):
                self._found.lines[path] = event.start_mark.line + 1
                raise self._found.wrong(path, "a name must be a text.")
            name = event.value
            if name in members:
                self._found.lines[(*path, name)] = event.start_mark.line + 1
                raise self._found.wrong((*path, name), "this name occurs twice.")
            members[name] = self._value(next(self._events), (*path, name))
            self._found.lines[(*path, name)] = event.start_mark.line + 1
        return members


def _plain(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
