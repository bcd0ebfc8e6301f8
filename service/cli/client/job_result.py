"""The result or the plan of a job in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from service.cli.client.connection import Json
from service.cli.client.output import Output, compact
from service.model.formatting import size

# Each of these members gets a separate line.
_NOTES = ("notes", "warnings")
_PROBLEMS = ("refusals", "findings")
_SAID_ELSEWHERE = (*_NOTES, "nothing_to_do")
_SIZE = re.compile(r"(^|_)bytes(_|$)")
_SECONDS = re.compile(r"_?seconds$")


def show(out: Output, result: Json) -> None:
    """Prints the members with their values, then the notes. `show_problem` prints refusals and findings."""
    notes = [note for name in _NOTES for note in result.get(name) or ()]
    values = [(name, value) for name, value in result.items() if name not in _SAID_ELSEWHERE]
    out.pairs([(_label(name), _words(name, value)) for name, value in values if not (value and name in _PROBLEMS)])
    for note in notes:
        out.say(str(note), style="yellow")


def show_problem(out: Output, problem: Json) -> None:
    """Prints what is wrong, then its effect, what to do, and the job that repairs it."""
    title, detail = problem["title"], problem.get("detail")
    out.say(f"{title}: {detail}" if detail else title, style="red")
    for text in (problem.get("effect"), problem.get("hint"), _cure(problem.get("cure"))):
        if text:
            out.say(f"  {text}")


def _cure(job: Json | None) -> str:
    params = "".join(f" -p {name}={compact(value)}" for name, value in (job or {}).get("params", {}).items())
    return f"`groundskeeper jobs run {job['kind']} TABLE{params}` repairs it." if job else ""


def _label(name: str) -> str:
    return "run time" if name == "seconds" else _SECONDS.sub("", name).replace("_", " ")


def _words(name: str, value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return _measured(name, value)
        case []:
            return "none"
        case [int(before), int(after)] if name == "buckets":
            return f"{before} -> {after}"
        case [{}, *_]:
            return " | ".join(_words(name, each) for each in value)
        case list():
            return ", ".join(_words(name, each) for each in value)
        case {"type": _, "title": title, "detail": detail}:
            return f"{title}: {detail}" if detail else str(title)
        case {"before": before, "after": after}:
            return f"{_words(name, before) or '?'} -> {_words(name, after) or 'not known yet'}"
        case dict():
            return "; ".join(_members(value))
    return str(value)


def _measured(name: str, value: float) -> str:
    if _SIZE.search(name):
        return size(value)
    return f"{value} s" if _SECONDS.search(name) else str(value)


def _members(value: Json) -> Iterator[str]:
    for name, each in value.items():
        if words := _words(name, each):
            yield f"{_label(name)} {words}"
