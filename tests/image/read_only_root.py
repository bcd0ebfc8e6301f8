"""Runs a command as a pod of the manifests does: its root is read-only, and only some folders can be written."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# The folder of the service, empty as a new volume. A machine has the folder /mnt but not always /data.
DATA = "/mnt/data"
# `$0` is the lake, and `$1` a folder to be read; both keep their paths below the new /tmp.
_MOUNTS = f"""
set -e
mount -t tmpfs tmpfs /mnt
mkdir {DATA} /mnt/lake /mnt/read
mount --bind "$0" /mnt/lake
mount --bind "$1" /mnt/read
mount -t tmpfs tmpfs /tmp
mkdir -p "$0" "$1"
mount --bind /mnt/lake "$0"
mount --bind -o ro /mnt/read "$1"
mount --bind / /
mount -o remount,bind,ro /
shift
cd {DATA}
exec "$@"
"""
# The image sets the same.
VARIABLES = {"HOME": DATA, "PYTHONDONTWRITEBYTECODE": "1"}


def in_read_only_root(lake: Path, read: Path, *words: object) -> list[str]:
    """Returns the command line that runs a command where only its data, /tmp and the lake can be written; `read` is
    another folder that the command sees. Skips the test where that is not allowed."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a root of its own needs root and unshare")
    unshared = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNTS]
    told = subprocess.run(
        [*unshared, str(lake), str(read), "sh", "-c", f"touch {DATA}/a /tmp/a {lake}/.probe && touch /usr/a"],
        capture_output=True,
        text=True,
    ).stderr
    assert told.strip().endswith("Read-only file system"), told
    assert told.count("\n") == 1, told
    return [*unshared, str(lake), str(read), *map(str, words)]
