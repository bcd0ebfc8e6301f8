"""Lets Spark's Python workers start their tasks quickly: what Spark does for each costs more than a small task."""

from __future__ import annotations

import gc
import sys
import zipimport

_frozen = False


def keep_quick() -> None:
    """To be called in a task, after its imports.

    Spark puts its own jar and `pyspark.zip` on the workers' module path, and calls `importlib.invalidate_caches` before
    each task (`pyspark.worker`): Python then reads the lists of contents of all known archives, 0.1 CPU seconds each
    time. So the import system forgets its finders of archives; what is imported stays, and they come back when needed.

    And Spark collects garbage after each task (`pyspark.daemon`), which looks at every object of every imported module,
    0.02 to 0.05 CPU seconds each time. So what is there at the first task is left out of that, once for a process.
    """
    global _frozen
    for entry, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[entry]
    if not _frozen:
        gc.freeze()
        _frozen = True
