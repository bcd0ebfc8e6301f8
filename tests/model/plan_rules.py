"""The rules for executing a pending plan beside other runners, each with a switch; and scenarios."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Proof(Enum):
    """Signs by which the service takes the runner of an inflight plan for dead."""

    HEARTBEAT_OR_LONG_SILENCE = "its heartbeat has expired, or where there is none, it has long written nothing"
    PAUSE = "it writes nothing at the moment"
    NONE = "every pending plan is taken"


class Check(Enum):
    """Checks that our job makes under the lock, right before its commit."""

    OWN = "the instant is inflight, and by this very attempt"
    STATE = "the instant is inflight"
    NONE = "nothing"


@dataclass(frozen=True)
class PlanProtocol:
    """The rules; the defaults are the protocol that holds."""

    owns_after_begin: bool = True  # The service records an instant as its own only after it has begun it.
    knows_its_begin: bool = True  # The record names the attempt, so that a new begin by another process is noticed.
    taken_is_sticky: bool = True  # A job that was refused because another process runs the plan is not tried again.
    proof: Proof = Proof.HEARTBEAT_OR_LONG_SILENCE
    check: Check = Check.OWN
    # An attempt that does not commit removes what it has written, since another may have completed the instant.
    removes_its_files: bool = True
    # The service begins no plan where a writer executes plans as well, and takes such plans without asking.
    leaves_plans_to_writers: bool = True
    takeover_is_atomic: bool = True  # Nobody begins the plan between the proof of the runner's death and the rollback.


GOOD = PlanProtocol()


class PlanFaults(NamedTuple):
    """Numbers of faults that may still happen: our worker dies, or is frozen and taken for dead; a runner dies, or is
    stalled until it looks dead."""

    crashes: int = 0
    freezes: int = 0
    deaths: int = 0
    stalls: int = 0


@dataclass(frozen=True)
class PlanScenario:
    """The plan, and those who may execute it."""

    name: str
    has_heartbeat: bool  # A compaction has one, a clustering none.
    runners: int = 1  # Processes of Hudi that may execute the plan: writers with async services, or restarted ones.
    attempts: int = 2
    faults: PlanFaults = field(default_factory=PlanFaults)
    hijacks: bool = False  # A runner of Hudi takes every clustering that is inflight, whose runner it cannot check.
