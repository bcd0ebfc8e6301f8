"""Writers that run beside a service."""

from __future__ import annotations

import os
import threading
import time
from itertools import count
from typing import TYPE_CHECKING

from jobs.errors import CancelledError
from jobs.job_context import JobContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import DataFrame

_numbers = count(1)


class HeldWriter:
    """An upsert that has started (its instant is on the timeline), and continues at `finish` or `end`."""

    def __init__(self, frame: DataFrame, base: Path, options: dict[str, str]) -> None:
        self._gate = base.parent / f"gate-{next(_numbers)}"
        self._base = base
        self.error: Exception | None = None
        path = str(self._gate)

        def hold(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            import time
            from pathlib import Path

            while not Path(path).exists():
                time.sleep(0.05)
            yield from batches

        held = frame.coalesce(1).mapInPandas(hold, frame.schema)

        def write() -> None:
            try:
                held.write.format("hudi").options(**options).mode("append").save(str(base))
            except Exception as error:
                self.error = error

        self._thread = threading.Thread(target=write, daemon=True)

    def begin(self) -> HeldWriter:
        """Begins the write without waiting for its instant, which depends on the table's lock."""
        self._thread.start()
        return self

    def start(self) -> HeldWriter:
        before = self.pending()
        self.begin()
        deadline = time.monotonic() + 60
        while self.pending() == before:
            assert time.monotonic() < deadline, "the writer never started"
            assert self._thread.is_alive(), self.error
            time.sleep(0.05)
        return self

    def let_go(self) -> None:
        self._gate.touch()

    def let_go_after(self, seconds: float) -> None:
        threading.Timer(seconds, self.let_go).start()

    def finish(self) -> None:
        """Waits for the end of the write, and raises its error."""
        self.end()
        assert self.error is None, self.error

    def end(self) -> None:
        """Waits for the end of the write, and ignores its error."""
        self.let_go()
        self._thread.join(120)
        assert not self._thread.is_alive()

    def pending(self) -> set[str]:
        """Returns the pending instants of both timeline layouts, with the completion time or without."""
        metadata = self._base / ".hoodie"
        timeline = metadata / "timeline" if (metadata / "timeline").exists() else metadata
        names = {path.name for path in timeline.iterdir() if path.is_file() and path.name[:1].isdigit()}
        completed = {
            name.split(".")[0].split("_")[0] for name in names if name.count(".") == 1 and "inflight" not in name
        }
        return {name.split(".")[0] for name in names if "_" not in name} - completed


def hold_lock(base: Path) -> Path:
    """Takes the table's lock beside a writer of the same JVM, and returns the lock file.

    Hudi deletes the file twice when it gives the lock back (`LockManager.unlock`: `unlock`, then `close`), whoever
    has made the file in between. The lock is therefore taken after it has been free for half a second.
    """
    lock = base / ".hoodie" / "lock"
    deadline = time.monotonic() + 60
    free_since = time.monotonic()
    while time.monotonic() - free_since < 0.5:
        assert time.monotonic() < deadline, "the lock never became free"
        if lock.exists():
            free_since = time.monotonic()
        time.sleep(0.02)
    lock.touch(exist_ok=False)
    return lock


def let_heartbeats_expire(base: Path) -> None:
    """Makes all writers of the table look dead, as `let_heartbeat_expire` does."""
    for heartbeat in (base / ".hoodie" / ".heartbeat").glob("[0-9]*"):
        let_heartbeat_expire(base, heartbeat.name)


def let_heartbeat_expire(base: Path, instant: str) -> None:
    """Makes the writer of this instant look dead. The writer's client must have stopped sending heartbeats."""
    heartbeat = base / ".hoodie" / ".heartbeat" / instant
    heartbeat.touch()
    os.utime(heartbeat, (time.time() - 3600, time.time() - 3600))


class At(JobContext):
    """A context that calls a function once for each of these steps; an exception of the function ends the job."""

    def __init__(self, step: str, action: Callable[[], None], *more: tuple[str, Callable[[], None]]) -> None:
        super().__init__()
        self._actions = dict([(step, action), *more])

    def step(self, name: str, *, bytes_total: int = 0) -> None:
        super().step(name, bytes_total=bytes_total)
        for step in [step for step in self._actions if name.startswith(step)]:
            self._actions.pop(step)()


def prepared_while_committing(writer: HeldWriter) -> At:
    """Returns a context in which the writer prepares its write, and waits for the lock, while the job commits."""

    def prepare() -> None:
        writer.let_go()
        writer.begin()
        time.sleep(6)

    return At("committing", prepare)


class Cancelled(At):
    """A context whose job is cancelled this number of seconds after it has reached a step, or after its beginning."""

    def __init__(self, *, after: float, step: str = "", action: Callable[[], None] = lambda: None) -> None:
        super().__init__(step, action)
        self._after = after
        self._step = step
        if not step:
            self._cancel_later()

    def step(self, name: str, *, bytes_total: int = 0) -> None:
        super().step(name, bytes_total=bytes_total)
        if self._step and name.startswith(self._step):
            self._cancel_later()

    def _cancel_later(self) -> None:
        timer = threading.Timer(self._after, self.end, [CancelledError()])
        timer.daemon = True
        timer.start()
