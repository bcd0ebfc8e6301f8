"""Tests when a delegation token of HDFS is renewed, with a name node that does nothing else and a clock of its own."""

from __future__ import annotations

import threading
import time

import pytest

from jobs.hudi.delegation_tokens import _keep, _Token

LIFETIME, INTERVAL = 1000.0, 100.0


class NameNode(threading.Event):
    """The event is the end of the table, at `closes`, and its waits are the clock. `failures` are the numbers of the
    renewals that fail. A token that was not renewed in time is forgotten."""

    def __init__(self, failures: tuple[int, ...] = (), closes: float = LIFETIME * 2) -> None:
        super().__init__()
        self.now, self.expires, self.asked = 0.0, INTERVAL, 0
        self.failures, self.closes = failures, closes

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.now += timeout
        return self.now >= self.closes

    def renew(self) -> int:
        self.asked += 1
        if self.asked in self.failures or self.now >= self.expires:
            raise ConnectionError("no answer")
        self.expires = min(self.now + INTERVAL, LIFETIME)
        return int(self.expires * 1000)


def keep(node: NameNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: node.now)
    _keep(_Token("text", 0, int(LIFETIME * 1000)), node.renew, node)


@pytest.mark.parametrize("failures", [(), (3,), (3, 4)])
def test_a_token_is_renewed_before_it_expires_until_its_lifetime_ends(
    failures: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = NameNode(failures)
    keep(node, monkeypatch)
    assert node.expires == LIFETIME
    assert node.asked <= 20


def test_a_token_that_has_ended_and_one_of_a_closed_table_are_not_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = NameNode(tuple(range(3, 100)))
    keep(ended, monkeypatch)
    assert ended.now < INTERVAL * 3
    closed = NameNode(closes=INTERVAL * 2)
    keep(closed, monkeypatch)
    assert closed.expires < INTERVAL * 3
