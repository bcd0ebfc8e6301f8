"""The log lines of attempts, from the moment they are logged until the service has them."""

from __future__ import annotations

import logging
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256

from jobs.contract import MOST_LINE_CHARACTERS, MOST_LOG_CHARACTERS, MOST_LOG_LINES, LogLevel, LogLine
from jobs.logs import at, current_ids, log_context, stack_of

# Bytes of lines that wait while the service does not answer. The oldest lines are dropped first.
_MOST_WAITING = 1024 * 1024
_MOST_STACKS = 1000
# The frames of a Java stack trace.
_STACK = re.compile(r"(?:^[ \t]+at [^\n]*\n?){3,}", re.MULTILINE)
_CUT = "\n[... cut ...]\n"


class AttemptLog:
    """The lines of one attempt. Secrets have been removed. Thread-safe, but only one thread at a time may send."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._lines: deque[LogLine] = deque()
        self._characters = 0
        self._next = 0
        self._dropped = 0
        self._stacks: set[bytes] = set()

    def add(self, at: datetime, level: LogLevel, logger: str, message: str) -> None:
        with self._guard:
            text = _cut(_STACK.sub(self._without_repetition, message))
            self._append(LogLine(self._next, at, level, logger[-128:], text))
            while self._characters > _MOST_WAITING:
                self._characters -= len(self._lines.popleft().message)
                self._dropped += 1

    def chunk(self) -> tuple[LogLine, ...]:
        """Returns the lines to send next, in one message."""
        with self._guard:
            if self._dropped and self._lines:
                first = self._lines[0]
                text = f"{self._dropped} lines before this one were dropped: the service did not take them in time"
                # The note takes the number of the last dropped line, which no line that was sent before has.
                self._lines.appendleft(LogLine(first.number - 1, first.at, LogLevel.WARNING, __name__, text))
                self._characters += len(text)
                self._dropped = 0
            chosen: list[LogLine] = []
            characters = 0
            for line in self._lines:
                characters += len(line.message)
                if len(chosen) == MOST_LOG_LINES or characters > MOST_LOG_CHARACTERS:
                    break
                chosen.append(line)
            return tuple(chosen)

    def sent(self, lines: Sequence[LogLine]) -> None:
        """Forgets lines that the service has."""
        last = lines[-1].number if lines else -1
        with self._guard:
            while self._lines and self._lines[0].number <= last:
                self._characters -= len(self._lines.popleft().message)

    def has_more_than(self, lines: Sequence[LogLine]) -> bool:
        with self._guard:
            return len(self._lines) > len(lines)

    def _append(self, line: LogLine) -> None:
        self._lines.append(line)
        self._characters += len(line.message)
        self._next = line.number + 1

    def _without_repetition(self, found: re.Match[str]) -> str:
        digest = sha256(found[0].rstrip().encode(errors="replace")).digest()
        if digest in self._stacks:
            return "\t(a stack trace that this log has already)\n"
        if len(self._stacks) < _MOST_STACKS:
            self._stacks.add(digest)
        return found[0]


def _cut(message: str) -> str:
    """Returns the text in the form that the service accepts: long texts lose their middle, and characters that cannot
    be encoded are replaced."""
    text = message.replace("\0", "").encode(errors="replace").decode()
    if len(text) <= MOST_LINE_CHARACTERS:
        return text
    half = (MOST_LINE_CHARACTERS - len(_CUT)) // 2
    return f"{text[:half]}{_CUT}{text[-half:]}"


class AttemptLogs(logging.Handler):
    """Gives each record to the attempt that its thread works for. `clean` removes secrets."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        super().__init__(logging.INFO)
        self._clean = clean
        self._running: dict[tuple[str, int], AttemptLog] = {}

    @contextmanager
    def of(self, job_id: str, table_id: str | None, attempt: int) -> Iterator[AttemptLog]:
        """Collects the lines that this thread, and threads that inherit its context, log inside the block."""
        log = self._running[job_id, attempt] = AttemptLog()
        try:
            with log_context(job_id=job_id, table_id=table_id, attempt=attempt):
                yield log
        finally:
            del self._running[job_id, attempt]

    def sole(self) -> tuple[str, int] | None:
        """Returns job and attempt if only one is running."""
        running = list(self._running)
        return running[0] if len(running) == 1 else None

    def emit(self, record: logging.LogRecord) -> None:
        ids = current_ids()
        log = self._running.get((str(ids.get("job_id")), int(ids.get("attempt", 0))))
        if log is None:
            return
        try:
            stack = stack_of(record)
            message = self._clean(record.getMessage() + (f"\n{stack}" if stack else ""))
            level = LogLevel(record.levelname) if record.levelname in LogLevel.__members__ else LogLevel.INFO
            log.add(at(record), level, record.name, message)
        except Exception:
            self.handleError(record)
