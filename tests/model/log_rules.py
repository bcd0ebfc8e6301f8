"""A compaction before table version 8: by which rules its plan gets all logs, each with a switch, and who writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogProtocol:
    """The defaults are the protocol that holds (`jobs.protocol.unplanned_logs`).

    `waits`: nobody executes the plan while a writer is in flight that began before the plan's file was there. `adds`:
    the plan gets the logs of its file slice that have committed since. `checks`: with the lock held, right before the
    commit, it is refused if there is one that the plan does not name.
    """

    waits: bool = True
    adds: bool = True
    checks: bool = True


GOOD = LogProtocol()


@dataclass(frozen=True)
class LogScenario:
    """`begins_locked`: writers begin with the table's lock held, as those of Hudi 1 do and those of 0.15 do not.
    `stalls`: how often a live writer may be taken for dead."""

    name: str
    writers: int = 2
    begins_locked: bool = False
    stalls: int = 0
    attempts: int = 2
