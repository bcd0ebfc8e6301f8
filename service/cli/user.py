"""The user of the command line, for the audit trail."""

from __future__ import annotations

import getpass
import os


def user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # The user id may have no name, for example in a container.
        name = f"user {os.getuid()}"
    return f"{name} on the command line"
