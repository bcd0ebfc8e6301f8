"""The Python of a session's tasks: which one it is, how its workers are started, and the modules that they find."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jobs
from jobs.format.spark_options import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext

_PYTHON = "spark.pyspark.python"


def python(master: str, chosen: Mapping[str, str], given: Mapping[str, str]) -> str:
    """Returns the Python of the tasks. On a cluster the tasks may need another Python than the driver, so the
    configured one is used."""
    if is_local(master):
        return sys.executable
    by_options = chosen.get(_PYTHON) or given.get(_PYTHON)
    return by_options or os.environ.get("PYSPARK_PYTHON") or sys.executable


def daemon(master: str) -> dict[str, str]:
    """Returns the option that uses `jobs.dataplane.python_daemon`, if the daemon can import the package `jobs`."""
    # Executors of a cluster, and executors that get the package from an archive, have it only after their daemon has
    # started.
    has_package = is_local(master) and Path(jobs.__path__[0]).is_dir()
    return {"spark.python.daemon.module": "jobs.dataplane.python_daemon"} if has_package else {}


def ship_jobs(context: SparkContext) -> None:
    """Sends the package `jobs` to the executors, so that tasks find its modules in this worker's version. If it came
    from an archive, `spark-submit --py-files` has sent it already."""
    folder = Path(jobs.__path__[0])
    if not folder.is_dir():
        return
    session: Any = context
    # Spark serves the file to executors that start later, so it must exist as long as the session.
    archive = Path(session._temp_dir, "jobs.zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for module in sorted(folder.rglob("*.py")):
            file.write(module, Path(folder.name, module.relative_to(folder)))
    context.addPyFile(str(archive))
    # The driver keeps its own modules, which are imported already.
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(f"/{archive.name}")]


def drop_jars(context: Any) -> None:
    """Removes the jars of `spark.jars.packages` from the path of Python modules, to which spark-submit adds them.

    For each task the Python worker would read the directories of all archives on that path (`invalidate_caches`):
    40 000 entries for Hudi's bundle, about 0.05 CPU seconds per task.
    """
    context._python_includes[:] = [name for name in context._python_includes if not name.endswith(".jar")]
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(".jar")]
