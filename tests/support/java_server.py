"""A Java server from PySpark's jars that tests can stop for a while and restart with its state."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tests.support.ports import accepts, await_start, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def java(*folders: Path) -> list[str]:
    """Returns Spark's Java, which `jobs.hudi.session` has found."""
    home = os.environ.get("JAVA_HOME")
    path = [*map(str, folders), f"{Path(pyspark.__file__).parent / 'jars'}/*"]
    return [f"{home}/bin/java" if home else "java", "-cp", ":".join(path)]


class JavaServer:
    """One server on a port of 127.0.0.1, with its own folder, which is removed at the end."""

    def __init__(self, name: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._command: list[str] = []
        self._is_serving: Callable[[int], bool] = accepts

    def start(self, command: list[str], is_serving: Callable[[int], bool] = accepts) -> None:
        self._command, self._is_serving = command, is_serving
        self._start()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Kills the server, and restarts it at the end of the block."""
        self._kill()
        try:
            yield
        finally:
            self._start()

    def end(self) -> None:
        self._kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        log = self.folder / "log"
        with log.open("ab") as output:
            process = subprocess.Popen(self._command, stdout=output, stderr=output, cwd=self.folder)
        self._process = process
        await_start(process, lambda: self._is_serving(self.port), log)

    def _kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
