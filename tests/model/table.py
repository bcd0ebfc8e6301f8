"""A table, its writers and the service that replaces its file groups: the first state, and the steps from each
state."""

from __future__ import annotations

from collections.abc import Callable

from tests.model import expander, flink, housekeeping, recovery, watch, writers
from tests.model.invariants import violation
from tests.model.rules import Kind, Protocol, Scenario, Setting
from tests.model.search import Found, explore
from tests.model.state import (
    COMPLETED,
    EXPANDER,
    FIRST,
    NO_KEY,
    NOBODY,
    Block,
    Expander,
    Group,
    Instant,
    State,
    Steps,
    Writer,
    forgotten,
    with_writer,
)

Invariant = Callable[[State, Setting], str | None]


def search(protocol: Protocol, scenario: Scenario, invariant: Invariant = violation) -> Found:
    """Explores every state of the scenario under this protocol, or stops at the first violation."""
    setting = Setting(protocol, scenario)
    return explore(
        scenario.name,
        first_state(setting),
        lambda state: steps(state, setting),
        lambda state: invariant(state, setting),
        lambda state: forgotten(state, keeps_late_files=scenario.archives),
    )


def first_state(setting: Setting) -> State:
    """Returns one file group for each bucket of partition p, written and acknowledged with the value 0."""
    scenario = setting.scenario
    files: set[Block] = set()
    for partition, key in scenario.at_start:
        group = Group(partition, key % scenario.old_number, 0)
        files |= {Block(group, 0, NO_KEY, 0), Block(group, 0, key, 0)}
    groups = tuple(sorted({block.group for block in files}))
    first = Instant(FIRST, COMPLETED, 1, groups, scenario.at_start)
    given = Instant(EXPANDER, replaced=groups)
    state = State(
        instants=(first, given) if scenario.is_given else (first,),
        files=frozenset(files),
        expected=tuple(sorted((row, 0) for row in scenario.at_start)),
        writers=tuple(Writer() for _ in scenario.writers),
        expander=Expander(attempts=scenario.attempts),
        faults=scenario.faults,
    )
    index = flink.index_of(setting)
    if index is not None:
        state = with_writer(state, index, flink.submitted(state, setting, index, scenario.old_number))
    return state


def steps(state: State, setting: Setting) -> Steps:
    """Yields the possible next steps. If the order of two steps makes no difference, only one order is explored:

    - A process that holds the lock, and can neither lose it nor die, continues alone. Meanwhile the other processes
      could only read, tag rows, and write files that no reader sees yet. Neither affects the work under the lock
      before the commit. This does not hold beside writers in single-writer mode, and writers that roll back
      clusterings, because these do more without the lock.
    - An instant on which nobody works any more is rolled back at once, because others only wait for it.
    - If nothing cleans, archives or compacts, a commit is judged at once: a later judgement would see the same.
    """
    holder = _undisturbed(state, setting)
    if holder == EXPANDER:
        yield from expander.steps(state, setting)
        return
    first = next(housekeeping.rollbacks(state, setting), None) or next(watch.judgements(state, setting), None)
    if first and holder == NOBODY:
        yield first
        return
    for index, spec in enumerate(setting.scenario.writers):
        if holder in (NOBODY, writers.name(index)):
            yield from (flink if spec.kind is Kind.FLINK else writers).steps(state, setting, index)
    if holder != NOBODY:
        return
    yield from expander.steps(state, setting)
    yield from recovery.steps(state, setting)
    yield from watch.steps(state, setting)
    yield from housekeeping.steps(state, setting)


def _undisturbed(state: State, setting: Setting) -> str:
    """Returns the holder of the lock that can neither lose it nor die; NOBODY if there is none."""
    left, planned = state.faults, setting.scenario.faults
    if state.zombie or any(spec.is_alone or spec.rolls_back for spec in setting.scenario.writers):
        return NOBODY
    if state.lock == EXPANDER and not (left.crashes or left.expiries or left.freezes):
        return EXPANDER
    if state.lock.startswith("writer") and not (planned.expiries or planned.freezes):
        return state.lock
    return NOBODY
