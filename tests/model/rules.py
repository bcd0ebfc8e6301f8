"""The rules of the protocol. Each has a switch; a protocol with one of them turned off is a mutant."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tests.model.state import Faults, Row


class Policy(Enum):
    """What the expander does about a Spark write in flight (`on_active_writers`, `retry_conflicts`)."""

    WAIT = "wait"
    FENCE = "fence"
    LET_RETRY = "let the writer conflict and retry"


class Watch(Enum):
    FOREVER = "every commit after the switch is judged"
    BOUNDED = "the watch ends some time after the switch"
    NONE = "nobody looks"


class Judge(Enum):
    """How a write that came after the switch is told to be stale."""

    FILE_IDS_AND_KEYS = "it touches a replaced file group, or only old buckets of a partition and keys of other buckets"
    FILE_IDS = "it touches a replaced file group, or its new file groups have no bucket of the new number"
    BUCKET_NUMBERS = "it touches no bucket of the new number"


class Known(Enum):
    """Which instants are not judged after the switch, because the split has taken them in."""

    COMPLETED_BEFORE = "those that had completed when the guard looked"
    TIMELINE_BEFORE = "those that were on the timeline when the guard looked"
    TIMELINE_AFTER = "those that were on the timeline after the commit"


class Undo(Enum):
    """In which order an attempt that did not commit is undone."""

    REVERT_FIRST = "inflight back to requested, remove the config, roll back"
    CONFIG_FIRST = "remove the config, roll back"
    ROLLBACK_FIRST = "roll back, remove the config"


class Resubmit(Enum):
    """How a Flink job with locations in its state begins again after the switch."""

    BOOTSTRAP = "without state, and loads the locations from the table"
    SAVEPOINT = "from its savepoint"
    EMPTY = "without state, and loads nothing"


class Kind(Enum):
    UPSERT = "Spark batch writer"
    PREPPED = "Spark SQL writer of prepped records"
    FLINK = "Flink job"


@dataclass(frozen=True)
class Protocol:
    """The defaults are the protocol that holds.

    Of the expander: `guard` looks for writes in flight under the lock; `looks_again`: what has landed since the last
    split is split again under the lock. `as_clustering`: its instant lies on the timeline as a clustering plan instead
    of a plain replacecommit. `baseline` is written before the config; `config_first` writes a config that counts before
    the commit. `verifies_lock` right before the commit. `known` says what is not judged afterwards, and
    `known_survives` that the next attempt can read it (from the metadata of the commit). `undo`: see `Undo`.
    `rollbacks_remove_config`: so do those by other clients.

    Of what another process may do between looking and acting: `fence_is_atomic` and `config_write_is_atomic` assume
    that nothing comes between verifying the lock and the act. Hudi cannot promise that; see the tests of holes.

    After the switch: `watch`, `judge`. `fences_guesses`: in flight also writes that only may be stale are fenced.
    `looks_at_groups`: judged and repaired are the file groups that the write touched, not only the files it wrote (a
    compaction may have merged them). `unknown_is_fresh`: an empty profile is judged in flight, as fresh.

    Of Flink: `fences_flink`, `hand_over` (its job must be stopped before), `flink_conflicts` (optimistic concurrency
    control instead of `single_writer`), `rolls_back_dead_flink` (its pending instant, once the heartbeat has ended),
    `resubmit` (how a job with locations in its state begins again).

    Of housekeeping: `late_files_hold_archival`; `cleaner_spares_unjudged`: it deletes no files of commits that were not
    judged, and none at all while an incident is open; `cleaner_spares_pending`: nor files of writes in flight.
    """

    guard: bool = True
    looks_again: bool = True
    as_clustering: bool = False
    baseline: bool = True
    config_first: bool = False
    verifies_lock: bool = True
    known: Known = Known.COMPLETED_BEFORE
    known_survives: bool = True
    undo: Undo = Undo.REVERT_FIRST
    rollbacks_remove_config: bool = True
    fence_is_atomic: bool = True
    config_write_is_atomic: bool = True
    watch: Watch = Watch.FOREVER
    judge: Judge = Judge.FILE_IDS_AND_KEYS
    looks_at_groups: bool = True
    fences_guesses: bool = False
    unknown_is_fresh: bool = False
    fences_flink: bool = False
    hand_over: bool = True
    flink_conflicts: bool = False
    rolls_back_dead_flink: bool = False
    resubmit: Resubmit = Resubmit.BOOTSTRAP
    late_files_hold_archival: bool = True
    cleaner_spares_unjudged: bool = True
    cleaner_spares_pending: bool = True


GOOD = Protocol()


@dataclass(frozen=True)
class WriterSpec:
    """One writer and its batches; a batch is the rows that it writes, all with one value.

    `is_alone`: in single-writer mode, so it takes no lock and looks for no conflicts. `rolls_back`: a clustering that
    it has seen pending and that is in its way (`hoodie.clustering.rollback.pending.replacecommit.on.conflict`).
    `loads_early`: it loads its timeline before its instant exists.
    """

    kind: Kind
    batches: tuple[tuple[Row, ...], ...]
    is_alone: bool = False
    rolls_back: bool = False
    loads_early: bool = False


@dataclass(frozen=True)
class Scenario:
    """Who works on the table, what may go wrong, and what is there at the start.

    `tries`: how often a writer begins a batch. `is_clustering`: the file groups are rewritten in their buckets, those
    of one bucket into one; `is_given`: by a plan that a writer has made. `has_buckets`: without them a batch writer
    looks its rows up by key (Bloom, simple, record index), a Flink job keeps their locations in its state, and all file
    groups of a partition are taken for those of one bucket.
    `is_orderly`: nobody does what the protocol forbids, so there must be no incident at all.
    """

    name: str
    writers: tuple[WriterSpec, ...]
    policy: Policy = Policy.WAIT
    faults: Faults = field(default_factory=Faults)
    at_start: tuple[Row, ...] = (("p", 0), ("p", 1))
    tries: int = 2
    attempts: int = 1
    has_metadata_table: bool = True
    is_clustering: bool = False
    has_buckets: bool = True
    is_given: bool = False
    is_orderly: bool = False
    compacts: bool = False
    cleans: bool = False
    archives: bool = False
    old_number: int = 1

    @property
    def new_number(self) -> int:
        return self.old_number if self.is_clustering else 2 * self.old_number


@dataclass(frozen=True)
class Setting:
    """What is explored: a protocol in a scenario."""

    protocol: Protocol
    scenario: Scenario
