"""The client of the service's worker protocol, for one or several URLs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import httpx

from jobs import tracing
from jobs.contract import VERSION, Heartbeat, HeartbeatAnswer, LogLine, Result, WorkerInfo, WorkOrder
from jobs.errors import LeaseLostError

LEASE_WAIT_SECONDS = 20
_ANSWER_SECONDS = 15.0
# Status codes of a proxy or replica that cannot serve now; another replica may be able to.
_AWAY = {httpx.codes.BAD_GATEWAY, httpx.codes.SERVICE_UNAVAILABLE, httpx.codes.GATEWAY_TIMEOUT}

Leased = tuple[WorkOrder, float]
"""A work order, and the seconds by which each heartbeat extends its lease."""


class ServiceUnreachableError(ConnectionError):
    """The service is unreachable, which is a reason to try again.

    The error has a type of its own, because py4j raises plain connection errors when the JVM dies.
    """


class Service:
    """The service's worker protocol. Each call raises `ServiceUnreachableError` if no replica gives a valid answer.

    `urls` are the addresses of replicas on one database: after a failed call the client uses the next one. Several
    threads may use one client.
    """

    def __init__(self, urls: Sequence[str], token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # All URLs have to be tried before a lease ends.
        self._heartbeat_seconds = max(3.0, _ANSWER_SECONDS / len(urls))
        connect = 10 if len(urls) == 1 else 3
        self._replicas = [
            httpx.Client(base_url=url, headers=headers, timeout=httpx.Timeout(_ANSWER_SECONDS, connect=connect))
            for url in urls
        ]
        self._at = 0
        self._of_thread = threading.local()

    def announce(self, worker_id: str, info: WorkerInfo) -> None:
        """Sends the properties of this worker and a sign of life, without requesting a job."""
        body = {"worker_id": worker_id, "worker": info.to_json()}
        answer = self._post("/v1/worker/announcements", body, seconds=self._heartbeat_seconds)
        # A service of an older version lacks this path, and learns of its workers by their requests for jobs.
        if answer.status_code != httpx.codes.NOT_FOUND:
            self._checked(answer)

    def lease(self, worker_id: str, info: WorkerInfo, *, only_submitted: bool = False) -> Leased | None:
        """Waits a while for a job."""
        body = {
            "worker_id": worker_id,
            "wait_seconds": LEASE_WAIT_SECONDS,
            "only_submitted": only_submitted,
            "version": VERSION,
            "worker": info.to_json(),
            "request_id": self._request_id(),
        }
        answer = self._checked(self._post("/v1/worker/leases", body, seconds=LEASE_WAIT_SECONDS + 10))
        self._of_thread.request_id = None
        return None if answer.status_code == httpx.codes.NO_CONTENT else _leased(answer.json())

    def heartbeat(self, worker_id: str, job_id: str, heartbeat: Heartbeat) -> HeartbeatAnswer:
        body = {**heartbeat.to_json(), "worker_id": worker_id}
        path = f"/v1/worker/leases/{job_id}/heartbeat"
        answer = self._checked(self._post(path, body, seconds=self._heartbeat_seconds))
        return HeartbeatAnswer(answer.json()["answer"])

    def finish(
        self,
        worker_id: str,
        order: WorkOrder,
        result: Result,
        log: Sequence[LogLine] = (),
        *,
        takes_next: WorkerInfo | None = None,
    ) -> Leased | None:
        """Ends the attempt. A worker that `takes_next` gets the next job with the answer, if one is due. A service of
        an older version never sends one. The call may be repeated if the service was unreachable. Raises
        `LeaseLostError` when another attempt holds the job."""
        body: dict[str, object] = {
            "worker_id": worker_id,
            "attempt": order.attempt,
            "result": result.to_json(),
            "log": [line.to_json() for line in log],
        }
        if takes_next:
            body["next"] = {"worker": takes_next.to_json(), "request_id": self._request_id()}
        answer = self._post(f"/v1/worker/leases/{order.job_id}/result", body, seconds=LEASE_WAIT_SECONDS + 10)
        if answer.status_code == httpx.codes.CONFLICT:
            raise LeaseLostError
        following = self._checked(answer).json().get("next")
        if takes_next:
            self._of_thread.request_id = None
        return _leased(following) if following else None

    def _request_id(self) -> str:
        """Returns the id of the calling thread's request for a job. The id stays the same until an answer has come: if
        one was lost, the service sends the same job again."""
        known: str | None = getattr(self._of_thread, "request_id", None)
        self._of_thread.request_id = known or uuid4().hex
        return str(self._of_thread.request_id)

    def _post(self, path: str, body: object, *, seconds: float) -> httpx.Response:
        """Returns the answer of the first replica that can serve, or else the last answer that any replica gave."""
        answer, failure, first = None, "", self._at
        trace = tracing.current()
        headers = {"traceparent": trace} if trace else {}
        for number in range(len(self._replicas)):
            at = (first + number) % len(self._replicas)
            replica = self._replicas[at]
            try:
                limits = httpx.Timeout(seconds, connect=replica.timeout.connect)
                answer = replica.post(path, json=body, headers=headers, timeout=limits)
            except httpx.HTTPError as error:
                failure = str(error) or type(error).__name__
                continue
            if answer.status_code not in _AWAY:
                self._at = at
                return answer
        if answer is None:
            raise ServiceUnreachableError(failure)
        return answer

    def _checked(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        raise ServiceUnreachableError(f"{answer.request.url.path} answered {answer.status_code}: {answer.text[:200]}")


def _leased(data: dict[str, Any]) -> Leased:
    return WorkOrder.from_json(data["plan"]), float(data["lease_seconds"])
