"""Determines why Spark did not start, from the output of its JVM or from its error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jobs.contract import Problem
from jobs.problems.worker_starts import (
    JAVA_UNSUITED,
    MEMORY_SHORT,
    PACKAGE_MISSING,
    PORT_TAKEN,
    SPARK_NOT_STARTED,
    WORKER_DISK_FULL,
)
from jobs.storage.refusal import Refusal, refusal_in

_UNFETCHED = re.compile(r"(?:unresolved dependency|download failed): ([^\s#\]]+)#([^;\s\]]+);([^:!\s\]]+)")
_TRIED = re.compile(r"^\s*==== (\S+): tried\s*$")
_PLACE = re.compile(r"^\s*(?:-- artifact .*|(\S+:/\S+|/\S+))\s*$")
_OF_MEMORY = re.compile(
    r"Could not reserve enough space|Invalid (?:maximum|initial) heap size|insufficient memory for the Java Runtime"
    r"|Cannot allocate memory|System memory \d+ must be at least|exceeds the maximum representable size"
    r"|java\.lang\.OutOfMemoryError|Too small (?:maximum|initial) heap"
)
_OF_PORT = re.compile(r"BindException|Address already in use")
_OF_JAVA = re.compile(
    r"UnsupportedClassVersionError|JAVA_HOME is not set|/bin/java: (?:No such file|Permission|not found)"
)
_OF_DISK = re.compile(r"Failed to create (?:any )?local dir|No usable temporary directory")
_LONGEST = 500


def explained(text: str, fallback: str) -> Problem:
    """Returns the problem for the output of the JVM and the error; `fallback` is the detail if `text` has none."""
    if missing := list(dict.fromkeys(_UNFETCHED.findall(text))):
        names = ", ".join(":".join(each) for each in missing[:3])
        tried = ", ".join(dict.fromkeys(_tried(text)))
        return PACKAGE_MISSING.because(f"{names}; looked for at {tried}" if tried else names)
    if refusal_in(text) is Refusal.FULL or _OF_DISK.search(text):
        return WORKER_DISK_FULL.because(
            _line_of(text, "No space left|[Qq]uota|local dir|temporary directory", fallback)
        )
    for words, kind in ((_OF_JAVA, JAVA_UNSUITED), (_OF_MEMORY, MEMORY_SHORT), (_OF_PORT, PORT_TAKEN)):
        if words.search(text):
            return kind.because(_line_of(text, words.pattern, fallback))
    return SPARK_NOT_STARTED.because(fallback)


def is_of_packages(text: str) -> bool:
    """Returns whether packages are missing, so that another attempt with a cleared cache of Ivy may find them."""
    return bool(_UNFETCHED.search(text))


def _tried(text: str) -> Iterator[str]:
    """Yields the repositories that Ivy has tried, from the addresses in its output."""
    lines = iter(text.splitlines())
    for line in lines:
        if match := _TRIED.match(line):
            place = next((found[1] for each in lines if (found := _PLACE.match(each)) and found[1]), None)
            yield f"{match[1]} ({place})" if place else match[1]


def _line_of(text: str, words: str, fallback: str) -> str:
    found = next((line.strip() for line in text.splitlines() if re.search(words, line)), "")
    return (found or fallback)[:_LONGEST]
