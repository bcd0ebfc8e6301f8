"""Lines for a shell that call the command line of this product. A user can paste them unchanged."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Choice:
    """A value that only the user knows. The command shows the value as `<NAME>`, outside of quotes, so that a shell
    refuses the line until the value is filled in."""

    name: str


def line(*words: str | Choice | tuple[str | Choice, ...]) -> str:
    """Returns the line of these words. A word may consist of several parts. All parts except a `Choice` are quoted,
    because ids and names may contain any character."""
    return " ".join(["groundskeeper", *map(_shown, words)])


def assigned(name: str, value: object) -> str:
    """Returns `name=value` in the form that the commands accept: the value is JSON, or a text that is not JSON."""
    if isinstance(value, str) and not _is_json(value):
        return f"{name}={value}"
    return f"{name}={json.dumps(value, ensure_ascii=False)}"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _shown(word: str | Choice | tuple[str | Choice, ...]) -> str:
    if isinstance(word, str):
        return _quoted(word)
    return f"<{word.name}>" if isinstance(word, Choice) else "".join(map(_shown, word))


# The cache saves time, because the lines for thousands of tables have most words in common.
@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    if text.isprintable():
        return shlex.quote(text)
    # A terminal acts on control characters before the shell sees the quotes.
    return "$'" + "".join(_escaped(each) for each in text) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    return character if character.isprintable() else f"\\U{ord(character):08x}"
