"""Settings of the garbage collector, for processes with data of thousands of tables."""

from __future__ import annotations

import gc


def collect_seldom() -> None:
    """Lets the garbage collector run seldom, and never over the objects that exist now. Imported modules stay until the
    process ends. Without this function, full collections would traverse these objects several times a minute, and each
    time no thread could run for 0.1 s.

    The search for cycles in lists of thousands of tables took a third of the time with Python's own thresholds. The
    second generation covers a quarter of a million new objects. If it covered a million, a collection would take 0.2 s,
    during which all calls would wait."""
    gc.freeze()
    gc.set_threshold(10_000, 25, 200)
