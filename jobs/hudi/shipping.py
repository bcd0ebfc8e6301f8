"""Sends the package `jobs` to Spark's executors: tasks find its modules there in this worker's version."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jobs

if TYPE_CHECKING:
    from pyspark import SparkContext


def ship_jobs(context: SparkContext) -> None:
    """Sends the package to the executors. If it came from an archive, `spark-submit --py-files` has sent it already."""
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
