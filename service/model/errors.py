"""The hierarchy of errors. Each type names what happened; `detail` says why in this case, `hint` what to do about it.
HTTP status codes are not known here: `service.api.statuses` maps the types to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.contract import Problem
from jobs.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_DETAIL = 4000


class GroundskeeperError(Exception):
    """Base of all errors that a user may see.

    `extensions` are further members of the problem document (RFC 9457, section 3.2), such as counts or the id of the
    conflicting row.
    """

    type = "internal-error"
    title = "Something went wrong inside Groundskeeper"
    hint = "Check the service's log, and report the error if it happens again."

    def __init__(
        self, detail: str = "", *, hint: str | None = None, extensions: Mapping[str, Any] | None = None
    ) -> None:
        # The text may come from a library, a table or a storage. It is shown, stored, sent in events and logged.
        self.detail = _storable(redacted(detail))
        super().__init__(self.detail or self.title)
        self.hint = self.hint if hint is None else hint
        self.extensions = dict(extensions or {})

    def problem(self) -> Problem:
        return Problem(type=self.type, title=self.title, detail=self.detail, hint=self.hint)


def _storable(detail: str) -> str:
    """Returns the text without what a database refuses: it may quote a name from a table."""
    return detail.replace("\0", "").encode(errors="replace").decode()[:_MAX_DETAIL]


class NotFoundError(GroundskeeperError):
    """The resource that the caller names does not exist."""


class TableNotFoundError(NotFoundError):
    type = "table-not-found"
    title = "No table with this id is registered"
    hint = "GET /v1/tables lists the registered tables; POST /v1/tables registers one."


class JobNotFoundError(NotFoundError):
    type = "job-not-found"
    title = "No job with this id is known"
    hint = "GET /v1/jobs lists the jobs."


class CallbackUnknownTableError(NotFoundError):
    type = "callback-unknown-table"
    title = "No table is registered with the base path of this callback"
    hint = "Register the table (POST /v1/tables; GET lists base paths), or switch off the writer's callback."


class SnapshotNotTakenError(NotFoundError):
    type = "snapshot-not-taken"
    title = "The table has not been polled yet"
    hint = "The first poll follows the registration within moments; `detail` says if it fails."


class IncidentNotFoundError(NotFoundError):
    type = "incident-not-found"
    title = "No incident with this id is known"
    hint = "GET /v1/incidents lists the incidents."


class WebhookNotFoundError(NotFoundError):
    type = "webhook-not-found"
    title = "No webhook with this id is known"
    hint = "GET /v1/webhooks lists the webhooks."


class DeliveryNotFoundError(NotFoundError):
    type = "delivery-not-found"
    title = "No delivery with this id is known"
    hint = "GET /v1/webhooks/{id}/deliveries lists the deliveries of a webhook; old ones are removed."


class RouteNotFoundError(NotFoundError):
    type = "route-not-found"
    title = "No resource has this address"
    hint = "The API documentation at /docs lists all addresses."


class TokenNotFoundError(NotFoundError):
    type = "token-not-found"
    title = "No token with this id is known"
    hint = "`groundskeeper token list` lists the tokens."


class PolicyNotFoundError(NotFoundError):
    type = "policy-not-found"
    title = "No policy is set at this level"
    hint = "GET /v1/policies lists the policies of patterns. Without a policy the defaults and the other levels apply."


class InvalidError(GroundskeeperError):
    """The request is invalid, whatever the state of the table."""


class ParamsInvalidError(InvalidError):
    """`extensions["errors"]` lists the problems, each with `field` and `message`."""

    type = "params-invalid"
    title = "A value in this request is missing, unknown or out of range"
    hint = "See `errors`; the API documentation at /docs lists the parameters of each call."


class OptionNotAllowedError(InvalidError):
    """`extensions["errors"]` lists the refused options, each with `field` and `message`."""

    type = "option-not-allowed"
    title = "An option of the table is not allowed"
    hint = "Remove it, or PATCH the table with other options."


class LockUnavailableError(InvalidError):
    type = "lock-unavailable"
    title = "No server of the table's lock can be reached"
    hint = "See that it runs, and that its address is that of the writers' lock. Then send the request again."


class FlinkHostNotAllowedError(InvalidError):
    type = "flink-host-not-allowed"
    title = "The service may not call this Flink cluster"
    hint = (
        "An administrator can allow its host in GROUNDSKEEPER_FLINK_HOSTS (`host` or `host:port`, separated by commas)."
        " Otherwise stop the Flink job yourself when a job waits for that, and POST /v1/jobs/{id}/writers-stopped."
    )


class NotAHudiTableError(InvalidError):
    type = "not-a-hudi-table"
    title = "There is no Hudi table at this path"
    hint = "A Hudi table has a file .hoodie/hoodie.properties below its base path."


class PathNotFoundError(InvalidError):
    type = "path-not-found"
    title = "The path does not exist, or the service cannot read it"
    hint = "Check the spelling, and that the service has the storage options to read it."


class PathForbiddenError(GroundskeeperError):
    type = "path-not-allowed"
    title = "The path is not below one of the allowed roots"
    hint = "An administrator can extend GROUNDSKEEPER_ALLOWED_ROOTS."


class StorageUnsupportedError(InvalidError):
    type = "storage-not-supported"
    title = "This kind of storage is not supported"
    hint = "Supported are local paths, S3 (s3a:), HDFS (hdfs:), Google Cloud Storage (gs:) and Azure (abfss:)."


class StorageError(GroundskeeperError):
    type = "storage-error"
    title = "Reading the table's storage failed"
    hint = "Check that the storage is up and that the service may read it, then try again."


class FlinkError(GroundskeeperError):
    type = "flink-error"
    title = "The Flink cluster did not respond as expected"
    hint = "Check `writers.flink` of the table, and that the cluster is up."


class PathOutsideTableError(StorageError):
    type = "path-outside-table"
    title = "A path of the table leads out of it"
    hint = "A table is read without following links or properties that lead out of it: see who wrote them."


class ReadTimedOutError(StorageError):
    type = "table-too-slow"
    title = "Reading the table took too long"
    hint = "Check the storage. A registered table is polled again, at growing intervals while the failure lasts."


class ReaderCrashedError(StorageError):
    type = "table-not-readable"
    title = "Reading the table ended the process that read it"
    hint = "A file of the table is damaged, or was made to do harm: see what wrote the newest files below `.hoodie`."


class PollFailedError(StorageError):
    type = "look-failed"
    title = "The poll of the table failed"
    hint = "See the service's log. The table is polled again, at growing intervals while the failure lasts."


class ReadersBusyError(GroundskeeperError):
    type = "too-many-reads"
    title = "Too many tables are being read at this moment"
    hint = "Try again in a moment. If it lasts, look for tables on storage that does not answer."


class TableUnsupportedError(InvalidError):
    type = "table-not-supported"
    title = "Groundskeeper does not support this kind of Hudi table"
    hint = "Table versions 6, 8 and 9 with Parquet base files are supported."


class ConflictError(GroundskeeperError):
    """The request is valid, but not in the current state."""


class TableAlreadyRegisteredError(ConflictError):
    type = "table-already-registered"
    title = "A table with this base path is already registered"
    hint = "Use the registered table (`table_id`), or unregister it first."


class BucketIndexContradictedError(ConflictError):
    type = "bucket-index-contradicted"
    title = "The record keys in the table contradict the claimed bucket index"
    hint = "Claim the number of buckets and the hash fields that the writers use (`hoodie.bucket.index.*`)."


class TableBusyError(ConflictError):
    type = "table-busy"
    title = "The table has active jobs"
    hint = "Wait for the jobs to end, or cancel them first."


class JobConflictError(ConflictError):
    type = "job-conflict"
    title = "This job conflicts with another active job of the table"
    hint = "Wait for that job (`job_id`) to end, or cancel it first."


class IncidentOpenError(ConflictError):
    """`extensions["incident_ids"]` are those that prevent the job."""

    type = "incident-open"
    title = "Rows of the table are astray, and this job might delete what their repair needs"
    hint = "Run a `repair` job first, or close the incidents (POST /v1/incidents/{id}/close) if nothing is wrong."


class IncidentClosedError(ConflictError):
    type = "incident-already-closed"
    title = "The incident is already closed"
    hint = "GET /v1/incidents shows its state and why it was closed."


class JobNotWaitingError(ConflictError):
    type = "job-not-waiting"
    title = "This job is not waiting for writers to be stopped"
    hint = "GET /v1/jobs/{id} shows its state, and `hand_over` whether it waits."


class FenceLosesFlinkError(ConflictError):
    type = "fence-loses-flink-batches"
    title = "A Flink job writes this table, and fencing would lose its batch"
    hint = (
        "Leave `on_active_writers` at `wait`: the job waits until the Flink job has been stopped with a savepoint."
        ' If no Flink job writes the table any more, PATCH it with `{"writers": {"engines": [...]}}`.'
    )


class JobNotCancellableError(ConflictError):
    type = "job-already-ended"
    title = "The job has already ended"
    hint = "Only queued, leased and running jobs can be cancelled."


class IdempotencyKeyReusedError(ConflictError):
    type = "idempotency-key-reused"
    title = "This Idempotency-Key was used for another job of this table"
    hint = "Use a new key for a new job; repeat the same request to get the first response again (`job_id`)."


class LeaseLostError(ConflictError):
    type = "lease-lost"
    title = "This attempt no longer holds the job"
    hint = "Stop and write nothing: another attempt may be running, or the job has ended."


class UnauthenticatedError(GroundskeeperError):
    type = "unauthenticated"
    title = "This call needs a valid bearer token"
    hint = "Send `Authorization: Bearer <token>`; `groundskeeper token create` creates one."


class ForbiddenError(GroundskeeperError):
    type = "forbidden"
    title = "The token's role does not allow this call"
    hint = "Ask an administrator for a token with a higher role."


class MethodNotAllowedError(GroundskeeperError):
    type = "method-not-allowed"
    title = "This address does not support this method"
    hint = "The header `Allow` lists the supported methods."


class RequestTooLargeError(GroundskeeperError):
    type = "request-too-large"
    title = "The body of this request is too large"
    hint = "An administrator can raise GROUNDSKEEPER_MAX_REQUEST_BYTES."


class TooManyStreamsError(GroundskeeperError):
    type = "too-many-streams"
    title = "Too many event streams are open"
    hint = "Close a stream, or request pages: GET /v1/events with `Accept: application/json`."


class DatabaseUnavailableError(GroundskeeperError):
    type = "database-unavailable"
    title = "The service's database cannot be used"
    hint = "Check that the database is up and that GROUNDSKEEPER_DATABASE points to it, then try again."


class DatabaseDamagedError(DatabaseUnavailableError):
    type = "database-damaged"
    title = "The service's database is damaged"
    hint = "Stop the service, and restore the database from a backup, or what `sqlite3 FILE .recover` can read of it."


class NotReadyError(GroundskeeperError):
    type = "not-ready"
    title = "The service is not ready for calls yet"
    hint = "Wait a moment; `groundskeeper migrate` brings the database up to date."


class SettingsError(GroundskeeperError):
    type = "settings-invalid"
    title = "The service cannot start with these settings"
    hint = ""
