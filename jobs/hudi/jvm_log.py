"""Turns the log of the worker's JVM, and its other output to standard error, into records of Python's `logging`. So
they have the format of the worker's log, secrets are masked, and they reach the logs of the jobs."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from jobs.hudi.java_view import names
from jobs.logs import log_context

if TYPE_CHECKING:
    from pyspark import SparkContext

LOG4J = Path(__file__).with_name("log4j2.properties")

# Key in log4j's context: the attempt, `<job>/<number>`, that a thread works for; a Spark task has the prefix `mdc.`.
ATTEMPT = "attempt_of"
_LONGEST_LINE = 1024 * 1024
# Number and length of the last lines that are kept to explain why a JVM has ended.
_LAST, _LONGEST_LAST = 300, 4000
# The line marks the end of the output of the JVM.
_END = "groundskeeper: the JVM has ended"
_LEVELS = {"FATAL": logging.CRITICAL, "ERROR": logging.ERROR, "WARN": logging.WARNING, "DEBUG": logging.DEBUG}
_IVY_BEGINS, _IVY_ENDS, _IVY_FETCHES = ":: loading settings", " artifacts copied, ", "downloading "
_raw = logging.getLogger("jvm")


def java_option() -> str:
    """Returns the option that makes a JVM write lines that `JvmLog` can parse."""
    return f"-Dlog4j2.configurationFile={LOG4J.as_uri()}"


def mark(context: SparkContext, attempt: str | None) -> None:
    """Makes lines that the JVM logs for this thread, and for its Spark tasks on this machine, carry the attempt."""
    context.setLocalProperty(f"mdc.{ATTEMPT}", attempt)  # type: ignore[arg-type]  # None unsets it; the stub lacks that
    if context._jvm is None:
        return
    # `names` caches the look-up, for which the JVM searches all jars.
    of_thread = names(context._jvm).org.apache.logging.log4j.ThreadContext
    if attempt is None:
        of_thread.remove(ATTEMPT)
    else:
        of_thread.put(ATTEMPT, attempt)


class JvmLog:
    """Reads the standard error of one JVM, until all processes that inherited it have ended. `sole` returns the running
    job and its attempt if there is only one; lines of unmarked threads are attributed to it."""

    def __init__(self, sole: Callable[[], tuple[str, int] | None]) -> None:
        self._sole = sole
        self._last: deque[str] = deque(maxlen=_LAST)
        self._is_read = threading.Event()
        self._is_of_ivy = False
        read, self._write = os.pipe()
        self._reader = threading.Thread(target=self._keep, args=(os.fdopen(read, "rb"),), name="JVM log", daemon=True)
        self._reader.start()

    @property
    def stderr(self) -> int:
        """The file descriptor for the JVM's standard error, and for its standard output too."""
        return self._write

    def last_lines(self, seconds: float) -> str:
        """Returns the last lines of a JVM that has ended; waits for them, at most for this time."""
        os.write(self._write, f"{_END}\n".encode())
        self._is_read.wait(seconds)
        self._is_read.clear()
        return "\n".join(self._last)

    def started(self) -> None:
        """Closes our own end, so that the log ends with the JVM."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def drain(self, seconds: float) -> None:
        """Waits for the last lines of a JVM that has ended."""
        self.started()
        self._reader.join(seconds)

    def _keep(self, stream: BinaryIO) -> None:
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                text = line.decode(errors="replace").rstrip()
                if text == _END:
                    self._is_read.set()
                    continue
                self._last.append(text[:_LONGEST_LAST])
                # No output may end this thread, because the JVM would then block for ever.
                try:
                    self._log(text)
                except Exception:
                    _raw.exception("a line of the JVM could not be logged")

    def _log(self, text: str) -> None:
        if not text:
            return
        event = _event(text)
        job_id, _, attempt = str(event.get(ATTEMPT) or "").rpartition("/")
        about = (job_id, int(attempt)) if attempt.isdecimal() else self._sole()
        with log_context(job_id=about[0] if about else None, attempt=about[1] if about else None):
            if "level" not in event:
                _raw.log(self._level_of(text), "%s", text)
                return
            level = _LEVELS.get(str(event["level"]), logging.INFO)
            stack = str(event.get("exception") or "").strip()
            message = str(event.get("message", ""))
            logging.getLogger(str(event.get("logger") or "jvm")).log(
                level, "%s", f"{message}\n{stack}" if stack else message
            )

    def _level_of(self, text: str) -> int:
        """Returns the level of a line that names none. Ivy's report is DEBUG, except for the lines that explain a long
        start. Missing packages are reported by the error of the start."""
        is_of_ivy = self._is_of_ivy or text.startswith(_IVY_BEGINS)
        self._is_of_ivy = is_of_ivy and _IVY_ENDS not in text
        return logging.DEBUG if is_of_ivy and _IVY_FETCHES not in text else logging.INFO


def _event(text: str) -> dict[str, Any]:
    """Returns the members of a log4j event; empty for any other line."""
    if not text.startswith("{"):
        return {}
    try:
        event = json.loads(text)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}
