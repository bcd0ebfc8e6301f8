"""A PostgreSQL server for the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = Path("/usr/lib/postgresql/15/bin")


# The server refuses to run as root.
_USER = "postgres" if os.geteuid() == 0 else None


@dataclass(frozen=True)
class Server:
    """A server on a socket in its folder."""

    folder: Path

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c max_connections=200"
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Ends the server as a crash does; `start` recovers the committed data."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def initialize(self) -> None:
        self._run("initdb", "-U", "gk", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    def url(self, database: str) -> str:
        return f"postgresql://gk@/{database}?host={self.folder}"

    def new_database(self, template: str = "template1") -> str:
        """Creates a database, empty or a copy of the template, and returns its URL. Nobody may be connected to the
        template."""
        import psycopg  # The package is an extra.

        name = f"gk_{uuid.uuid4().hex}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return self.url(name)

    def name_of(self, url: str) -> str:
        """Returns the name of the database with this URL."""
        return url.removeprefix("postgresql://gk@/").partition("?")[0]

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(PROGRAMS / program), "-D", str(self.folder / "data"), *arguments]
        subprocess.run(command, check=True, user=_USER, cwd=self.folder, stdout=subprocess.DEVNULL, env={"LC_ALL": "C"})


@contextmanager
def running() -> Iterator[Server]:
    """Yields a temporary server. Raises `FileNotFoundError` if PostgreSQL is not installed."""
    server = Server(Path(tempfile.mkdtemp(prefix="gk-pg-", dir="/tmp")))
    if _USER:
        shutil.chown(server.folder, _USER, _USER)
    server.initialize()
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)
