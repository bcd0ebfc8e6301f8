"""Reduces the cost of starting a task in a Python worker. To start a small task costs more than the task itself."""

from __future__ import annotations

import ctypes
import gc
import sys
import zipimport

# The modules with the functions of tasks and of processes beside the driver, which import all others.
MODULES = (
    "jobs.dataplane.compaction_job",
    "jobs.dataplane.rewrite_job",
    "jobs.dataplane.key_job",
    "jobs.dataplane.hudi_merge_job",
)

# `mallopt(3)`: glibc's largest threshold for blocks of their own; and the freed memory that it may keep before it
# returns it to the system.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_IN_HEAP, _HELD_FREE = 32 * 1024 * 1024, 64 * 1024 * 1024

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
        prepare_process()
        _frozen = True


def prepare_process() -> None:
    """Excludes the existing objects from garbage collections, and keeps the memory that numpy frees in the process:
    glibc would return the memory of each large array at once, and zeroing the pages of the next array takes a tenth of
    the CPU of a small job."""
    gc.freeze()
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP)
        mallopt(_M_TRIM_THRESHOLD, _HELD_FREE)
