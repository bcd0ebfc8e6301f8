"""Tests two calls at the same time, one of them in a forked process."""

from __future__ import annotations

import os
import threading

import pytest

from service.simulation.side_by_side import both


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def test_both_calls_are_made_in_processes_of_their_own() -> None:
    first, second = both(os.getpid, os.getpid)
    assert first != second == os.getpid()
    assert both(lambda: "x" * 10**6, lambda: "y") == ("x" * 10**6, "y")


def test_a_call_whose_process_ends_is_made_again_here() -> None:
    here = os.getpid()

    def abort_elsewhere() -> int:
        if os.getpid() != here:
            os.abort()
        return 1

    assert both(abort_elsewhere, lambda: 2) == (1, 2)


def test_a_call_that_fails_here_ends_the_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    forked, fork = [], os.fork

    def fork_and_record() -> int:
        forked.append(fork())
        return forked[-1]

    def second() -> int:
        raise ValueError("no")

    monkeypatch.setattr(os, "fork", fork_and_record)
    with pytest.raises(ValueError, match="no"):
        both(lambda: threading.Event().wait(600), second)
    with pytest.raises(ChildProcessError):
        os.waitpid(forked[0], os.WNOHANG)


def test_nothing_is_forked_beside_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert both(os.getpid, os.getpid) == (os.getpid(), os.getpid())
