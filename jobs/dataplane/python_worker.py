"""Reduces the cost of starting tasks in Spark's Python workers, which exceeds that of a small task itself."""

from __future__ import annotations

import gc
import sys
import zipimport

_frozen = False


def reduce_task_overhead() -> None:
    """Removes two costs that Spark adds to each task; call it in a task, after its imports.

    Spark puts its own jar and `pyspark.zip` on the workers' module path, and calls `importlib.invalidate_caches` before
    each task (`pyspark.worker`): Python then reads the directories of all known archives, 0.1 CPU seconds each time. So
    the import system forgets its finders of archives; imported modules stay, and the finders are created again when
    needed.

    Spark also collects garbage after each task (`pyspark.daemon`), which visits every object of every imported module,
    0.02 to 0.05 CPU seconds each time. So the objects that exist at the first task are excluded, once per process.
    """
    global _frozen
    for entry, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[entry]
    if not _frozen:
        gc.freeze()
        _frozen = True
