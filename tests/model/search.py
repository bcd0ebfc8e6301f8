"""Breadth-first search over all states of a scenario; a violation comes with the shortest story that leads to it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.model import expander, flink, housekeeping, recovery, watch, writers
from tests.model.invariants import violation
from tests.model.rules import Kind, Protocol, Scenario, Setting
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
    Label,
    State,
    Steps,
    Writer,
    forgotten,
    with_writer,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Invariant = Callable[[State, Setting], str | None]
Parents = dict[State, tuple[State | None, Label]]


@dataclass(frozen=True)
class Found:
    """What a search has found: how many states, in how many seconds of CPU, and the violation with its story, if any.

    `taken` holds the sentences (before names are put in) of all steps that were ever taken.
    """

    setting: Setting
    states: int
    seconds: float
    taken: frozenset[str]
    violation: str | None = None
    story: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.setting.scenario.name}: {self.states} states in {self.seconds:.1f} s"
        if self.violation is None:
            return f"{head}, holds"
        lines = [f"{head}, violated after {len(self.story)} steps"]
        lines += [f"  {number:2}. {sentence}" for number, sentence in enumerate(self.story, 1)]
        return "\n".join([*lines, f"  So: {self.violation}"])


def first_state(setting: Setting) -> State:
    """One file group for each bucket of partition p, written and acknowledged with the value 0."""
    scenario = setting.scenario
    files: set[Block] = set()
    for partition, key in scenario.at_start:
        group = Group(partition, key % scenario.old_number, 0)
        files |= {Block(group, 0, NO_KEY, 0), Block(group, 0, key, 0)}
    groups = tuple(sorted({block.group for block in files}))
    state = State(
        instants=(Instant(FIRST, COMPLETED, 1, groups, scenario.at_start),),
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
    """What may happen next, without orders of steps that make no difference.

    Whoever holds the lock for sure goes on alone. That is sound: while nobody can lose the lock or die with it, all
    others can do is read, tag and write files that do not count yet. None of that is changed by what is done under the
    lock before its commit, nor changes it; so it might as well have come before, or come afterwards.
    What nobody works on any more is rolled back at once: until then others only wait for it. And where nothing cleans,
    archives or compacts, a commit is judged at once: nothing takes away what a later look would be at.
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
    """Who holds the lock and can neither lose it nor die with it; NOBODY when there is no such holder."""
    left, planned = state.faults, setting.scenario.faults
    if state.zombie or any(spec.is_alone for spec in setting.scenario.writers):
        return NOBODY
    if state.lock == EXPANDER and not (left.crashes or left.expiries or left.freezes):
        return EXPANDER
    if state.lock.startswith("writer") and not (planned.expiries or planned.freezes):
        return state.lock
    return NOBODY


def search(protocol: Protocol, scenario: Scenario, invariant: Invariant = violation) -> Found:
    """Explores every state, or stops at the first violation; since it goes by distance, its story is a shortest one."""
    setting = Setting(protocol, scenario)
    began = time.process_time()
    start = first_state(setting)
    parents: Parents = {start: (None, ("",))}
    level, taken = [start], set()
    while level:
        reached: list[State] = []
        for state in level:
            for label, after in steps(state, setting):
                taken.add(str(label[0]))
                tidy = forgotten(after, keeps_late_files=scenario.archives)
                if tidy in parents:
                    continue
                parents[tidy] = (state, label)
                wrong = invariant(tidy, setting)
                if wrong:
                    seconds = time.process_time() - began
                    return Found(setting, len(parents), seconds, frozenset(taken), wrong, story(parents, tidy))
                reached.append(tidy)
        level = reached
    return Found(setting, len(parents), time.process_time() - began, frozenset(taken))


def story(parents: Mapping[State, tuple[State | None, Label]], end: State) -> tuple[str, ...]:
    """The steps from the first state to this one, each as a sentence."""
    sentences: list[str] = []
    state: State | None = end
    while state is not None:
        before, (text, *names) = parents[state]
        sentences.append(str(text).format(*(_named(name) for name in names)))
        state = before
    return tuple(reversed(sentences[:-1]))


def _named(name: object) -> str:
    """File ids and lists of them as they are read best."""
    if isinstance(name, Group):
        return str(name)
    if isinstance(name, (list, tuple)):
        return ", ".join(dict.fromkeys("none" if item is None else str(item) for item in name))
    return str(name)
