"""Everything that a client raises. Errors of the service are in `problems`, a class for each type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from groundskeeper_client.generated.models import JobDetail


class ClientError(Exception):
    """The root."""


class UnreachableError(ClientError):
    """There was no answer. `was_sent` tells whether the service may have got the call, and done it."""

    def __init__(self, message: str, *, was_sent: bool) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class NoAnswerError(ClientError):
    """There was an answer, but not one of Groundskeeper, or not of a version that this client understands."""


class ApiError(ClientError):
    """The service's answer is a problem document (RFC 9457). `type` is the last part of its type, such as
    `job-not-found`; `members` are those beside the standard's."""

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
    """A job had not ended in time. The job goes on."""

    def __init__(self, job: JobDetail, seconds: float) -> None:
        self.job = job
        super().__init__(f"{job.kind.value} {job.id} is still {job.state.value} after {seconds:g} s")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
