"""Calls the command line in this process as in a pipe, or starts it as a process, with a service that requires
tokens."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx

from service.access import token_store
from service.access.token import Role, issued
from service.db.engine import writing
from service.model.clock import utc_now
from tests.integration.control_plane.protocol_worker import Worker
from tests.integration.serving import Serving
from tests.support.commands import called
from tests.support.small_table import SmallTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from typer.testing import Result as Ended


class CommandLine:
    """Runs commands in this process without a terminal, as in a pipe."""

    def __init__(self, serving: Serving, folder: Path) -> None:
        self.serving = serving
        self.folder = folder
        self.environment: dict[str, str | None] = {
            "GROUNDSKEEPER_URL": serving.url,
            "GROUNDSKEEPER_TOKEN": self.token("Ada", Role.ADMIN),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }

    def token(self, name: str, role: Role, groups: tuple[str, ...] | None = None) -> str:
        bearer, token = issued(name, role, utc_now(), groups=groups)
        with writing(self.serving.engine) as connection:
            token_store.add(connection, token)
        return str(bearer)

    def table(self, name: str, *options: str) -> str:
        """Registers a new table, and returns its id."""
        SmallTable(self.folder / name).commit("20260101120000000", completed="20260101120001000")
        return str(self.json("tables", "add", str(self.folder / name), *options)["id"])

    def polled_table(self, name: str) -> str:
        """Registers a new table whose state no later poll of the service replaces: a test may store another one."""
        table_id = self.table(name)
        self.run("tables", "poll", name)
        return table_id

    def run(self, *arguments: str, code: int = 0, **environment: str | None) -> Ended:
        ended = called(arguments, {**self.environment, **environment})
        assert ended.exit_code == code, ended.stdout + ended.stderr
        assert "Traceback" not in ended.stderr
        return ended

    def json(self, *arguments: str, code: int = 0, **environment: str | None) -> Any:
        """Runs a command, asserts that stdout has only the API's JSON, and returns it."""
        return json.loads(self.run(*arguments, "--json", code=code, **environment).stdout)

    def refused(self, *arguments: str, code: int, **environment: str | None) -> str:
        ended = self.run(*arguments, code=code, **environment)
        assert ended.stdout == ""
        return ended.stderr

    @contextmanager
    def started(
        self, *arguments: str, stdout: int = subprocess.PIPE, **environment: str
    ) -> Iterator[subprocess.Popen[str]]:
        own = {name: value for name, value in self.environment.items() if value}
        process = subprocess.Popen(
            [sys.executable, "-m", "service.cli", *arguments],
            env={**os.environ, **own, **environment},
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def on_a_terminal(self, *arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
        """Yields the process, and the descriptor from which its terminal of 80 columns is read."""
        ours, theirs = pty.openpty()
        environment = {"TERM": "xterm-256color", "COLUMNS": "80", "NO_COLOR": "", **environment}
        try:
            with self.started(*arguments, stdout=theirs, **environment) as process:
                os.close(theirs)
                yield process, ours
        finally:
            os.close(ours)

    @contextmanager
    def worker(self) -> Iterator[Worker]:
        headers = {"Authorization": f"Bearer {self.token('w', Role.WORKER, ('default',))}"}
        with httpx.Client(base_url=self.serving.url, headers=headers) as client:
            yield Worker(client)  # type: ignore[arg-type]  # it calls `post` only


@contextmanager
def serving_command_line(folder: Path, **settings: str) -> Iterator[CommandLine]:
    """Runs a service whose tables are below `folder`. The service's policies start nothing, and it polls a table when
    it is registered and when it is asked to."""
    settings = {"AUTOMATIC": "false", "POLL_SECONDS": "3600", "ALLOWED_ROOTS": str(folder), **settings}
    with Serving(folder, **settings) as serving:
        yield CommandLine(serving, folder)
