"""The scenarios, which combine writers, faults and housekeeping. All states of each one are explored."""

from __future__ import annotations

from dataclasses import replace

from tests.model.rules import Kind, Policy, Scenario, WriterSpec
from tests.model.state import Faults

BOTH = (("p", 0), ("p", 1))
FIRST_KEY, SECOND_KEY = (("p", 0),), (("p", 1),)
NEW_PARTITION = (("q", 0), ("q", 1))


def upsert(*batches: tuple[tuple[str, int], ...]) -> WriterSpec:
    return WriterSpec(Kind.UPSERT, batches)


def sql_writer(*batches: tuple[tuple[str, int], ...]) -> WriterSpec:
    return WriterSpec(Kind.PREPPED, batches)


def rolling_writer(*batches: tuple[tuple[str, int], ...]) -> WriterSpec:
    return WriterSpec(Kind.UPSERT, batches, rolls_back=True)


def flink(*batches: tuple[tuple[str, int], ...]) -> WriterSpec:
    return WriterSpec(Kind.FLINK, batches)


BATCHES_WAIT = Scenario("two batch writers, wait", (upsert(BOTH), upsert(SECOND_KEY)))
BATCHES_FENCE = Scenario("two batch writers, fence", (upsert(BOTH), upsert(SECOND_KEY)), Policy.FENCE)
BATCHES_RETRY = Scenario("two batch writers, retry", (upsert(BOTH), upsert(SECOND_KEY)), Policy.LET_RETRY)
NEW_PARTITION_WAIT = Scenario("a new partition, wait", (upsert(NEW_PARTITION), upsert(NEW_PARTITION)))
NEW_PARTITION_FENCE = Scenario("a new partition, fence", (upsert(NEW_PARTITION), upsert(NEW_PARTITION)), Policy.FENCE)
PREPPED_WAIT = Scenario("SQL writer of prepped records", (sql_writer(BOTH), upsert(SECOND_KEY)))
PREPPED_FENCE = Scenario("SQL writer of prepped records, fence", (sql_writer(BOTH), upsert(SECOND_KEY)), Policy.FENCE)
MERGE = Scenario(
    "SQL merge of located and new rows",
    (sql_writer(BOTH), upsert(FIRST_KEY)),
    Policy.FENCE,
    at_start=FIRST_KEY,
)
FLINK_BESIDE_BATCHES = Scenario(
    "Flink by hand-over, beside a batch writer",
    (flink(BOTH, BOTH), upsert(SECOND_KEY)),
    Policy.FENCE,
)
FLINK_ALONE = Scenario(
    "Flink by hand-over, killed once", (flink(BOTH, BOTH),), faults=Faults(flink_kills=1), is_orderly=True
)
FLINK_DISORDER = Scenario(
    "Flink, and an operator who errs twice",
    (flink(BOTH, BOTH),),
    faults=Faults(operator_errors=2),
    cleans=True,
    archives=True,
)
ALONE = Scenario(
    "a writer in single-writer mode, without the lock",
    (WriterSpec(Kind.UPSERT, (BOTH, NEW_PARTITION), is_alone=True),),
)
TWO_BATCHES = Scenario("two batches in a row", (sql_writer(BOTH, SECOND_KEY), upsert(BOTH)))
CRASHES = Scenario(
    "two crashes, three attempts",
    (upsert(NEW_PARTITION),),
    faults=Faults(crashes=2),
    attempts=3,
)
CRASH_BESIDE_TWO = Scenario(
    "a crash beside two writers",
    (upsert(BOTH), upsert(SECOND_KEY)),
    Policy.LET_RETRY,
    faults=Faults(crashes=1),
    attempts=2,
)
LOST_LOCK = Scenario(
    "a lock that expires",
    (upsert(BOTH), sql_writer(SECOND_KEY)),
    Policy.LET_RETRY,
    faults=Faults(expiries=1),
)
LOST_LOCK_ONCE = replace(LOST_LOCK, name="a lock that expires, no retries", tries=1)
LOST_LOCK_NEW_PARTITION = Scenario(
    "a lock that expires, a new partition, fence",
    (upsert(NEW_PARTITION), upsert(SECOND_KEY)),
    Policy.FENCE,
    faults=Faults(expiries=1),
)
FLINK_DISORDER_BESIDE_BATCHES = Scenario(
    "Flink, an operator who errs, a batch writer",
    (flink(BOTH), upsert(SECOND_KEY)),
    Policy.FENCE,
    faults=Faults(operator_errors=1),
)
LOST_LOCK_AND_CRASH = Scenario(
    "a lock that expires, and a crash",
    (upsert(BOTH),),
    Policy.LET_RETRY,
    faults=Faults(crashes=1, expiries=1),
    attempts=2,
)
FROZEN = Scenario(
    "a frozen expander beside the next attempt",
    (upsert(NEW_PARTITION),),
    faults=Faults(freezes=1),
    attempts=2,
    has_metadata_table=False,
    archives=True,
)
LATE_FILES = Scenario(
    "late files and archival, no metadata table",
    (upsert(NEW_PARTITION), sql_writer(SECOND_KEY)),
    Policy.FENCE,
    has_metadata_table=False,
    archives=True,
)
CLEANING = Scenario(
    "cleaning and archival beside stale writers",
    (sql_writer(BOTH), upsert(BOTH)),
    cleans=True,
    archives=True,
)
LATE_FILES_ALONE = replace(LATE_FILES, name="late files, no metadata table", archives=False)
CLEANING_ALONE = replace(CLEANING, name="cleaning beside stale writers", archives=False)
ARCHIVING = replace(CLEANING, name="archival beside stale writers", cleans=False)
ARCHIVING_ONCE = replace(ARCHIVING, name="archival beside stale writers, no retries", tries=1)
COMPACTING = Scenario(
    "compaction and cleaning",
    (upsert(BOTH), sql_writer(SECOND_KEY)),
    compacts=True,
    cleans=True,
)
COMPACTING_ALONE = replace(COMPACTING, name="compaction", cleans=False)
COMPACTING_ONCE = replace(COMPACTING_ALONE, name="compaction, no retries", tries=1)
CLUSTERING = Scenario(
    "in-bucket clustering",
    (sql_writer(BOTH), upsert(SECOND_KEY)),
    Policy.FENCE,
    is_clustering=True,
)
THREE_TRIES = Scenario(
    "three tries, a new partition, fence", (upsert(NEW_PARTITION), upsert(BOTH)), Policy.FENCE, tries=3
)
CLUSTERING_FLINK = Scenario(
    "in-bucket clustering and Flink",
    (flink(BOTH, BOTH),),
    faults=Faults(operator_errors=1),
    is_clustering=True,
)
KEYED = Scenario(
    "clustering by keys, beside batch and SQL writers",
    (upsert(BOTH), sql_writer(SECOND_KEY)),
    is_clustering=True,
    has_buckets=False,
)
KEYED_NEW_PARTITION = Scenario(
    "clustering by keys, new rows and a new partition",
    (upsert(BOTH), upsert(NEW_PARTITION)),
    at_start=FIRST_KEY,
    is_clustering=True,
    has_buckets=False,
    is_orderly=True,
)
KEYED_ALONE = Scenario(
    "clustering by keys, a writer in single-writer mode",
    (WriterSpec(Kind.UPSERT, (BOTH, NEW_PARTITION), is_alone=True),),
    is_clustering=True,
    has_buckets=False,
)
KEYED_FAULTS = Scenario(
    "clustering by keys, a lock that expires, and a crash",
    (upsert(BOTH),),
    Policy.LET_RETRY,
    faults=Faults(crashes=1, expiries=1),
    attempts=2,
    is_clustering=True,
    has_buckets=False,
)
ROLLING = Scenario(
    "clustering by keys, writers that roll back what they saw pending",
    (rolling_writer(BOTH), rolling_writer(SECOND_KEY)),
    is_clustering=True,
    has_buckets=False,
    is_orderly=True,
)
GIVEN_PLAN = Scenario(
    "a writer's clustering plan, beside writers that roll back what they saw pending",
    (rolling_writer(BOTH), rolling_writer(SECOND_KEY)),
    is_clustering=True,
    has_buckets=False,
    is_given=True,
)
GIVEN_PLAN_SEEN_EARLY = replace(
    GIVEN_PLAN,
    name="a writer's clustering plan, seen by a writer before its instant exists",
    writers=(replace(rolling_writer(BOTH), loads_early=True),),
)
FLINK_STATE = Scenario(
    "clustering by keys, and Flink with locations in its state",
    (flink(BOTH, BOTH),),
    faults=Faults(flink_kills=1),
    is_clustering=True,
    has_buckets=False,
    is_orderly=True,
)
FLINK_STATE_BESIDE_BATCHES = Scenario(
    "clustering by keys, Flink with its state, a batch writer",
    (flink(BOTH), upsert(SECOND_KEY)),
    is_clustering=True,
    has_buckets=False,
)
FLINK_STATE_DISORDER = Scenario(
    "clustering by keys, Flink with its state, and an operator who errs twice",
    (flink(BOTH, BOTH),),
    faults=Faults(operator_errors=2),
    is_clustering=True,
    has_buckets=False,
    cleans=True,
    archives=True,
)

# Scenarios that `--exhaustive` adds. A smaller one has each fault and each kind of writer of the first six, and each
# service of the next five.
LARGE = (
    NEW_PARTITION_FENCE,
    PREPPED_FENCE,
    TWO_BATCHES,
    CRASH_BESIDE_TWO,
    LOST_LOCK,
    LOST_LOCK_NEW_PARTITION,
    FLINK_BESIDE_BATCHES,
    FLINK_DISORDER_BESIDE_BATCHES,
    LATE_FILES,
    CLEANING,
    ARCHIVING,
    COMPACTING,
    COMPACTING_ALONE,
    replace(
        ROLLING,
        name=f"{ROLLING.name}, three of them",
        writers=(*ROLLING.writers, rolling_writer(NEW_PARTITION)),
        tries=3,
    ),
    replace(
        GIVEN_PLAN,
        name=f"{GIVEN_PLAN.name}, two batches",
        writers=(rolling_writer(BOTH, SECOND_KEY), rolling_writer(FIRST_KEY)),
    ),
    replace(KEYED, name=f"{KEYED.name}, two batches", writers=(sql_writer(BOTH, SECOND_KEY), upsert(BOTH, FIRST_KEY))),
    replace(KEYED, name=f"{KEYED.name}, a crash", faults=Faults(crashes=1, expiries=1), attempts=2, cleans=True),
)
# Scenarios in which a writer's behaviour breaks every protocol of ours.
LOST = (GIVEN_PLAN_SEEN_EARLY,)
ALL = tuple(value for value in dict(globals()).values() if isinstance(value, Scenario) and value not in LOST + LARGE)
