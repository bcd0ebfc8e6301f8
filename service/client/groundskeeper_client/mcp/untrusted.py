"""Makes answers of the service harmless and short for a language model.

Names of tables, messages of errors and values of options come from whoever can create a table or a lock. A model reads
these texts beside the words of its user, so the texts must be recognizable as data and must not hide anything.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import msgspec

MOST_CHARACTERS = 2_000
"""Greatest length of one text in characters. A longer text is cut, and its end says how much is missing."""
MOST_ITEMS = 200
"""Greatest length of one list. A longer list is cut, and its last item says how much is missing."""
MOST_BYTES = 100_000
"""Greatest size of one answer in bytes of JSON."""
_DEEPEST = 30
# Categories of characters that a person does not see, or that change the direction or the lines of a text: controls,
# formats (zero width, direction, tags), surrogates, private use and separators of lines.
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_LINES = "\n\t"
# Letters and marks that a screen shows as nothing: the `Default_Ignorable_Code_Point` of Unicode 16 that are in none of
# the categories above, and the blank Braille pattern. Characters of the two ranges of variation selectors could hide
# any text behind one visible character.
_INVISIBLE = frozenset(
    chr(code)
    for first, last in (
        (0x034F, 0x034F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x2800, 0x2800),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xFFA0, 0xFFA0),
        (0xE0100, 0xE01EF),
    )
    for code in range(first, last + 1)
)


class TooLargeError(Exception):
    """An answer has more than `MOST_BYTES`."""


def as_data(answer: Any) -> dict[str, Any]:
    """Returns an answer of the service as the member `untrusted_data` of an object, in plain JSON types.

    Hidden characters become visible escapes such as `\\u200b`, and long texts and lists are cut. Raises TooLargeError.
    """
    data = {"untrusted_data": _plain(msgspec.to_builtins(answer), 0)}
    size = len(json.dumps(data, ensure_ascii=False).encode())
    if size > MOST_BYTES:
        raise TooLargeError(
            f"The answer has {size} bytes, more than the limit of {MOST_BYTES}. Ask for fewer items, or for one table."
        )
    return data


def text(value: str) -> str:
    """Returns a text with hidden characters as visible escapes, of at most `MOST_CHARACTERS`."""
    kept = value[:MOST_CHARACTERS]
    shown = "".join(_escaped(each) if _is_hidden(each) else each for each in kept)
    more = len(value) - len(kept)
    return f"{shown} [{more} characters more]" if more else shown


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return text(value)
    if depth > _DEEPEST:
        return "[deeper than an answer is shown]"
    if isinstance(value, dict):
        shown = {text(str(name)): _plain(each, depth + 1) for name, each in list(value.items())[:MOST_ITEMS]}
        more = len(value) - MOST_ITEMS
        return {**shown, "[more]": f"{more} members more"} if more > 0 else shown
    if isinstance(value, list | tuple):
        items = [_plain(each, depth + 1) for each in value[:MOST_ITEMS]]
        more = len(value) - MOST_ITEMS
        return [*items, f"[{more} items more]"] if more > 0 else items
    return value


def _is_hidden(character: str) -> bool:
    return character not in _LINES and (character in _INVISIBLE or unicodedata.category(character) in _HIDDEN)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
