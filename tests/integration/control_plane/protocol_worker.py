"""A worker's side of the REST protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.contract import Heartbeat, LogLine, Progress, Result, WorkOrder

if TYPE_CHECKING:
    from fastapi.testclient import TestClient


class Worker:
    """Makes the same calls as `jobs.worker`."""

    def __init__(self, client: TestClient, name: str = "w1") -> None:
        self._client = client
        self._name = name

    def lease(self) -> WorkOrder | None:
        answer = self._client.post("/v1/worker/leases", json={"worker_id": self._name, "wait_seconds": 0})
        assert answer.status_code in (200, 204), answer.text
        if answer.status_code == 204:
            assert answer.content == b""
            return None
        assert answer.json()["lease_seconds"] == 30
        return WorkOrder.from_json(answer.json()["plan"])

    def must_lease(self) -> WorkOrder:
        plan = self.lease()
        assert plan is not None
        return plan

    def beat(self, plan: WorkOrder, *instants: str, progress: Progress | None = None) -> str:
        answer = self._client.post(
            f"/v1/worker/leases/{plan.job_id}/heartbeat",
            json=Heartbeat(plan.attempt, progress, instants).to_json(),
        )
        assert answer.status_code == 200, answer.text
        return str(answer.json()["answer"])

    def log(self, plan: WorkOrder, *lines: LogLine) -> None:
        answer = self._client.post(
            f"/v1/worker/leases/{plan.job_id}/heartbeat", json=Heartbeat(plan.attempt, log=lines).to_json()
        )
        assert answer.status_code == 200, answer.text

    def report(self, plan: WorkOrder, result: Result, **more: Any) -> Any:
        body = {"attempt": plan.attempt, "result": result.to_json(), **more}
        return self._client.post(f"/v1/worker/leases/{plan.job_id}/result", json=body)

    def report_and_lease(self, plan: WorkOrder, result: Result) -> WorkOrder | None:
        """Reports the result, and returns the next job that came with the answer."""
        answer = self.report(plan, result, worker_id=self._name, next={"worker": {}})
        assert answer.status_code == 200, answer.text
        following = answer.json()["next"]
        return WorkOrder.from_json(following["plan"]) if following else None
