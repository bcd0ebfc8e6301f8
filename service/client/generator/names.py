"""Makes names for Python from the names in the API's document."""

from __future__ import annotations

import builtins
import keyword
import re
import textwrap
from typing import Any

WIDTH = 120


def snake(text: str) -> str:
    """Returns a name of a function or parameter, such as `register_table` for `registerTable`, and `idempotency_key`
    for `idempotency-key`."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)
    return identifier(re.sub(r"\W+", "_", words).strip("_").lower())


def identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text)
    name = f"_{name}" if name[:1].isdigit() or not name else name
    return f"{name}_" if keyword.iskeyword(name) else name


def constant(word: str) -> str:
    return identifier(re.sub(r"\W+", "_", word).upper() or "EMPTY")


def error_name(slug: str) -> str:
    """`job-not-found` becomes `JobNotFoundError`."""
    name = "".join(part.capitalize() for part in slug.split("-"))
    name = f"{name.removesuffix('Error')}Error"
    return f"Service{name}" if hasattr(builtins, name) else name


def refers_to(schema: Any) -> str | None:
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    return reference.rpartition("/")[2] if isinstance(reference, str) else None


def docstring(text: str) -> list[str]:
    """Returns the lines of the docstring of a class or method. Empty lines at its end are left out."""
    text = text.strip().replace("\\", "\\\\").replace('"""', "'''")
    text = f"{text} " if text.endswith('"') else text
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), WIDTH - 12, break_long_words=False), ""]
    lines = lines[:-1]
    lines[0] = f'"""{lines[0]}'
    closing = ['"""'] if len(lines) > 1 else []
    if not closing:
        lines[0] += '"""'
    return [f"    {line}".rstrip() for line in (*lines, *closing)]
