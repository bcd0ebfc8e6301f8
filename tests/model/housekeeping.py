"""Rollback of abandoned instants, removal of late files, cleaning, archival and compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.state import (
    COMPACTION,
    COMPLETED,
    EXPANDER,
    NO_KEY,
    NOBODY,
    NONE,
    PENDING,
    ROLLED_BACK,
    Block,
    Instant,
    State,
    Steps,
    completions,
    is_given_up,
    rolled_back,
    with_instant,
)
from tests.model.view import is_committed, replaced_groups, visible
from tests.model.watch import unjudged

if TYPE_CHECKING:
    from tests.model.rules import Setting


def steps(state: State, setting: Setting) -> Steps:
    """Yields the possible steps of the service's jobs, or of writers' own table services."""
    if state.lock == NOBODY:
        yield from _roll_back_flink(state, setting)
        if setting.scenario.compacts:
            yield from _compact(state, setting)
        if setting.scenario.cleans:
            yield from _clean(state, setting)
        if setting.scenario.archives:
            yield from _archive(state, setting)
    yield from _sweep(state)


def rollbacks(state: State, setting: Setting) -> Steps:
    """Rolls back instants that their writers have abandoned (LAZY)."""
    if state.lock != NOBODY:
        return
    for number, item in enumerate(state.instants):
        if item.phase in PENDING and item.owner.startswith("writer") and is_given_up(state, number):
            yield ("The service rolls instant {} back: its writer gave it up.", number), rolled_back(state, number)


def _roll_back_flink(state: State, setting: Setting) -> Steps:
    """Rolls back an instant of Flink. The correct protocol never rolls it back, because a restored job commits its
    instant."""
    for writer in state.writers:
        if setting.protocol.rolls_back_dead_flink and writer.step == "killed" and writer.instant != NONE:
            number = writer.instant
            if state.instants[number].phase in PENDING:
                text = "The service rolls instant {} back: Flink's heartbeat has expired."
                yield (text, number), rolled_back(state, number)


def _sweep(state: State) -> Steps:
    """Removes the late files of a rolled-back instant."""
    for number, item in enumerate(state.instants):
        if item.phase == ROLLED_BACK and any(block.instant == number for block in state.files):
            swept = frozenset(block for block in state.files if block.instant != number)
            yield ("The service removes the late files of instant {}.", number), state._replace(files=swept)


def _clean(state: State, setting: Setting) -> Steps:
    """Deletes the files of replaced file groups, which no reader needs any more."""
    replaced = replaced_groups(state)
    protocol = setting.protocol
    if protocol.cleaner_spares_unjudged and (state.incidents or state.expander.step != "watching"):
        return
    kept = set(unjudged(state, setting)) if protocol.cleaner_spares_unjudged else set()
    if protocol.cleaner_spares_pending:
        kept |= {number for number, item in enumerate(state.instants) if item.phase != COMPLETED}
    doomed = {block for block in state.files if block.group in replaced and block.instant not in kept}
    if doomed:
        names = sorted({f"{block.group} of instant {block.instant}" for block in doomed})
        yield (
            ("The cleaner deletes the files of replaced file groups: {}.", names),
            state._replace(files=state.files - doomed),
        )


def _archive(state: State, setting: Setting) -> Steps:
    """Archives the first instant of the active timeline. Hudi never archives beyond a pending instant, and archives a
    replacecommit only after the replaced file groups were cleaned."""
    number = state.horizon
    if number >= len(state.instants) or state.instants[number].phase in PENDING:
        return
    item = state.instants[number]
    if item.owner == EXPANDER and item.phase == COMPLETED:
        committed = {block.group for block in state.files if state.instants[block.instant].phase == COMPLETED}
        if not committed.isdisjoint(item.replaced):
            return
    if setting.protocol.late_files_hold_archival and _holds_archival(state, setting, number):
        return
    yield ("Archival passes instant {}.", number), state._replace(horizon=number + 1)


def _holds_archival(state: State, setting: Setting, number: int) -> bool:
    """Returns whether archival must wait, because of an incident, an unjudged commit, or a fenced writer that is alive
    or has left files."""
    if state.incidents or unjudged(state, setting):
        return True
    if state.instants[number].phase != ROLLED_BACK:
        return False
    return not is_given_up(state, number) or any(block.instant == number for block in state.files)


def _compact(state: State, setting: Setting) -> Steps:
    """Plans the compaction of a file group with more than one write, and completes it at any later time."""
    pending = [n for n, item in enumerate(state.instants) if item.owner == COMPACTION and item.phase in PENDING]
    for number in pending:
        yield ("The compaction of instant {} completes.", number), _compacted(state, number)
    if pending or any(item.owner == COMPACTION for item in state.instants):
        return
    for group in sorted(visible(state, setting)):
        written = {block.instant for block in state.files if block.group == group}
        if sum(is_committed(state, setting, number) for number in written) > 1:
            plan = Instant(COMPACTION, groups=(group,), rows=())
            after = state._replace(instants=(*state.instants, plan))
            yield ("A compaction of {} is planned as instant {}.", str(group), len(state.instants)), after


def _compacted(state: State, number: int) -> State:
    """Merges the writes that had completed into a base file; later writes stay in the log."""
    (group,) = state.instants[number].groups
    merged = {block for block in state.files if block.group == group and state.instants[block.instant].done}
    latest: dict[int, int] = {}
    for block in merged:
        latest[block.key] = max(block.value, latest.get(block.key, 0))
    base = {Block(group, number, key, value) for key, value in {NO_KEY: 0, **latest}.items()}
    state = state._replace(files=(state.files - merged) | base)
    return with_instant(state, number, phase=COMPLETED, done=completions(state) + 1)
