"""Spark's daemon of Python workers (`spark.python.daemon.module`), which forks them with the data plane imported.

Spark ends a worker that was idle for a minute, and each new one would import pyarrow and the data plane again: a CPU
second. The daemon itself stays, so it imports these modules once. It does so after its first forks, because the start
of a session waits for the forks.
"""

from __future__ import annotations

import os
from importlib import import_module

from pyspark import daemon

from jobs.dataplane.python_worker import MODULES, reduce_task_overhead

_FIRST_FORKS = 2  # the forks that `Executors.prove` needs

_forks = 0


def _forked() -> None:
    global _forks
    _forks += 1
    if _forks == _FIRST_FORKS:
        for module in MODULES:
            import_module(module)
        reduce_task_overhead()


if __name__ == "__main__":
    os.register_at_fork(after_in_parent=_forked)
    daemon.manager()  # type: ignore[no-untyped-call]
