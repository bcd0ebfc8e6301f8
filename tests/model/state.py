"""One state of the model: a table's timeline, files, hashing configs and lock, and the step of each process. Everything
is a tuple of tuples, strings and small numbers: hashable, comparable, and cheap to copy partly. Keys are 0 and 1 and
are their own hash, so a key's bucket is `key % number`. Each value is its own ordering value: of two values of a row
the greater one is the later one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Row = tuple[str, int]  # partition, key

# Phases of an instant. A rolled-back instant is not on the timeline, but keeps its number, because files and writers
# refer to it.
REQUESTED, INFLIGHT, COMPLETED, ROLLED_BACK = "requested", "inflight", "completed", "rolled back"
PENDING = (REQUESTED, INFLIGHT)

# Owners of instants and holders of the lock; a writer is "writer 0", "writer 1".
NOBODY, FIRST, EXPANDER, COMPACTION, REPAIR, RECOVERY = "", "first", "expander", "compaction", "repair", "recovery"

BASELINE = -1  # the hashing config with the number before any expansion
EARLY = 99  # the hashing config of an instant that is not on the timeline yet
NO_KEY = -1  # The key of a file without rows, because an empty child of a split is a file group, too.
NONE = -1  # no instant


class Group(NamedTuple):
    """A file group. A file id is the bucket's eight digits and a tail, which is here the instant that created the
    group."""

    partition: str
    bucket: int
    creator: int

    def __str__(self) -> str:
        return f"{self.partition}/{self.bucket:08d}-{self.creator}"


class Block(NamedTuple):
    """A row in a base or log file of a file group, written by an instant."""

    group: Group
    instant: int
    key: int
    value: int

    @property
    def row(self) -> Row:
        return self.group.partition, self.key


class Instant(NamedTuple):
    """An instant; its number is its position on the timeline."""

    owner: str
    phase: str = REQUESTED
    done: int = 0  # The position among the completed instants, 0 if this one has not completed.
    groups: tuple[Group, ...] = ()  # The file groups to which it writes the rows.
    rows: tuple[Row, ...] = ()
    replaced: tuple[Group, ...] = ()  # The file groups that a replacecommit replaces.
    is_judged: bool = False


class Writer(NamedTuple):
    """A writer, with the facts that it has read of the table."""

    step: str = "idle"
    batch: int = 0
    tries: int = 0
    number: int = 0  # The number of buckets.
    located: tuple[Group | None, ...] = ()  # The file groups of its rows.
    window: int = 0  # The number of instants that had completed when the writer read them.
    instant: int = NONE
    seen: tuple[int, ...] = ()  # The clusterings that were pending in the timeline that it has loaded.


class Expander(NamedTuple):
    """An attempt of the expander."""

    step: str = "new"
    instant: int = NONE
    seen: int = 0  # The number of instants that had completed at the last split.
    known: int = 0  # The number of instants that had completed when it checked the timeline under the lock.
    let_through: tuple[int, ...] = ()  # Pending instants that it allows to continue.
    target: int = NONE  # An instant that it is about to roll back.
    attempts: int = 1


class Faults(NamedTuple):
    """Numbers of faults that may still happen."""

    crashes: int = 0
    expiries: int = 0
    freezes: int = 0
    flink_kills: int = 0
    operator_errors: int = 0


class State(NamedTuple):
    instants: tuple[Instant, ...]
    files: frozenset[Block]
    expected: tuple[tuple[Row, int], ...]  # The latest acknowledged value of each row.
    writers: tuple[Writer, ...]
    expander: Expander = Expander()
    zombie: Expander | None = None  # An attempt that was frozen and taken for dead.
    configs: frozenset[int] = frozenset()  # The instants whose hashing config is in the folder.
    lock: str = NOBODY
    incidents: frozenset[int] = frozenset()  # Stale commits that are known and not yet repaired.
    horizon: int = 0  # Instants before this one are archived.
    is_watched: bool = True
    is_declared_stopped: bool = False  # whether the operator has declared the Flink job as stopped
    lost: int = NONE  # an instant whose batch was acknowledged and will never be committed
    wrongly_fenced: int = NONE
    faults: Faults = Faults()


Label = tuple[object, ...]  # A label of a step: a sentence with placeholders, and their values.
Step = tuple[Label, State]
Steps = Iterator[Step]


def completions(state: State) -> int:
    """Returns how many instants have completed so far."""
    return max(item.done for item in state.instants)


def with_instant(state: State, number: int, **changes: object) -> State:
    """Returns the state with these fields of one instant changed."""
    changed = state.instants[number]._replace(**changes)  # type: ignore[arg-type]
    return state._replace(instants=(*state.instants[:number], changed, *state.instants[number + 1 :]))


def with_writer(state: State, index: int, writer: Writer) -> State:
    """Returns the state with one writer changed."""
    return state._replace(writers=(*state.writers[:index], writer, *state.writers[index + 1 :]))


def rolled_back(state: State, number: int) -> State:
    """Returns the state after a rollback: the instant is gone, and so are the files that it has written so far."""
    state = state._replace(files=frozenset(item for item in state.files if item.instant != number))
    return with_instant(state, number, phase=ROLLED_BACK)


def is_given_up(state: State, number: int) -> bool:
    """Returns whether nobody works on the instant any more (on a real table its heartbeat has expired)."""
    busy = any(writer.instant == number for writer in state.writers)
    return not busy and number != state.expander.instant and (not state.zombie or number != state.zombie.instant)


def forgotten(state: State, *, keeps_late_files: bool) -> State:
    """Returns the state without facts that no process can observe any more: of an ended instant without files only the
    position remains. States that differ only in such facts have the same future, so one of them is enough. Late files
    have no effect while nothing is archived."""
    gone = {number for number, item in enumerate(state.instants) if item.phase == ROLLED_BACK}
    if gone and not keeps_late_files and any(item.instant in gone for item in state.files):
        state = state._replace(files=frozenset(item for item in state.files if item.instant not in gone))
    with_files = {item.instant for item in state.files}
    for number in gone:
        if state.instants[number].owner and number not in with_files and is_given_up(state, number):
            state = with_instant(state, number, owner=NOBODY, groups=(), rows=(), replaced=())
    return state
