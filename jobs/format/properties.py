"""Java's `.properties` files, such as `.hoodie/hoodie.properties`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANKS = " \t\f"
_KEY_END = re.compile(r"(?<!\\)(?:\\\\)*([ \t\f=:])")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def parse_properties(content: bytes) -> dict[str, str]:
    """Parses them as `java.util.Properties.load(InputStream)` does (Java 17).

    Comments, continuation lines and escapes included. The bytes are ISO 8859-1; other characters come as `\\uXXXX`.
    """
    properties = {}
    for line in _logical_lines(content.decode("iso-8859-1")):
        match = _KEY_END.search(line)
        key, rest = (line[: match.start(1)], line[match.start(1) :]) if match else (line, "")
        rest = rest.lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        properties[_unescaped(key)] = _unescaped(rest)
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    continued = False
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANKS)
        if not continued and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        continued = backslashes % 2 == 1
        pending += line[:-1] if continued else line
        if not continued:
            yield pending
            pending = ""
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match.group(1)
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _LETTERS.get(escape, escape)

    units = _ESCAPE.sub(character, text)
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # pairs of \uXXXX become one
