"""The garbage collector of processes that keep thousands of tables."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Lets the garbage collector run seldom, and never over what exists by now: imported modules stay until the end,
    and a full collection would traverse them several times a minute, for 0.1 s in which no thread runs.

    Searching lists of thousands of tables for cycles took a third of the time with Python's thresholds. The second
    generation covers a quarter of a million new objects: a million took 0.2 s, for which all calls waited."""
    gc.freeze()
    gc.set_threshold(10_000, 25, 200)
