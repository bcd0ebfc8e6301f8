"""Writes the part of each kind's guide that follows from its declaration: `python -m tests.kind_pages`."""

from __future__ import annotations

import json
import re
from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from jobs.kinds.parameters import ByService, Spec
from jobs.kinds.registry import KINDS
from tests.support.guides import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jobs.kinds.kind import Kind
    from jobs.kinds.parameters import Parameters

FOLDER = ROOT / ".docs" / "kinds"
_DECLARED = re.compile(r"<!-- from the declaration -->\n.*?<!-- end -->\n", re.DOTALL)


def page_of(kind: Kind) -> Path:
    return FOLDER / f"{kind.kind.value.replace('_', '-')}.md"


def declared(kind: Kind) -> str:
    """Returns the text between the marks, including the marks."""
    request = json.dumps({"kind": kind.kind.value, **kind.example})
    lines = [kind.summary, "", "```json", request, "```", "", *_table(kind.params)]
    if kind.delegated_plans is not None:
        lines += ["", "Or, with plans that Hudi's writers have left:", "", *_table(kind.delegated_plans)]
    return "\n".join(["<!-- from the declaration -->", *lines, "<!-- end -->", ""])


def with_declaration(page: str, kind: Kind) -> str:
    """Returns the page with the current declaration. Raises ValueError if the page has no marks."""
    if len(_DECLARED.findall(page)) != 1:
        raise ValueError(f"the guide of {kind.kind.value} needs one place for the declaration")
    return _DECLARED.sub(lambda _: declared(kind), page)


def _table(params: type[Parameters]) -> Iterator[str]:
    hints = get_type_hints(params, include_extras=True)
    of_requests = [each for each in msgspec.structs.fields(params) if ByService not in _metadata(hints[each.name])]
    # The kind's own parameters come before those that several kinds have.
    order = [name for base in params.__mro__ for name in vars(base).get("__annotations__", {})]
    fields = sorted(of_requests, key=lambda each: order.index(each.name))
    if not fields:
        yield "This kind has no parameters."
        return
    yield "| parameter | default | meaning |"
    yield "|---|---|---|"
    for field in fields:
        hint = hints[field.name]
        specs = [each for each in _metadata(hint) if isinstance(each, Spec)]
        meaning = next((each.description for each in specs if each.description), "")
        choices = _choices(hint)
        if all(f"`{each}`" in meaning for each in choices):
            choices = []
        words = [meaning, ", ".join(f"`{each}`" for each in choices), _bounds(specs)]
        yield f"| `{field.name}` | {_default(field)} | {'; '.join(word for word in words if word)} |"


def _metadata(hint: Any) -> list[Any]:
    """Returns the metadata of a type, the outermost first, also those inside `X | None`."""
    if get_origin(hint) is Annotated:
        inner, *own = get_args(hint)
        return [*reversed(own), *_metadata(inner)]
    if get_origin(hint) in (Union, UnionType):
        return [each for part in get_args(hint) for each in _metadata(part)]
    return []


def _choices(hint: Any) -> list[str]:
    """Returns the allowed words of a parameter."""
    if get_origin(hint) is Annotated:
        return _choices(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return next((words for part in get_args(hint) if part is not NoneType and (words := _choices(part))), [])
    if get_origin(hint) is Literal:
        return [str(each) for each in get_args(hint)]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [str(each.value) for each in hint]
    return []


def _bounds(specs: list[Spec]) -> str:
    least = next((each.ge for each in specs if each.ge is not None), None)
    most = next((each.le for each in specs if each.le is not None), None)
    if least is None or most is None:
        return "" if least is None else f"at least {least}"
    return f"{least} to {most}"


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
    if value is msgspec.NODEFAULT:
        return "required"
    if value is None or value is msgspec.UNSET or value in ("", ()):
        return ""
    return f"`{json.dumps(msgspec.to_builtins(value))}`".replace('"', "")


def main() -> None:
    for kind in KINDS.values():
        page = page_of(kind)
        page.write_text(with_declaration(page.read_text(), kind))


if __name__ == "__main__":
    main()
