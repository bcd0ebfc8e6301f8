"""Makes writes to folders fail in several ways, even for root."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Without these capabilities root may do only what the permissions of files allow, like any user.
_WITHOUT = "--bounding-set=-dac_override,-dac_read_search"


def powerless(*command: str) -> list[str]:
    """Returns a command that runs `command` without root's power to ignore the permissions of files."""
    if os.geteuid() != 0:
        return list(command)
    try:
        subprocess.run(["setpriv", _WITHOUT, "--inh-caps=-all", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"root cannot give its power away here: {error}")
    return ["setpriv", _WITHOUT, "--inh-caps=-all", *command]


@contextmanager
def immutable(folder: Path) -> Iterator[None]:
    """Lets nobody create or remove anything directly in the folder (EPERM); folders below it are not affected."""
    _run("chattr", "+i", str(folder))
    try:
        yield
    finally:
        _run("chattr", "-i", str(folder))


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Makes all writes below the folder fail with EROFS."""
    _run("mount", "--bind", str(folder), str(folder))
    try:
        _run("mount", "-o", "remount,ro,bind", str(folder))
        yield
    finally:
        _run("umount", "--lazy", str(folder))


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mounts a small file system, which is soon full (ENOSPC), and removes it with its content afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    try:
        yield
    finally:
        _run("umount", "--lazy", str(folder))


def fill(folder: Path) -> None:
    with (folder / "filling").open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            return


def _run(*command: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip(f"there is no {command[0]}")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{' '.join(command)}: {error.stderr.strip()}")
