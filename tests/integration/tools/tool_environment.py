"""A virtual environment for a tool whose pinned packages conflict with ours. The environment also has the client's
distribution."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from jobs.hudi.java import CACHE
from tests.support.guides import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = ROOT / "service" / "client"


@dataclass(frozen=True)
class ToolEnvironment:
    """`folder` is for the tool's files; `site` has the client, as installed by `pip install --no-deps`."""

    python: Path
    site: Path
    folder: Path

    @classmethod
    def of(cls, *requirements: str, folder: Path) -> ToolEnvironment:
        """Returns the environment. The first call on a machine installs the tool, which takes minutes."""
        home = CACHE / "tools" / "-".join(requirements).replace("==", "-")
        home.parent.mkdir(parents=True, exist_ok=True)
        python = home / "bin" / "python"
        with home.with_name(f"{home.name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            done = home / "complete"
            if not done.exists():
                _run(sys.executable, "-m", "venv", "--clear", home)
                _run(python, "-m", "pip", "install", "-q", *requirements)
                done.touch()
        site = folder / "site"
        _run(python, "-m", "pip", "install", "-q", "--no-deps", "--target", site, CLIENT)
        return cls(python, site, folder)

    def start(self, *arguments: object, log: IO[str] | None = None, **variables: str) -> subprocess.Popen[str]:
        """Starts a command. `log` gets its errors; without `log` they are part of its output, which is then read from
        the start on: a tool that logs much would wait for its reader."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "HOME") if name in os.environ}
        return (subprocess.Popen if log else _Read)(
            [str(self.python), *map(str, arguments)],
            cwd=self.folder,
            env={**kept, "PYTHONPATH": str(self.site), "NO_PROXY": "127.0.0.1", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log or subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: object, **variables: str) -> str:
        """Runs a command, asserts its success, and returns its output."""
        with self.start(*arguments, **variables) as process:
            out, _ = process.communicate(timeout=600)
        assert process.returncode == 0, out[-6000:]
        return out


class _Read(subprocess.Popen[str]):
    """A process whose output is read in the background."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        assert self.stdin is not None
        with suppress(BrokenPipeError):
            self.stdin.write(input or "")
            self.stdin.close()
        self.wait(timeout)
        self._reader.join()
        return "".join(self._lines), ""

    def so_far(self) -> str:
        return "".join(self._lines)

    def _read(self) -> None:
        assert self.stdout is not None
        self._lines.extend(self.stdout)


def _run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
