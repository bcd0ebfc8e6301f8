"""The user of the command line, for the audit trail."""

from __future__ import annotations

import getpass
import os


def user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # The user id has no name, as in containers.
        name = f"user {os.getuid()}"
    return f"{name} on the command line"
