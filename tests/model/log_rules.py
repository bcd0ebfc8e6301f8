"""Rules that give a compaction's plan all logs before table version 8, and scenarios. Each rule can be switched off."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LogProtocol:
    """The rules; the defaults are the correct protocol (`jobs.protocol.unplanned_logs`)."""

    waits: bool = (
        True  # The plan is not executed while a writer is in flight that began before the plan's file existed.
    )
    adds: bool = True  # The plan gets the logs of its file slice that have committed since.
    checks: bool = True  # The job is refused if, right before the commit and under the lock, the plan lacks a log.


GOOD = LogProtocol()


@dataclass(frozen=True)
class LogScenario:
    """The writers beside a compaction."""

    name: str
    writers: int = 2
    begins_locked: bool = False  # Whether writers begin with the table's lock held, as in Hudi 1, but not in 0.15.
    stalls: int = 0  # Number of times that a live writer may be taken for dead.
    attempts: int = 2
