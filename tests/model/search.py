"""Breadth-first search over all states of a world; a violation comes with the shortest story that leads to it."""

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
    """What a search has found: how many states, in how many seconds of CPU, and the violation with its story, if any.

    `taken` holds the sentences (before names are put in) of all steps that were ever taken.
    """

    name: str
    states: int
    seconds: float
    taken: frozenset[str]
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
    """A search without one rule. `decisive` are parts of its story's sentences, in this order; `ends_with` is a part of
    its end."""

    search: Callable[[], Found]
    decisive: tuple[str, ...]
    ends_with: str


def explore(
    name: str,
    first: S,
    steps: Callable[[S], Iterable[tuple[Label, S]]],
    violation: Callable[[S], str | None],
    tidied: Callable[[S], S] = lambda state: state,
) -> Found:
    """Explores every state, or stops at the first violation; since it goes by distance, its story is a shortest one."""
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
    """States hold no cycles, and looking for some among a million tuples takes a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def story(parents: Mapping[S, tuple[S | None, Label]], end: S) -> tuple[str, ...]:
    """The steps from the first state to this one, each as a sentence."""
    sentences: list[str] = []
    state: S | None = end
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
