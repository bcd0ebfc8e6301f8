"""Spark writers: the batch writer that tags its rows, and the SQL writer whose records carry their locations.

A writer of either kind goes idle -> planned -> started -> writing -> written -> committing, and begins again after a
conflict or a failed commit. A writer may roll back a clustering that it has seen pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.rules import Kind
from tests.model.state import (
    COMPLETED,
    INFLIGHT,
    NO_KEY,
    NOBODY,
    NONE,
    PENDING,
    ROLLED_BACK,
    Block,
    Group,
    Instant,
    State,
    Step,
    Steps,
    Writer,
    completions,
    rolled_back,
    with_instant,
    with_writer,
)
from tests.model.view import group_of, holder_of, number_of_buckets, pending_clusterings, place_of, visible

if TYPE_CHECKING:
    from tests.model.rules import Setting


def name(index: int) -> str:
    """Returns a writer's name as the owner of an instant and as the holder of the lock."""
    return f"writer {index}"


def value(index: int, batch: int) -> int:
    """Returns the ordering value of a batch: later batches have greater ones, and no two have the same."""
    return 1 + 2 * batch + index


def steps(state: State, setting: Setting, index: int) -> Steps:
    """Yields the possible next steps of this Spark writer."""
    spec, writer = setting.scenario.writers[index], state.writers[index]
    if writer.step == "idle" and writer.batch < len(spec.batches):
        if setting.scenario.has_buckets or spec.kind is Kind.PREPPED or spec.loads_early:
            yield from _plan(state, setting, index)
        elif state.lock == NOBODY or spec.is_alone:
            yield from _start(state, setting, index)
    elif writer.step == "planned":
        if state.lock == NOBODY or spec.is_alone:
            yield from _start(state, setting, index)
        if spec.kind is Kind.PREPPED and writer.tries:
            fresh = Writer("idle", writer.batch, writer.tries)
            yield ("SQL writer {} drops what it had read.", index), with_writer(state, index, fresh)
    elif writer.step == "started":
        yield _tag(state, setting, index)
    elif writer.step == "writing":
        yield write(state, setting, index)
    elif writer.step == "written" and spec.is_alone:
        yield commit(state, setting, index)
    elif writer.step == "written" and state.lock == NOBODY:
        yield from _check(state, setting, index)
    elif writer.step == "committing":
        yield commit(state, setting, index)


def _plan(state: State, setting: Setting, index: int) -> Steps:
    """Lets the batch writer read the number of buckets, or the SQL writer the locations of its rows, without a lock."""
    spec, writer = setting.scenario.writers[index], state.writers[index]
    if spec.loads_early:
        loaded = _loaded(state, setting, index)._replace(step="planned")
        yield ("Writer {} loads the timeline.", index), with_writer(state, index, loaded)
        return
    if spec.kind is Kind.UPSERT:
        number = number_of_buckets(state, setting)
        if number is not None:
            planned = writer._replace(step="planned", number=number)
            yield ("Writer {} reads the number of buckets: {}.", index, number), with_writer(state, index, planned)
        return
    live = visible(state, setting)
    located = tuple(holder_of(live, row) for row in spec.batches[writer.batch])
    planned = writer._replace(step="planned", located=located)
    yield (
        ("SQL writer {} reads its rows, and with them their file ids: {}.", index, located),
        with_writer(state, index, planned),
    )


def _start(state: State, setting: Setting, index: int) -> Steps:
    """Creates the instant; Hudi takes the lock for it (`BaseHoodieWriteClient.startCommit`)."""
    spec, writer = setting.scenario.writers[index], state.writers[index]
    if not (setting.scenario.has_buckets or spec.loads_early):
        writer = _loaded(state, setting, index)
    number = writer.number or number_of_buckets(state, setting)
    if number is None:
        return
    instant = len(state.instants)
    state = state._replace(instants=(*state.instants, Instant(name(index))))
    started = writer._replace(step="started", number=number, instant=instant)
    yield ("Writer {} starts instant {}.", index, instant), with_writer(state, index, started)


def _loaded(state: State, setting: Setting, index: int) -> Writer:
    """Returns the writer with the facts from its loaded timeline. Without buckets these are all: the locations of its
    rows, earlier commits, and pending clusterings."""
    spec, writer = setting.scenario.writers[index], state.writers[index]
    live = visible(state, setting)
    rows = spec.batches[writer.batch]
    read = writer.located or tuple(None for _ in rows)
    located = tuple(found or place_of(live, setting, row, 1) for found, row in zip(read, rows, strict=True))
    seen = pending_clusterings(state, setting) if spec.rolls_back else ()
    return writer._replace(number=1, located=located, window=completions(state), seen=seen)


def _tag(state: State, setting: Setting, index: int) -> Step:
    """Gives each row its file group, records the completed instants (`preWrite`), and makes the instant inflight. The
    writer has read the number of buckets earlier than the file groups that it looks up with it. Without buckets it uses
    the timeline that was loaded at the start, also for the rollback of clusterings (`clusteringHandleUpdate`)."""
    writer = state.writers[index]
    if state.instants[writer.instant].phase == ROLLED_BACK:
        return failed(state, setting, index)
    has_buckets = setting.scenario.has_buckets
    live = visible(state, setting) if has_buckets else {}
    rows = setting.scenario.writers[index].batches[writer.batch]
    groups = []
    for place, (partition, key) in enumerate(rows):
        found = writer.located[place] if writer.located else None
        bucket = key % writer.number
        groups.append(found or group_of(live, partition, bucket) or Group(partition, bucket, writer.instant))
    state = with_instant(
        state, writer.instant, phase=INFLIGHT, groups=tuple(sorted(set(groups))), rows=tuple(sorted(rows))
    )
    taken_back = [number for number in writer.seen if not set(groups).isdisjoint(state.instants[number].replaced)]
    for number in taken_back:
        state = _taken_back(state, number)
    window = completions(state) if has_buckets else writer.window
    tagged = writer._replace(step="writing", located=tuple(groups), window=window, seen=())
    if setting.scenario.writers[index].kind is Kind.PREPPED:
        text = "Writer {} makes instant {} inflight, with the file ids that it had read before: {}."
    else:
        text = "Writer {} tags its rows and makes instant {} inflight; they go to {}."
    if taken_back:
        text += " It rolls back the clustering of instants {}, which it has seen pending."
    return (text, index, writer.instant, tuple(groups), taken_back), with_writer(state, index, tagged)


def _taken_back(state: State, number: int) -> State:
    """Returns the state after Hudi's rollback of a clustering (0.15 to 1.2): a completed instant stays, but its files
    are gone."""
    if state.instants[number].phase in PENDING:
        return rolled_back(state, number)
    return state._replace(files=frozenset(item for item in state.files if item.instant != number))


def write(state: State, setting: Setting, index: int) -> Step:
    """Writes the files. A fenced writer does not know that yet, so its files are late files."""
    writer = state.writers[index]
    rows = setting.scenario.writers[index].batches[writer.batch]
    stamp = value(index, writer.batch)
    blocks: set[Block] = set()
    for group, (_, key) in zip(writer.located, rows, strict=True):
        assert group is not None
        blocks |= {Block(group, writer.instant, NO_KEY, 0), Block(group, writer.instant, key, stamp)}
    state = state._replace(files=state.files | blocks)
    is_late = state.instants[writer.instant].phase == ROLLED_BACK
    text = "Writer {} writes the files of instant {}" + (
        ", which was rolled back: they are late files." if is_late else "."
    )
    return (text, index, writer.instant), with_writer(state, index, writer._replace(step="written"))


def _check(state: State, setting: Setting, index: int) -> Steps:
    """Takes the lock for the commit, and checks for conflicts; after a conflict the writer begins again."""
    writer = state.writers[index]
    if state.instants[writer.instant].phase not in PENDING:
        yield failed(state, setting, index)
        return
    other = conflict(state, writer, setting)
    if other == NONE:
        locked = with_writer(state, index, writer._replace(step="committing"))
        text = "Writer {} takes the lock to commit instant {}, and finds no conflict."
        yield (text, index, writer.instant), locked._replace(lock=name(index))
        return
    text = "Writer {} finds that instant {} conflicts with instant {}, gives it up and tries again"
    if setting.scenario.writers[index].kind is Kind.PREPPED:
        text += " with the same prepped records"
    yield (text + ".", index, writer.instant, other), _begin_again(state, setting, index)


def conflict(state: State, writer: Writer, setting: Setting) -> int:
    """Returns an instant that completed after the writer's `preWrite` in one of its buckets, or a clustering that is
    pending there. Hudi compares buckets by number (`BucketIndexConcurrentFileWritesConflictResolutionStrategy`), or
    without buckets the written or replaced file groups (`ConcurrentOperation`, 0.15 to 1.2). Hudi never checks whether
    a file group was replaced before."""
    has_buckets = setting.scenario.has_buckets
    mine = _places(state.instants[writer.instant].groups, has_buckets=has_buckets)
    clusterings = pending_clusterings(state, setting)
    for number, item in enumerate(state.instants):
        is_candidate = item.phase == COMPLETED and item.done > writer.window
        touched = item.groups if has_buckets and is_candidate else item.groups + item.replaced
        if (is_candidate or number in clusterings) and mine & _places(touched, has_buckets=has_buckets):
            return number
    return NONE


def _places(groups: tuple[Group, ...], *, has_buckets: bool) -> set[object]:
    return {(group.partition, group.bucket) if has_buckets else group for group in groups}


def commit(state: State, setting: Setting, index: int) -> Step:
    """Completes the instant, releases the lock, and acknowledges the batch."""
    writer = state.writers[index]
    if state.lock == name(index):
        state = state._replace(lock=NOBODY)
    if state.instants[writer.instant].phase not in PENDING:
        return failed(state, setting, index)
    state = with_instant(state, writer.instant, phase=COMPLETED, done=completions(state) + 1)
    expected = dict(state.expected)
    for row in setting.scenario.writers[index].batches[writer.batch]:
        expected[row] = max(value(index, writer.batch), expected.get(row, 0))
    state = state._replace(expected=tuple(sorted(expected.items())))
    done = Writer("idle", writer.batch + 1)
    return ("Writer {} commits instant {}: its batch is acknowledged.", index, writer.instant), with_writer(
        state, index, done
    )


def failed(state: State, setting: Setting, index: int) -> Step:
    """Fails a commit whose instant was rolled back, and runs the statement again from the beginning.

    The SQL writer may use the same locations again, if the session's cached relation is older than the switch.
    """
    writer = state.writers[index]
    text = "Writer {} fails, since instant {} was rolled back, and runs its batch again."
    return (text, index, writer.instant), _begin_again(state, setting, index)


def _begin_again(state: State, setting: Setting, index: int) -> State:
    writer = state.writers[index]
    tries = writer.tries + 1
    if tries >= setting.scenario.tries:
        return with_writer(state, index, Writer("stopped", writer.batch, tries))
    if setting.scenario.writers[index].kind is Kind.PREPPED:
        located = tuple(group if group and group.creator != writer.instant else None for group in writer.located)
        return with_writer(state, index, Writer("planned", writer.batch, tries, located=located))
    return with_writer(state, index, Writer("idle", writer.batch, tries))
