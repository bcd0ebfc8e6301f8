"""Files that only their owner may read and write, whatever the umask. Their folder is left as it is."""

from __future__ import annotations

import logging
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

MODE = 0o600


def create(path: Path) -> None:
    """Creates an empty file unless one exists. Raises OSError."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, MODE))


def tighten(path: Path) -> None:
    """Takes the rights of group and others from a file, if it exists. Logs a warning where that is not possible, say
    because another user owns it."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & ~MODE:
            path.chmod(MODE)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("%s cannot be kept from other users: %s", path, error.strerror)
