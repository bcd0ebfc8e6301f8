"""The past of a table that a simulation replays: the commits of its writers, and its files at the beginning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from jobs.contract import JobKind
from service.lake.table import TableType
from service.outcome.table_objective import TableObjective
from service.policies.policy import Policy
from service.policies.precedence import Subject
from service.simulation.growth import Growth


@dataclass(frozen=True, slots=True)
class Write:
    """A commit of a writer. `at` is in seconds since the epoch."""

    at: float
    bytes: int
    file_groups: int


@dataclass(frozen=True, slots=True)
class Ran:
    """The last run of a table service before the simulation begins: its time, and how many commits and bytes writers
    have written since then."""

    at: float | None = None
    commits: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Freed:
    """Files that were out of use at the beginning: how many commits before the beginning they went out of use, and
    when."""

    commits_ago: int
    at: float


@dataclass(frozen=True)
class Beginning:
    """The files of a table at the beginning of a simulation. Each entry of `freed` stands for an equal part of the
    files out of use, the earliest first."""

    base_files: int = 0
    base_bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0
    small_files: int = 0
    freed_files: int = 0
    freed_bytes: int = 0
    timeline_commits: int = 0
    largest_bucket_bytes: int = 0
    freed: Sequence[Freed] = (Freed(0, 0.0),)


@dataclass(frozen=True)
class TablePast:
    """What a simulation knows about a table. Times are in seconds since the epoch. `ended` has the end of the last job
    of each kind whose jobs leave no instant on the timeline, such as audits."""

    id: str
    subject: Subject
    table_type: TableType
    policy: Policy
    writes: Sequence[Write]
    beginning: Beginning = field(default_factory=Beginning)
    growth: Growth = field(default_factory=Growth)
    has_sessions: bool = False  # Whether sessions of Spark SQL write it.
    # A consumer needs the files that this many of the last instants replaced. The number stays the same in the
    # simulation.
    behind: int = 0
    num_buckets: int = 0
    small_file_bytes: int = 0
    first_commit_at: float | None = None
    ran: Mapping[JobKind, Ran] = field(default_factory=dict)
    ended: Mapping[JobKind, float] = field(default_factory=dict)
    # The ends of the jobs of the last day before the simulation, the earliest first, and the GB-hours of each.
    spent: Sequence[tuple[datetime, float]] = ()
    # The frequency and cost of the table's reads. The settings come from the policy.
    objective: TableObjective = field(default_factory=TableObjective)
