"""Joins the modules that a page imports at once into one file: the browser asks for one in place of twenty.

It knows only what the dashboard's modules use: named imports and exports, of functions, classes and constants, each at
the beginning of a line. Each module becomes a function that returns its exports, so that their names stay their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter

_IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([a-z_]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|class|const) (\w+))", re.MULTILINE)
_UNKNOWN = re.compile(r"^(?:import\s|export\s|await\s).*$", re.MULTILINE)


def joined(modules: Mapping[str, str], entry: str) -> dict[str, str]:
    """Returns the modules with an `entry` that contains all that it imports; the others import that from there, and so
    get the same state. Raises ValueError for what it cannot join, such as modules that import each other."""
    order = list(TopologicalSorter(_imported(modules, entry)).static_order())
    inner = {name: _scope(name) for name in order if name != entry}
    parts = [f"const {_scope(name)} = {_function(modules[name])};\n" for name in order]
    result = {
        name: text if name in inner else _IMPORT.sub(lambda found: _from_entry(found, inner, entry), text)
        for name, text in modules.items()
    }
    return result | {entry: f"{''.join(parts)}export {{ {', '.join(inner.values())} }};\n"}


def _imported(modules: Mapping[str, str], entry: str) -> dict[str, list[str]]:
    """Returns what each module imports at once, of the entry and all that it reaches."""
    found: dict[str, list[str]] = {}
    wanted = [entry]
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = [other for _, other in _IMPORT.findall(modules[name])]
            wanted += found[name]
    return found


def _function(text: str) -> str:
    exported = [name for _, name in _EXPORT.findall(text)]
    body = _EXPORT.sub(r"\1", _IMPORT.sub(lambda found: _taken(found[1], _scope(found[2])), text))
    if unknown := _UNKNOWN.search(body):
        raise ValueError(f"cannot be joined: {unknown[0]}")
    return f"(() => {{\n{body}return {{ {', '.join(exported)} }};\n}})()"


def _from_entry(found: re.Match[str], inner: Mapping[str, str], entry: str) -> str:
    names, module = found.groups()
    scope = inner.get(module)
    return f'import {{ {scope} }} from "./{entry}"; {_taken(names, scope)}' if scope else found[0]


def _taken(names: str, scope: str) -> str:
    return f"const {{ {names} }} = {scope};"


def _scope(module: str) -> str:
    """Returns a name that no module has for anything else."""
    return f"${module.removesuffix('.js')}"
