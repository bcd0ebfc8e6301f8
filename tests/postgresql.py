"""A PostgreSQL server of the tests' own."""

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

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = Path("/usr/lib/postgresql/15/bin")


@dataclass(frozen=True)
class Server:
    """Reached by a socket in its folder."""

    folder: Path

    def url(self, database: str) -> str:
        return f"postgresql://gk@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The URL of an empty one."""
        name = f"gk_{uuid.uuid4().hex}"
        url = self.url("postgres").replace("postgresql://", "postgresql+psycopg://")
        admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        admin.dispose()
        return self.url(name)


@contextmanager
def running() -> Iterator[Server]:
    """A throw-away server. Raises `FileNotFoundError` where PostgreSQL is not installed."""
    # The server refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="gk-pg-", dir="/tmp"))
    if user:
        shutil.chown(folder, user, user)
    data = str(folder / "data")

    def run(program: str, *arguments: str) -> None:
        command = [str(PROGRAMS / program), "-D", data, *arguments]
        subprocess.run(command, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL, env={"LC_ALL": "C"})

    run("initdb", "-U", "gk", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=200"
    run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield Server(folder)
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)
