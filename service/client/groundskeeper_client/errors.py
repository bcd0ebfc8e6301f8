"""The errors that a client raises. Errors of the service are in `problems`, a class for each type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from groundskeeper_client.generated.models import JobDetail


class ClientError(Exception):
    """The base class of all errors of a client."""


class UnreachableError(ClientError):
    """There was no answer. `was_sent` says whether the service may have received and executed the call."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class NoAnswerError(ClientError):
    """The answer does not come from Groundskeeper, or comes from a version that this client does not understand.
    `status` is the status of an unsuccessful answer. It is None if a proxy or another server has answered with
    success."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ApiError(ClientError):
    """The service's answer is a problem document (RFC 9457). `type` is the last part of the document's type, such as
    `job-not-found`. `members` are the members that the standard does not define."""

    type: str = ""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = dict(document)
        self.type = str(document.get("type") or "").rpartition("/")[2]
        self.title = str(document.get("title") or "")
        self.status = _number(document.get("status"))
        self.detail = str(document.get("detail") or "")
        self.hint = str(document.get("hint") or "")
        standard = {"type", "title", "status", "detail", "hint", "instance"}
        self.members = {name: value for name, value in document.items() if name not in standard}
        super().__init__(": ".join(dict.fromkeys(text for text in (self.title, self.detail, self.hint) if text)))


class JobEndedError(ClientError):
    """A job ended without success. `job` has its state and its error."""

    def __init__(self, job: JobDetail) -> None:
        self.job = job
        because = f": {job.error.title}: {job.error.detail}" if job.error else ""
        hint = f" {job.error.hint}" if job.error and job.error.hint else ""
        super().__init__(f"{job.kind.value} {job.id} {job.state.value}{because}{hint}")


class WaitedTooLongError(ClientError):
    """A job has not ended in time. The job goes on."""

    def __init__(self, job: JobDetail, seconds: float) -> None:
        self.job = job
        super().__init__(f"{job.kind.value} {job.id} is still {job.state.value} after {seconds:g} s")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
