"""Spark writers: the batch writer that tags its rows, and the SQL writer whose records carry their locations.

Both go idle -> planned -> started -> writing -> written -> committing; a conflict or a failed commit begins again.
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
    with_instant,
    with_writer,
)
from tests.model.view import group_of, number_of_buckets, visible

if TYPE_CHECKING:
    from tests.model.rules import Setting


def name(index: int) -> str:
    """Of a writer, as the owner of an instant and as the holder of the lock."""
    return f"writer {index}"


def value(index: int, batch: int) -> int:
    """The ordering value of a batch: later batches have greater ones, and no two have the same."""
    return 1 + 2 * batch + index


def steps(state: State, setting: Setting, index: int) -> Steps:
    """What this Spark writer may do next."""
    spec, writer = setting.scenario.writers[index], state.writers[index]
    if writer.step == "idle" and writer.batch < len(spec.batches):
        yield from _plan(state, setting, index)
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
    """The batch writer reads the number of buckets, the SQL writer the locations of its rows; no lock is needed."""
    spec, writer = setting.scenario.writers[index], state.writers[index]
    if spec.kind is Kind.UPSERT:
        number = number_of_buckets(state, setting)
        if number is not None:
            planned = writer._replace(step="planned", number=number)
            yield ("Writer {} reads the number of buckets: {}.", index, number), with_writer(state, index, planned)
        return
    live = visible(state, setting)
    located = tuple(
        min((group for group, rows in live.items() if row in rows), default=None) for row in spec.batches[writer.batch]
    )
    planned = writer._replace(step="planned", located=located)
    yield (
        ("SQL writer {} reads its rows, and with them their file ids: {}.", index, located),
        with_writer(state, index, planned),
    )


def _start(state: State, setting: Setting, index: int) -> Steps:
    """Creates the instant; Hudi takes the lock for it (`BaseHoodieWriteClient.startCommit`)."""
    writer = state.writers[index]
    number = writer.number or number_of_buckets(state, setting)
    if number is None:
        return
    instant = len(state.instants)
    state = state._replace(instants=(*state.instants, Instant(name(index))))
    started = writer._replace(step="started", number=number, instant=instant)
    yield ("Writer {} starts instant {}.", index, instant), with_writer(state, index, started)


def _tag(state: State, setting: Setting, index: int) -> Step:
    """Gives each row its file group, remembers what has completed by now (`preWrite`), and makes the instant inflight.

    The number of buckets is older than the file groups that are looked up by it.
    """
    writer = state.writers[index]
    if state.instants[writer.instant].phase == ROLLED_BACK:
        return failed(state, setting, index)
    live = visible(state, setting)
    rows = setting.scenario.writers[index].batches[writer.batch]
    groups = []
    for place, (partition, key) in enumerate(rows):
        found = writer.located[place] if writer.located else None
        bucket = key % writer.number
        groups.append(found or group_of(live, partition, bucket) or Group(partition, bucket, writer.instant))
    state = with_instant(
        state, writer.instant, phase=INFLIGHT, groups=tuple(sorted(set(groups))), rows=tuple(sorted(rows))
    )
    tagged = writer._replace(step="writing", located=tuple(groups), window=completions(state))
    if writer.located:
        text = "Writer {} makes instant {} inflight, with the file ids that it had read before: {}."
    else:
        text = "Writer {} tags its rows and makes instant {} inflight; they go to {}."
    return (text, index, writer.instant, tuple(groups)), with_writer(state, index, tagged)


def write(state: State, setting: Setting, index: int) -> Step:
    """Writes the files. A writer that was fenced does not know it yet, so its files come late."""
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
    """Takes the lock for the commit, and looks for conflicts: then the writer begins again."""
    writer = state.writers[index]
    if state.instants[writer.instant].phase not in PENDING:
        yield failed(state, setting, index)
        return
    other = conflict(state, writer)
    if other == NONE:
        locked = with_writer(state, index, writer._replace(step="committing"))
        text = "Writer {} takes the lock to commit instant {}, and finds no conflict."
        yield (text, index, writer.instant), locked._replace(lock=name(index))
        return
    text = "Writer {} finds that instant {} conflicts with instant {}, gives it up and tries again"
    if setting.scenario.writers[index].kind is Kind.PREPPED:
        text += " with the same prepped records"
    yield (text + ".", index, writer.instant, other), _again(state, setting, index)


def conflict(state: State, writer: Writer) -> int:
    """An instant that completed after the writer's `preWrite` in one of its buckets.

    It compares buckets by number (`BucketIndexConcurrentFileWritesConflictResolutionStrategy`), and never asks whether
    a file group was replaced before.
    """
    mine = {(group.partition, group.bucket) for group in state.instants[writer.instant].groups}
    for number, item in enumerate(state.instants):
        others = {(group.partition, group.bucket) for group in item.groups}
        if item.phase == COMPLETED and item.done > writer.window and mine & others:
            return number
    return NONE


def commit(state: State, setting: Setting, index: int) -> Step:
    """Completes the instant and gives the lock back. From here on the batch is acknowledged."""
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
    """A commit whose instant was rolled back fails, and the statement is run again from its beginning.

    For the SQL writer that may mean the same locations: the session's cached relation is older than the switch.
    """
    writer = state.writers[index]
    text = "Writer {} fails, since instant {} was rolled back, and runs its batch again."
    return (text, index, writer.instant), _again(state, setting, index)


def _again(state: State, setting: Setting, index: int) -> State:
    writer = state.writers[index]
    tries = writer.tries + 1
    if tries >= setting.scenario.tries:
        return with_writer(state, index, Writer("stopped", writer.batch, tries))
    if setting.scenario.writers[index].kind is Kind.PREPPED:
        located = tuple(group if group and group.creator != writer.instant else None for group in writer.located)
        return with_writer(state, index, Writer("planned", writer.batch, tries, located=located))
    return with_writer(state, index, Writer("idle", writer.batch, tries))
