"""A stand-in for the REST API of a Flink cluster, which answers as Flink 1.20 does, over real HTTP."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from tests.support.stand_in import Answer, Asked, StandIn


@dataclass
class FlinkCluster:
    """A cluster that needs `slow` polls for a stop with a savepoint. `fails` are the reasons why the next stops
    fail."""

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    slow: int = 1
    fails: list[str] = field(default_factory=list)
    hangs: bool = False
    broken: bool = False
    forgets_jobs: bool = False
    asked: list[tuple[str, str, Any]] = field(default_factory=list)

    def __enter__(self) -> FlinkCluster:
        self._triggers: dict[tuple[str, str], dict[str, Any]] = {}
        self._server = StandIn(self._given)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    @property
    def url(self) -> str:
        return self._server.url

    def _given(self, asked: Asked) -> Answer:
        body = json.loads(asked.body or b"null")
        self.asked.append((asked.method, asked.path, body))
        if self.hangs:
            time.sleep(3)
        status, answer = (500, "oh") if self.broken else self._answer(asked.method, asked.path, body)
        return Answer.of(answer, status)

    def run(self, job_id: str, name: str = "ingest", state: str = "RUNNING", ended: float = -1) -> None:
        self.jobs[job_id] = {
            "jid": job_id,
            "name": name,
            "state": state,
            "end-time": int(ended * 1000) if ended > 0 else -1,
        }

    @property
    def stops(self) -> list[Any]:
        return [body for method, path, body in self.asked if method == "POST" and path.endswith("/stop")]

    def _answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        match [method, *path.strip("/").split("/")]:
            case ["GET", "jobs", "overview"]:
                return 200, {"jobs": list(self.jobs.values())}
            case ["GET", "jobs", job_id] if job_id in self.jobs and not self.forgets_jobs:
                return 200, self.jobs[job_id]
            case ["POST", "jobs", job_id, "stop"] if self.jobs.get(job_id, {}).get("state") == "RUNNING":
                trigger = body["triggerId"]
                self._triggers.setdefault((job_id, trigger), {"left": self.slow, "folder": body.get("targetDirectory")})
                return 202, {"request-id": trigger}
            case ["POST", "jobs", _, "stop"]:
                return 409, {"errors": ["The job is not running.", "a stack trace"]}
            case ["GET", "jobs", job_id, "savepoints", trigger] if (job_id, trigger) in self._triggers:
                return 200, self._savepoint(job_id, self._triggers[job_id, trigger])
        return 404, {"errors": ["Not found."]}

    def _savepoint(self, job_id: str, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["left"] > 0:
            asked["left"] -= 1
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        if self.fails:
            cause = {"class": "java.util.concurrent.CompletionException", "stack-trace": f"{self.fails.pop(0)}\n\tat x"}
            return {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": cause}}
        self.jobs[job_id]["state"] = "FINISHED"
        location = f"{asked['folder'] or 'file:///default'}/savepoint-{job_id}"
        return {"status": {"id": "COMPLETED"}, "operation": {"location": location}}
