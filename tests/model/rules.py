"""The rules of the protocol. Each can be switched off; a protocol without one of them is a *mutant*.

The *expander* is the job that replaces file groups. Its commit is the *switch*: from then on all processes have to use
the new file groups and the new number of buckets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tests.model.state import Faults, Row


class Policy(Enum):
    """Ways to treat a Spark write in flight (`on_active_writers`, `retry_conflicts`)."""

    WAIT = "wait"
    FENCE = "fence"
    LET_RETRY = "let the writer conflict and retry"


class Watch(Enum):
    FOREVER = "every commit after the switch is judged"
    BOUNDED = "the watch ends some time after the switch"
    NONE = "nobody looks"


class Judge(Enum):
    """Evidence by which a write after the switch is judged as stale."""

    FILE_IDS_AND_KEYS = "it touches a replaced file group, or only old buckets of a partition and keys of other buckets"
    FILE_IDS = "it touches a replaced file group, or its new file groups have no bucket of the new number"
    BUCKET_NUMBERS = "it touches no bucket of the new number"


class Known(Enum):
    """Instants that are not judged after the switch, because the split has included them."""

    COMPLETED_BEFORE = "those that had completed when the guard looked"
    TIMELINE_BEFORE = "those that were on the timeline when the guard looked"
    TIMELINE_AFTER = "those that were on the timeline after the commit"


class Undo(Enum):
    """Orders of the steps that undo an attempt without a commit."""

    REVERT_FIRST = "inflight back to requested, remove the config, roll back"
    CONFIG_FIRST = "remove the config, roll back"
    ROLLBACK_FIRST = "roll back, remove the config"


class Resubmit(Enum):
    """Ways in which a Flink job with locations in its state is restarted after the switch."""

    BOOTSTRAP = "without state, and loads the locations from the table"
    SAVEPOINT = "from its savepoint"
    EMPTY = "without state, and loads nothing"


class Kind(Enum):
    UPSERT = "Spark batch writer"
    PREPPED = "Spark SQL writer of prepped records"
    FLINK = "Flink job"


@dataclass(frozen=True)
class Protocol:
    """The rules; the defaults are the correct protocol."""

    # The expander:
    guard: bool = True  # The expander checks for writes in flight under the lock.
    # Under the lock the expander splits the file groups again to which writers have committed since the last split.
    looks_again: bool = True
    as_clustering: bool = False  # The expander's instant is a clustering plan instead of a plain replacecommit.
    baseline: bool = True  # The expander writes the baseline before the config.
    config_first: bool = False  # The expander writes a config that is valid before the commit.
    verifies_lock: bool = True  # The expander verifies the lock right before the commit.
    known: Known = Known.COMPLETED_BEFORE
    known_survives: bool = True  # The next attempt can read the known instants from the commit's metadata.
    undo: Undo = Undo.REVERT_FIRST
    rollbacks_remove_config: bool = True  # Rollbacks by other clients remove the config, too.
    # No other process acts between the check of the lock and the rollback. Hudi does not guarantee that; see the tests
    # of holes.
    fence_is_atomic: bool = True
    config_write_is_atomic: bool = True
    # After the switch:
    watch: Watch = Watch.FOREVER
    judge: Judge = Judge.FILE_IDS_AND_KEYS
    # All file groups of a write are judged and repaired, not only its own files, because a compaction may have merged
    # these.
    looks_at_groups: bool = True
    fences_guesses: bool = False  # Writes in flight that may be stale are fenced, too.
    unknown_is_fresh: bool = False  # A write in flight with an empty profile counts as fresh.
    # Flink:
    fences_flink: bool = False
    hand_over: bool = True  # The Flink job must be stopped before the commit.
    # The Flink job checks for conflicts (optimistic concurrency control) instead of being a `single_writer`.
    flink_conflicts: bool = False
    rolls_back_dead_flink: bool = False  # A Flink job's pending instant is rolled back once its heartbeat has ended.
    resubmit: Resubmit = Resubmit.BOOTSTRAP
    # Housekeeping:
    late_files_hold_archival: bool = True
    # The cleaner deletes no files of unjudged commits, and none at all while an incident is open.
    cleaner_spares_unjudged: bool = True
    cleaner_spares_pending: bool = True  # The cleaner deletes no files of writes in flight.


GOOD = Protocol()


@dataclass(frozen=True)
class WriterSpec:
    """One writer and its batches. A batch is a set of rows with the same value."""

    kind: Kind
    batches: tuple[tuple[Row, ...], ...]
    is_alone: bool = False  # Single-writer mode: the writer takes no lock and does not check for conflicts.
    # Whether it rolls back a conflicting clustering that it has seen pending
    # (`hoodie.clustering.rollback.pending.replacecommit.on.conflict`).
    rolls_back: bool = False
    loads_early: bool = False  # Whether it loads its timeline before its instant exists.


@dataclass(frozen=True)
class Scenario:
    """The processes on a table, the faults, and the rows at the start."""

    name: str
    writers: tuple[WriterSpec, ...]
    policy: Policy = Policy.WAIT
    faults: Faults = field(default_factory=Faults)
    at_start: tuple[Row, ...] = (("p", 0), ("p", 1))
    tries: int = 2  # Maximum number of attempts at a batch.
    attempts: int = 1
    has_metadata_table: bool = True
    is_clustering: bool = False  # File groups are rewritten within their buckets; those of one bucket become one.
    # Without buckets a batch writer looks up its rows by key (Bloom, simple, record index), and a Flink job keeps their
    # locations in its state. All file groups of a partition then count as those of one bucket.
    has_buckets: bool = True
    is_given: bool = False  # The clustering executes a plan that a writer has made.
    is_orderly: bool = False  # All processes follow the protocol, so there must be no incident.
    compacts: bool = False
    cleans: bool = False
    archives: bool = False
    old_number: int = 1

    @property
    def new_number(self) -> int:
        return self.old_number if self.is_clustering else 2 * self.old_number


@dataclass(frozen=True)
class Setting:
    """A protocol and a scenario to explore."""

    protocol: Protocol
    scenario: Scenario
