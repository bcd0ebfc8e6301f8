"""The rules by which a compaction's plan gets all logs before table version 8, each with a switch; and scenarios."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogProtocol:
    """The rules; the defaults are the protocol that holds (`jobs.protocol.unplanned_logs`)."""

    waits: bool = (
        True  # Nobody executes the plan while a writer is in flight that began before the plan's file existed.
    )
    adds: bool = True  # The plan gets the logs of its file slice that have committed since.
    checks: bool = True  # Right before the commit, under the lock, a log that the plan does not name refuses the job.


GOOD = LogProtocol()


@dataclass(frozen=True)
class LogScenario:
    """The writers beside a compaction."""

    name: str
    writers: int = 2
    begins_locked: bool = False  # Whether writers begin with the table's lock held: Hudi 1's do, those of 0.15 do not.
    stalls: int = 0  # How often a live writer may be taken for dead.
    attempts: int = 2
