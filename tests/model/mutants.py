"""Mutants: protocols without one rule or with a wrong one, each with the scenario in which it fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.model import scenarios
from tests.model.invariants import of_rows, violation
from tests.model.rules import GOOD, Judge, Known, Protocol, Scenario, Undo, Watch
from tests.model.search import Mutant
from tests.model.table import search

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.model.table import Invariant


def without(
    protocol: Protocol,
    scenario: Scenario,
    decisive: tuple[str, ...],
    ends_with: str,
    invariant: Invariant = violation,
) -> Mutant:
    return Mutant(lambda: search(protocol, scenario, invariant), decisive, ends_with)


# Faults that were observed, or nearly so.
MUTANTS: Mapping[str, Mutant] = {
    "conflict detection alone": without(
        replace(GOOD, guard=False, watch=Watch.NONE),
        scenarios.NEW_PARTITION_WAIT,
        ("makes instant 1 inflight", "expander commits", "finds no conflict", "acknowledged"),
        "where no upsert by 2 buckets finds it",
    ),
    "no watch": without(
        replace(GOOD, watch=Watch.NONE),
        scenarios.NEW_PARTITION_WAIT,
        ("reads the number of buckets: 1", "expander commits", "starts instant"),
        "where no upsert by 2 buckets finds it",
    ),
    "watch by bucket number": without(
        replace(GOOD, judge=Judge.BUCKET_NUMBERS),
        scenarios.MERGE,
        (
            "with them their file ids",
            "expander commits",
            "with the file ids that it had read before",
            "finds instant 2 right",
        ),
        "read with the old value",
    ),
    "watch of fifteen seconds": without(
        replace(GOOD, watch=Watch.BOUNDED),
        scenarios.PREPPED_WAIT,
        ("with them their file ids", "expander commits", "watch ends", "acknowledged"),
        "read with the old value",
    ),
    "config first": without(
        replace(GOOD, config_first=True),
        scenarios.BATCHES_WAIT,
        ("before its instant is on the timeline", "reads the number of buckets: 2", "acknowledged"),
        "Key",
        of_rows,
    ),
    "no baseline": without(
        replace(GOOD, baseline=False),
        scenarios.BATCHES_WAIT,
        ("writes the hashing config",),
        "Every reader and writer fails",
    ),
    "lock lost": without(
        replace(GOOD, verifies_lock=False, known=Known.TIMELINE_AFTER),
        scenarios.LOST_LOCK_NEW_PARTITION,
        ("ZooKeeper session expires", "acknowledged", "WITHOUT the lock"),
        "Key",
    ),
    "late files kept": without(
        replace(GOOD, late_files_hold_archival=False),
        scenarios.LATE_FILES,
        ("fences instant", "they are late files", "Archival passes"),
        "can be read, although no batch with it was ever acknowledged",
    ),
    "a Flink writer fenced": without(
        replace(GOOD, fences_flink=True),
        scenarios.FLINK_ALONE,
        ("completes its checkpoint", "fences instant 1", "the batch is lost"),
        "was acknowledged and is lost",
    ),
    "expansion beside Flink": without(
        replace(GOOD, hand_over=False, unknown_is_fresh=True),
        scenarios.FLINK_ALONE,
        ("nothing is in its way", "expander commits", "empty profile", "finds instant 2 right"),
        "read with the old value",
    ),
    "expansion beside Flink, with a watch that catches it": without(
        replace(GOOD, hand_over=False),
        scenarios.FLINK_ALONE,
        ("expander commits", "empty profile", "an incident"),
        "is stale, although everybody did what the protocol asks for",
    ),
}

# Further faults that the search has found: each follows the protocol too literally in one respect.
HOLES: Mapping[str, Mutant] = {
    "file ids tell nothing of a new file id in an old bucket": without(
        replace(GOOD, judge=Judge.FILE_IDS),
        scenarios.BATCHES_WAIT,
        ("reads the number of buckets: 1", "expander commits", "tags its rows", "finds instant 2 right"),
        "where no upsert by 2 buckets finds it",
    ),
    "known counts what is still pending": without(
        replace(GOOD, known=Known.TIMELINE_BEFORE),
        scenarios.LOST_LOCK,
        ("nothing is in its way", "ZooKeeper session expires", "acknowledged", "WITHOUT the lock"),
        "old value",
    ),
    "known dies with the worker": without(
        replace(GOOD, known_survives=False),
        scenarios.LOST_LOCK_AND_CRASH,
        ("ZooKeeper session expires", "acknowledged", "worker dies", "did complete"),
        "Key",
    ),
    "a rollback by a client without the option": without(
        replace(GOOD, rollbacks_remove_config=False),
        scenarios.CRASHES,
        ("writes the hashing config", "worker dies", "leaves its hashing config", "reads the number of buckets: 2"),
        "Key",
        of_rows,
    ),
    "the instant is rolled back before its config is removed": without(
        replace(GOOD, undo=Undo.ROLLBACK_FIRST),
        scenarios.CRASHES,
        ("writes the hashing config", "worker dies", "rolls instant 1 back", "reads the number of buckets: 2"),
        "Key",
        of_rows,
    ),
    "the config is removed while the instant can still be completed": without(
        replace(GOOD, undo=Undo.CONFIG_FIRST),
        scenarios.FROZEN,
        ("verifies that the lock", "is frozen", "removes the hashing config", "goes on and commits"),
        "has committed, and its hashing config does not count",
    ),
    "a thawed expander writes its config": without(
        replace(GOOD, config_write_is_atomic=False),
        scenarios.FROZEN,
        (
            "is frozen",
            "rolls instant 1 back",
            "goes on and writes the hashing config",
            "reads the number of buckets: 2",
        ),
        "Key",
        of_rows,
    ),
    "the lock is lost in the middle of a fence": without(
        replace(GOOD, fence_is_atomic=False),
        scenarios.LOST_LOCK_NEW_PARTITION,
        ("sets about rolling it back", "ZooKeeper session expires", "acknowledged", "which has completed meanwhile"),
        "cannot be read",
    ),
    "guesses are fenced": without(
        replace(GOOD, fences_guesses=True),
        scenarios.NEW_PARTITION_WAIT,
        ("expander commits", "reads the number of buckets: 2", "The watch fences"),
        "although it goes by the new number",
    ),
    "the cleaner takes what nobody has judged": without(
        replace(GOOD, cleaner_spares_unjudged=False),
        scenarios.CLEANING,
        ("expander commits", "acknowledged", "cleaner deletes"),
        "Key",
    ),
    "the cleaner takes what is in flight": without(
        replace(GOOD, cleaner_spares_pending=False),
        scenarios.CLEANING,
        ("expander commits", "writes the files of instant 2", "cleaner deletes", "acknowledged"),
        "Key",
    ),
    "a dead Flink job's instant is rolled back": without(
        replace(GOOD, rolls_back_dead_flink=True),
        scenarios.FLINK_ALONE,
        ("is killed between its checkpoint and the commit", "heartbeat has expired"),
        "was acknowledged and is lost",
    ),
    "Flink with conflict detection": without(
        replace(GOOD, flink_conflicts=True),
        scenarios.FLINK_BESIDE_BATCHES,
        ("completes its checkpoint", "acknowledged", "conflicts with instant"),
        "was acknowledged and is lost",
    ),
    "a compaction launders a stale commit": without(
        replace(GOOD, looks_at_groups=False),
        scenarios.COMPACTING,
        ("reads the number of buckets: 1", "expander commits", "compaction"),
        "where no upsert by 2 buckets finds it",
    ),
}
