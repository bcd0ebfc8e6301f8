"""Client of one Flink cluster's REST API (1.15 and later; tested with 1.20)."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from service.model.table_errors import FlinkError

_TERMINAL = frozenset({"FINISHED", "CANCELED", "FAILED"})
_MOST_BYTES = 8 * 1024 * 1024
_NOT_FOUND = 404


@dataclass(frozen=True)
class FlinkJob:
    id: str
    name: str
    state: str  # Flink's `JobStatus`.
    ended_at: datetime | None = None  # None until the job ends.

    @property
    def has_ended(self) -> bool:
        return self.state in _TERMINAL


@dataclass(frozen=True)
class Savepoint:
    """The status of a savepoint; neither field is set while it is in progress."""

    location: str | None = None  # The savepoint is complete, and the job to be stopped with it has stopped.
    failure: str | None = None


class FlinkRest(AbstractContextManager["FlinkRest"]):
    """The client, which follows no redirects. Every call raises FlinkError if the cluster answers unexpectedly."""

    def __init__(self, rest_url: str, *, connect_seconds: float = 3.0, read_seconds: float = 10.0) -> None:
        self._url = rest_url.rstrip("/")
        # No proxies from the environment: only the allowed host may be called.
        self._client = httpx.Client(
            timeout=httpx.Timeout(read_seconds, connect=connect_seconds), follow_redirects=False, trust_env=False
        )

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def jobs(self) -> list[FlinkJob]:
        answer = self._get("/jobs/overview")
        try:
            return [_job(each) for each in (answer or {})["jobs"]]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FlinkError(f"{self._url}/jobs/overview is not a list of jobs: {_words(error)}.") from error

    def job(self, job_id: str) -> FlinkJob | None:
        """Returns None if the cluster does not know the job."""
        answer = self._get(f"/jobs/{job_id}")
        try:
            return _job(answer) if answer else None
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FlinkError(f"{self._url}/jobs/{job_id} is not a job: {_words(error)}.") from error

    def stop(self, job_id: str, *, trigger_id: str, folder: str | None) -> None:
        """Requests a stop with savepoint. A repeated `trigger_id` means the same stop (Flink 1.15 and later)."""
        body: dict[str, Any] = {"drain": False, "triggerId": trigger_id}
        if folder:
            body["targetDirectory"] = folder
        self._call("POST", f"/jobs/{job_id}/stop", body)

    def savepoint(self, job_id: str, trigger_id: str) -> Savepoint | None:
        """Returns None if the cluster does not know this trigger: it was never requested, or its result has expired."""
        answer = self._get(f"/jobs/{job_id}/savepoints/{trigger_id}")
        if answer is None:
            return None
        try:
            if answer["status"]["id"] != "COMPLETED":
                return Savepoint()
            operation = answer.get("operation") or {}
            if location := operation.get("location"):
                return Savepoint(location=str(location))
            cause = operation.get("failure-cause") or {}
            return Savepoint(
                failure=_first_line(str(cause.get("stack-trace") or cause.get("class") or "no reason given"))
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise FlinkError(f"{self._url} returned an invalid savepoint status: {_words(error)}.") from error

    def _get(self, path: str) -> dict[str, Any] | None:
        return self._call("GET", path)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Returns None for a GET that is answered with 404."""
        url = f"{self._url}{path}"
        content = b""
        try:
            with self._client.stream(method, url, json=body) as answer:
                for chunk in answer.iter_bytes():
                    content += chunk
                    if len(content) > _MOST_BYTES:
                        raise FlinkError(f"{url} returned more than {_MOST_BYTES} bytes.")
                status = answer.status_code
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:  # UnicodeError: the host has no encoding
            raise FlinkError(f"{url}: {type(error).__name__} {error}".strip() + ".") from error
        if status == _NOT_FOUND and method == "GET":
            return None
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not 200 <= status < 300:
            errors = found.get("errors") if isinstance(found, dict) else None
            reason = _first_line(str(errors[0])) if isinstance(errors, list) and errors else ""
            raise FlinkError(f"{url} returned {status}{': ' if reason else ''}{reason}.")
        if not isinstance(found, dict):
            raise FlinkError(f"{url} did not return a JSON object.")
        return found


def _job(data: dict[str, Any]) -> FlinkJob:
    ended = int(data.get("end-time") or -1)
    ended_at = datetime.fromtimestamp(ended / 1000, UTC) if ended > 0 else None
    return FlinkJob(str(data["jid"]), str(data.get("name", "")), str(data["state"]), ended_at)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:500]
