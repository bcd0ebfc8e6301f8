"""Tests a worker with several URLs of the service, on real sockets."""

from __future__ import annotations

import socket

import pytest

from jobs.contract import WorkerInfo
from jobs.worker.service import Service, ServiceUnreachableError
from tests.support.stand_in import Answer, Asked, StandIn


class Replica(StandIn):
    """Answers every call with `status`, and counts them."""

    def __init__(self, status: int = 204) -> None:
        self.status = status
        self.calls = 0
        super().__init__(self._answer)

    def _answer(self, _: Asked) -> Answer:
        self.calls += 1
        return Answer(204) if self.status == 204 else Answer.of({"title": "no"}, self.status)


@pytest.fixture
def nobody() -> str:
    """The URL of a closed port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_call_goes_to_the_next_url_when_one_is_unreachable_and_stays_there(nobody: str) -> None:
    with Replica() as one, Replica() as other:
        service = Service([nobody, one.url, other.url], None)
        for _ in range(3):
            service.announce("w1", WorkerInfo())
        assert (one.calls, other.calls) == (3, 0)
        one.status = 503
        for _ in range(3):
            assert service.lease("w1", WorkerInfo()) is None
        assert (one.calls, other.calls) == (4, 3)


def test_an_answer_that_every_replica_would_give_is_final() -> None:
    with Replica(403) as one, Replica() as other:
        with pytest.raises(ServiceUnreachableError, match="403"):
            Service([one.url, other.url], None).lease("w1", WorkerInfo())
        assert (one.calls, other.calls) == (1, 0)


def test_without_any_replica_the_call_fails_and_is_tried_again(nobody: str) -> None:
    with Replica(503) as one:
        service = Service([nobody, one.url], None)
        with pytest.raises(ServiceUnreachableError, match="503"):
            service.lease("w1", WorkerInfo())
        one.status = 204
        assert service.lease("w1", WorkerInfo()) is None
    with pytest.raises(ServiceUnreachableError):
        Service([nobody, nobody], None).announce("w1", WorkerInfo())


def test_a_service_of_an_older_version_needs_no_announcement() -> None:
    with Replica(404) as one:
        Service([one.url], None).announce("w1", WorkerInfo())
