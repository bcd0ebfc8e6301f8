"""Fences stale writes that are in flight after the switch, and judges committed writes. A stale commit is an incident
until its rows have been moved to the right buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.rules import Judge, Kind, Watch
from tests.model.state import (
    COMPLETED,
    INFLIGHT,
    NO_KEY,
    NOBODY,
    REPAIR,
    Block,
    Group,
    Instant,
    State,
    Step,
    Steps,
    completions,
    rolled_back,
    with_instant,
)
from tests.model.view import is_committed, place_of, replaced_groups, replacements, right_number, visible

if TYPE_CHECKING:
    from tests.model.rules import Setting


def steps(state: State, setting: Setting) -> Steps:
    """Yields the possible steps of the worker or the service after the switch."""
    if state.expander.step != "watching":
        return
    if setting.protocol.watch is Watch.BOUNDED and state.is_watched and not unjudged(state, setting):
        yield ("The watch ends: its seconds are over.",), state._replace(is_watched=False)
    for number in unjudged(state, setting) if waits(setting) else ():
        yield _judge(state, setting, number)
    if state.lock == NOBODY:
        if is_watching(state, setting):
            yield from _fence(state, setting)
        for number in sorted(state.incidents):
            yield _repair(state, setting, number)


def waits(setting: Setting) -> bool:
    """Returns whether the moment of a judgement makes a difference."""
    return setting.scenario.compacts or setting.scenario.cleans or setting.scenario.archives


def judgements(state: State, setting: Setting) -> Steps:
    """Yields the judgements that happen at once."""
    if state.expander.step == "watching" and not waits(setting):
        for number in unjudged(state, setting):
            yield _judge(state, setting, number)


def is_watching(state: State, setting: Setting) -> bool:
    """Returns whether commits after the switch are judged."""
    return setting.protocol.watch is not Watch.NONE and state.is_watched


def unjudged(state: State, setting: Setting) -> list[int]:
    """Returns committed writes that the replacement may not have included, and that will be judged."""
    if not replacements(state) or not is_watching(state, setting):
        return []
    mine = state.expander
    return [
        number
        for number, item in enumerate(state.instants)
        if item.phase == COMPLETED
        and item.owner.startswith("writer")
        and item.done > mine.known
        and not item.is_judged
        and number not in mine.let_through
    ]


def _judge(state: State, setting: Setting, number: int) -> Step:
    judged = with_instant(state, number, is_judged=True)
    if not is_stale(state, setting, number):
        return ("The service finds instant {} right.", number), judged
    text = "The service finds instant {} stale: an incident."
    return (text, number), judged._replace(incidents=state.incidents | {number})


def is_stale(state: State, setting: Setting, number: int) -> bool:
    """Returns whether the protocol judges a committed write as stale."""
    protocol, scenario, item = setting.protocol, setting.scenario, state.instants[number]
    index = int(item.owner.split()[1])
    if protocol.unknown_is_fresh and scenario.writers[index].kind is Kind.FLINK:
        return False
    if protocol.judge is Judge.BUCKET_NUMBERS:
        return not scenario.is_clustering and _has_old_buckets(setting, item.groups)
    if not replaced_groups(state).isdisjoint(item.groups):
        return True
    if scenario.is_clustering:
        return False
    if protocol.judge is Judge.FILE_IDS:
        new = tuple(group for group in item.groups if group.creator == number)
        return bool(new) and _has_old_buckets(setting, new)
    if not any(_has_old_buckets(setting, groups) for groups in _by_partition(item.groups)):
        return False
    return any(_is_misplaced(block, scenario.new_number) for block in _written(state, setting, number))


def _by_partition(groups: tuple[Group, ...]) -> list[tuple[Group, ...]]:
    partitions = {group.partition for group in groups}
    return [tuple(group for group in groups if group.partition == partition) for partition in partitions]


def _written(state: State, setting: Setting, number: int) -> list[Block]:
    """Returns the rows for a judgement: committed rows of the write's file groups, or only those in its own files."""
    groups = state.instants[number].groups
    return [
        block
        for block in state.files
        if block.key != NO_KEY
        and (
            block.instant == number
            or (
                setting.protocol.looks_at_groups
                and block.group in groups
                and is_committed(state, setting, block.instant)
            )
        )
    ]


def _is_misplaced(block: Block, buckets: int) -> bool:
    return block.key != NO_KEY and block.key % buckets != block.group.bucket


def _has_old_buckets(setting: Setting, groups: tuple[Group, ...]) -> bool:
    return not any(group.bucket >= setting.scenario.old_number for group in groups)


def _fence(state: State, setting: Setting) -> Steps:
    """Rolls back writes in flight whose profile shows that they are stale; this may be too late for any of them."""
    replaced = replaced_groups(state)
    for number, item in enumerate(state.instants):
        if item.phase != INFLIGHT or not item.owner.startswith("writer"):
            continue
        index = int(item.owner.split()[1])
        is_flink = setting.scenario.writers[index].kind is Kind.FLINK
        if state.writers[index].instant != number or (is_flink and not setting.protocol.fences_flink):
            continue
        is_certain = not replaced.isdisjoint(item.groups)
        # The profile of a write in flight does not name file groups that do not exist yet (`buckets_touched`).
        is_guessed = setting.protocol.fences_guesses and _has_old_buckets(
            setting, tuple(group for group in item.groups if group.creator != number)
        )
        if not is_certain and not is_guessed:
            continue
        after = rolled_back(state, number)
        if not is_certain and state.writers[index].number == setting.scenario.new_number:
            after = after._replace(wrongly_fenced=number)
        yield ("The watch fences instant {}: it rolls it back under the lock.", number), after


def _repair(state: State, setting: Setting, number: int) -> Step:
    """Moves the rows of a stale commit from the wrong to the right buckets, by key and ordering value.

    Rows that are in the right bucket of a live file group stay where they are.
    """
    repair, buckets = len(state.instants), right_number(state, setting)
    replaced = replaced_groups(state)
    live = visible(state, setting)
    state = state._replace(instants=(*state.instants, Instant(REPAIR)))
    files, groups = set(state.files), set()
    for block in _written(state, setting, number):
        is_lost = block.group in replaced and block.instant == number
        if not is_lost and (block.group in replaced or not _is_misplaced(block, buckets)):
            continue
        files.discard(block)
        partition, key = block.row
        bucket = key % buckets
        there = {group: rows for group, rows in live.items() if group not in replaced}
        target = place_of(there, setting, block.row, buckets) or Group(partition, bucket, repair)
        groups.add(target)
        files |= {Block(target, repair, NO_KEY, 0), Block(target, repair, key, block.value)}
    files -= {block for block in files if block.instant == number and block.group in replaced}
    state = state._replace(files=frozenset(files), incidents=state.incidents - {number})
    text = "The service repairs the incident of instant {}: " + (
        "it brings its rows to {}." if groups else "it finds no row to bring anywhere{}."
    )
    names = [str(group) for group in sorted(groups)]
    done = completions(state) + 1
    return (text, number, names), with_instant(state, repair, phase=COMPLETED, done=done, groups=tuple(sorted(groups)))
