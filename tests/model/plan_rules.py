"""One pending plan and those who may execute it: the rules, each with a switch, and who there is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class Proof(Enum):
    """By what the service takes the runner of an inflight plan for dead."""

    HEARTBEAT_OR_LONG_SILENCE = "its heartbeat has expired, or where there is none, it has long written nothing"
    PAUSE = "it writes nothing at the moment"
    NONE = "every pending plan is taken"


class Check(Enum):
    """What our job looks at under the lock, right before its commit."""

    OWN = "the instant is inflight, and by this very attempt"
    STATE = "the instant is inflight"
    NONE = "nothing"


@dataclass(frozen=True)
class PlanProtocol:
    """The defaults are the protocol that holds.

    `owns_after_begin`: the service records an instant as its own only after it has begun it. `knows_its_begin`: it
    records which attempt has begun it, so that it notices when another process has begun it anew. `taken_is_sticky`: a
    job that was refused, since another runs the plan, is not tried again. `removes_its_files`: an attempt that does not
    commit removes what it has written, since the instant may have completed by another. `leaves_plans_to_writers`: it
    begins none where a writer executes plans as well, and takes those of others without asking.

    `takeover_is_atomic` assumes that nobody begins the plan between the proof that its runner is dead and the rollback.
    """

    owns_after_begin: bool = True
    knows_its_begin: bool = True
    taken_is_sticky: bool = True
    proof: Proof = Proof.HEARTBEAT_OR_LONG_SILENCE
    check: Check = Check.OWN
    removes_its_files: bool = True
    leaves_plans_to_writers: bool = True
    takeover_is_atomic: bool = True


GOOD = PlanProtocol()


class PlanFaults(NamedTuple):
    """How often each may still happen: our worker dies or is frozen and taken for dead, a runner dies or is stalled
    until it looks dead."""

    crashes: int = 0
    freezes: int = 0
    deaths: int = 0
    stalls: int = 0


@dataclass(frozen=True)
class PlanScenario:
    """`runners`: processes of Hudi that may execute the plan, such as a writer with async services, or started anew.

    `has_heartbeat`: a compaction has one, a clustering none. `hijacks`: a runner of Hudi takes every plan that it finds
    inflight: of a clustering it cannot know whether its runner is alive.
    """

    name: str
    has_heartbeat: bool
    runners: int = 1
    attempts: int = 2
    faults: PlanFaults = field(default_factory=PlanFaults)
    hijacks: bool = False
