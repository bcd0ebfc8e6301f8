"""Scenarios, and the rules for executing a pending plan while other runners may be active. A mutant of the protocol
lacks one of the rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Proof(Enum):
    """The evidence on which the service takes the runner of an inflight plan for dead."""

    HEARTBEAT_OR_LONG_SILENCE = (
        "its heartbeat has expired; a runner without heartbeats has written nothing for a long time"
    )
    PAUSE = "it writes nothing at the moment"
    NONE = "every pending plan is taken"


class Check(Enum):
    """Checks that our job makes under the lock, right before its commit."""

    OWN = "the instant is inflight, and this attempt has begun it"
    STATE = "the instant is inflight"
    NONE = "nothing"


@dataclass(frozen=True)
class PlanProtocol:
    """The rules; the defaults are the correct protocol."""

    owns_after_begin: bool = True  # The service records an instant as its own only after it has begun the instant.
    knows_its_begin: bool = True  # The record names the attempt, so that a new begin by another process is noticed.
    taken_is_sticky: bool = True  # A job that was refused because another process runs the plan is not retried.
    proof: Proof = Proof.HEARTBEAT_OR_LONG_SILENCE
    check: Check = Check.OWN
    # An attempt that does not commit removes what it has written, since another may have completed the instant.
    removes_its_files: bool = True
    # The service begins no plan if a writer executes plans too, because writers take plans without any check.
    leaves_plans_to_writers: bool = True
    # No runner begins the plan between the proof of the other runner's death and the rollback.
    takeover_is_atomic: bool = True


GOOD = PlanProtocol()


class PlanFaults(NamedTuple):
    """Numbers of faults that may still happen: our worker dies, or freezes and is taken for dead; a runner dies, or
    stalls until it looks dead."""

    crashes: int = 0
    freezes: int = 0
    deaths: int = 0
    stalls: int = 0


@dataclass(frozen=True)
class PlanScenario:
    """The plan, and the processes that may execute it."""

    name: str
    has_heartbeat: bool  # A compaction has a heartbeat, a clustering does not.
    runners: int = 1  # Processes of Hudi that may execute the plan: writers with async services, or restarted ones.
    attempts: int = 2
    faults: PlanFaults = field(default_factory=PlanFaults)
    # A runner of Hudi takes every inflight clustering, because Hudi cannot check whether a clustering has a runner.
    hijacks: bool = False
