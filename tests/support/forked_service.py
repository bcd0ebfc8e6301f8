"""Starts `groundskeeper` by forking a process that has already imported it, because the import takes three CPU seconds.

Tests of the start or of Python's environment start the program instead.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MOST_BYTES = 1024 * 1024
# On a busy machine the import alone may take a minute.
_ASK_SECONDS = 300


class Forked:
    """One command with the members of `subprocess.Popen` that tests use."""

    def __init__(self, *arguments: str, cwd: Path, env: Mapping[str, str], stderr: int) -> None:
        self.returncode: int | None = None
        reading, writing = os.pipe()
        self._ending, ended = os.pipe()
        try:
            wanted = {"arguments": arguments, "cwd": str(cwd), "env": dict(env)}
            self.pid = _server().fork(wanted, [writing, stderr, ended])
        finally:
            os.close(writing)
            os.close(ended)
        self.stdout = os.fdopen(reading, "r")

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._ending], [], [], 0)[0]:
            self.returncode = int(os.read(self._ending, 16).decode() or "-9")
            os.close(self._ending)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._ending], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("groundskeeper", timeout or 0)
        return self.poll() or 0

    def communicate(self, timeout: float | None = None) -> None:
        """Waits for the end of the service; its last output is lost."""
        self.wait(timeout)
        self.stdout.close()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def ended(*arguments: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a command, and waits for its end."""
    with tempfile.TemporaryFile("w+") as errors:
        process = Forked(*arguments, cwd=cwd, env=env, stderr=errors.fileno())
        written = process.stdout.read()
        process.communicate(timeout=_ASK_SECONDS)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, process.wait(), written, errors.read())


class _Server:
    """The process that forks the services. The server ends with this process."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", __spec__.name, str(theirs.fileno())]
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self._ours.settimeout(_ASK_SECONDS)
        self._asking = threading.Lock()
        atexit.register(self._end)

    def fork(self, wanted: Mapping[str, object], descriptors: list[int]) -> int:
        """Forks a service, and returns its process id."""
        with self._asking:
            socket.send_fds(self._ours, [json.dumps(wanted).encode()], descriptors)
            return int(self._ours.recv(16))

    def _end(self) -> None:
        self._ours.close()
        self._process.wait()


@cache
def _server() -> _Server:
    return _Server()


def _serve(asked: socket.socket) -> None:
    # Imports all modules that `serve` imports, also those in its functions.
    import sqlalchemy as sa
    import uvicorn.protocols.http.httptools_impl  # noqa: F401

    import service.cli.main
    import service.cli.serving  # noqa: F401
    from service.api import app
    from service.delivery.http import trusted
    from tests.support.contexts import context_of

    # FastAPI takes half a CPU second to prepare the routes, which then stay prepared.
    app.create_app(context_of(sa.create_engine("sqlite://")))
    trusted()
    gc.collect()
    gc.freeze()
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    endings: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([asked, woken], [], [])
        if woken in ready:
            os.read(woken, 1024)
        _tell_of_ended(endings)
        if asked in ready:
            text, descriptors, _, _ = socket.recv_fds(asked, _MOST_BYTES, 3)
            if not text:
                return
            stdout, stderr, ended = descriptors
            pid = os.fork()
            if pid == 0:
                for each in (woken, waking, ended, *endings.values()):
                    os.close(each)
                asked.close()
                _run_program(json.loads(text), stdout, stderr)
            endings[pid] = ended
            os.close(stdout)
            os.close(stderr)
            asked.send(str(pid).encode())


def _tell_of_ended(endings: dict[int, int]) -> None:
    for pid in list(endings):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            # The parent may have ended.
            with suppress(BrokenPipeError):
                os.write(endings[pid], str(os.waitstatus_to_exitcode(status)).encode())
            os.close(endings.pop(pid))


def _run_program(wanted: dict[str, object], stdout: int, stderr: int) -> NoReturn:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor, number in ((stdout, 1), (stderr, 2)):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(wanted["env"])  # type: ignore[call-overload]
        time.tzset()
        os.chdir(str(wanted["cwd"]))
        if "serve" in wanted["arguments"]:  # type: ignore[operator]
            _fork_servers_of_readers()
        sys.argv = ["groundskeeper", *wanted["arguments"]]  # type: ignore[misc]
        from service.cli.main import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _fork_servers_of_readers() -> None:
    """Forks two processes that the service would otherwise start anew, and that would import the service again: the
    process that forks the readers of tables, and Python's tracker of resources."""
    from multiprocessing import forkserver, util

    start, util.spawnv_passfds = util.spawnv_passfds, _forked_python  # type: ignore[attr-defined]
    forkserver.ensure_running()
    util.spawnv_passfds = start  # type: ignore[attr-defined]


def _forked_python(_program: object, arguments: Sequence[str], kept: Sequence[int]) -> int:
    """Runs the code of `python -c` in a child, which keeps only those open files that an `exec` would keep."""
    pid = os.fork()
    if pid:
        return pid
    before = 3
    for each in sorted(kept):
        os.closerange(before, each)
        before = each + 1
    os.closerange(before, os.sysconf("SC_OPEN_MAX"))
    try:
        exec(arguments[-1])
    finally:
        os._exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
