"""Files that only their owner may read and write, with any umask. The rights of the folder are not changed."""

from __future__ import annotations

import logging
import os
import secrets
import stat
from pathlib import Path

log = logging.getLogger(__name__)

MODE = 0o600


def create(path: Path, content: bytes = b"") -> None:
    """Creates the file unless one exists. Raises OSError.

    The file is written under another name and then linked, so that no process reads an incomplete file, and only one
    process creates it. An existing file is never opened, because closing it would release the locks that SQLite holds
    on it in this process.
    """
    if path.exists():
        return
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink()


def tighten(path: Path) -> None:
    """Removes the rights of group and others from a file, if the file exists. Logs a warning if that is not possible,
    for example because another user owns the file."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & ~MODE:
            path.chmod(mode & MODE)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("%s cannot be protected from other users: %s", path, error.strerror)
