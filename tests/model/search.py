"""Breadth-first search over all states of a model; a violation comes with the shortest sequence of steps that leads to
it."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tests.model.state import Group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tests.model.state import Label

S = TypeVar("S")


@dataclass(frozen=True)
class Found:
    """The result of a search, with the violation and the steps that lead to it, if there is one."""

    name: str
    states: int
    seconds: float  # CPU time.
    taken: frozenset[str]  # The sentences, without their names, of all steps that were taken.
    violation: str | None = None
    story: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.name}: {self.states} states in {self.seconds:.1f} s"
        if self.violation is None:
            return f"{head}, holds"
        lines = [f"{head}, violated after {len(self.story)} steps"]
        lines += [f"  {number:2}. {sentence}" for number, sentence in enumerate(self.story, 1)]
        return "\n".join([*lines, f"  So: {self.violation}"])


@dataclass(frozen=True)
class Mutant:
    """The search of a protocol without one rule."""

    search: Callable[[], Found]
    decisive: tuple[str, ...]  # Texts that must appear in the story's sentences, in this order.
    ends_with: str  # A text that must appear at the story's end.


def explore(
    name: str,
    first: S,
    steps: Callable[[S], Iterable[tuple[Label, S]]],
    violation: Callable[[S], str | None],
    tidied: Callable[[S], S] = lambda state: state,
) -> Found:
    """Explores every state, nearest first, or stops at the first violation, so that its story is a shortest one."""
    began = time.process_time()
    parents: dict[S, tuple[S | None, Label]] = {first: (None, ("",))}
    level, taken = [first], set()
    with _without_collector():
        while level:
            reached: list[S] = []
            for state in level:
                for label, after in steps(state):
                    taken.add(str(label[0]))
                    tidy = tidied(after)
                    if tidy in parents:
                        continue
                    parents[tidy] = (state, label)
                    wrong = violation(tidy)
                    if wrong:
                        seconds = time.process_time() - began
                        return Found(name, len(parents), seconds, frozenset(taken), wrong, story(parents, tidy))
                    reached.append(tidy)
            level = reached
    return Found(name, len(parents), time.process_time() - began, frozenset(taken))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switches the garbage collector off, which would take a tenth of the time although states have no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def story(parents: Mapping[S, tuple[S | None, Label]], end: S) -> tuple[str, ...]:
    """Returns the steps from the first state to this one, each as a sentence."""
    sentences: list[str] = []
    state: S | None = end
    while state is not None:
        before, (text, *names) = parents[state]
        sentences.append(str(text).format(*(_named(name) for name in names)))
        state = before
    return tuple(reversed(sentences[:-1]))


def _named(name: object) -> str:
    """Returns file ids, and lists of them, in a readable form."""
    if isinstance(name, Group):
        return str(name)
    if isinstance(name, (list, tuple)):
        return ", ".join(dict.fromkeys("none" if item is None else str(item) for item in name))
    return str(name)
