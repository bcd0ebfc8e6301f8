"""Names the folder with the tables that tests copy instead of writing them. All processes of a run share one folder."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

_VARIABLE = "TESTS_SHARED_TABLES"


def share() -> None:
    """Makes the folder for the processes that this one is about to start, which inherit its name."""
    os.environ[_VARIABLE] = str(_new_folder())


@cache
def folder() -> Path:
    """Returns the folder of the run; a process that runs alone makes its own."""
    shared = os.environ.get(_VARIABLE)
    return Path(shared) if shared else _new_folder()


def _new_folder() -> Path:
    path = tempfile.mkdtemp(prefix="tables-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return Path(path)
