"""Runs `groundskeeper serve` in its own process, on a database to which a test may also write."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from service.db.engine import open_engine
from tests.integration.control_plane.databases import new_sqlite
from tests.support.forked_service import Forked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import sqlalchemy as sa

# All services of a database share this key.
_KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()


def eventually(holds: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


class Serving:
    """A service without workers. After a kill and a restart it has the same folder, and so the same database and
    key."""

    def __init__(
        self,
        folder: Path,
        *,
        database: str | None = None,
        environment: Mapping[str, str] | None = None,
        **settings: str,
    ) -> None:
        """`database` is the URL of the test, and of the service unless `settings` has another one. The program is
        started instead of forked if `environment` has other variables than our settings."""
        file = folder / "groundskeeper.db"
        if not (database or file.exists()):
            new_sqlite(file)
        self.engine: sa.Engine = open_engine(database or f"sqlite:///{file}")
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GROUNDSKEEPER_")}
        local = {"GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS": "127.0.0.1"}
        if database:
            local |= {"GROUNDSKEEPER_DATABASE": database, "GROUNDSKEEPER_SECRET_KEYS": _KEY}
        own = {f"GROUNDSKEEPER_{name}": value for name, value in settings.items()}
        self._environment = {**clean, **local, **own, **(environment or {})}
        self._folder = folder
        self._is_of_its_own = environment is not None
        self.log = folder / "serve.log"
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = self._started("--workers", "0", "--port", "0", stderr=log.fileno())
        assert self.process.stdout is not None
        match = re.search(r"ready at (http://\S+)", self.process.stdout.readline())
        assert match, self.log.read_text()
        self.url = match.group(1)

    def _started(self, *arguments: str, stderr: int) -> Forked | subprocess.Popen[str]:
        if not self._is_of_its_own:
            return Forked("serve", *arguments, cwd=self._folder, env=self._environment, stderr=stderr)
        return subprocess.Popen(
            [sys.executable, "-m", "service.cli", "serve", *arguments],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def stop(self) -> int:
        """Asks the service to end, and returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=30)
        return self.process.returncode

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()
        self.engine.dispose()
