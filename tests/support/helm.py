"""Finds the program `helm` on the machine, or else builds it from the Go module, which takes minutes once."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from functools import cache

import pytest

from jobs.hudi.java import CACHE

_VERSION = "v3.22.0"


@cache
def program() -> str:
    """Returns its path. Skips the test on a machine with neither Helm nor Go."""
    if found := shutil.which("helm"):
        return found
    go = shutil.which("go")
    if go is None:
        pytest.skip("neither helm nor go is installed")
    folder = CACHE / "tools" / f"helm-{_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "building.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not (folder / "helm").exists():
            built = subprocess.run(
                [go, "install", f"helm.sh/helm/v3/cmd/helm@{_VERSION}"],
                env={**os.environ, "GOBIN": str(folder)},
                capture_output=True,
                text=True,
            )
            assert built.returncode == 0, built.stderr[-2000:]
    return str(folder / "helm")
