"""The one tree of errors. Each type names what happened; `detail` says why in this case, `hint` what to do about it.

HTTP status codes are not known here: `service.api.statuses` maps the types to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.contract import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping


class GroundskeeperError(Exception):
    """Base of all errors that a user may see.

    `extensions` are further members of the problem document (RFC 9457, section 3.2), such as counts or the id of the
    row that stands in the way.
    """

    type = "internal-error"
    title = "Something went wrong inside Groundskeeper"
    hint = "Look into the service's log, and report it if it happens again."

    def __init__(
        self, detail: str = "", *, hint: str | None = None, extensions: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(detail or self.title)
        self.detail = detail
        self.hint = self.hint if hint is None else hint
        self.extensions = dict(extensions or {})

    def problem(self) -> Problem:
        return Problem(type=self.type, title=self.title, detail=self.detail, hint=self.hint)


class NotFoundError(GroundskeeperError):
    """What the caller names is not there."""


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
    hint = (
        "Register it with POST /v1/tables (GET lists them with their base paths), or switch the writer's callback off."
    )


class SnapshotNotTakenError(NotFoundError):
    type = "snapshot-not-taken"
    title = "The table has not been looked at yet"
    hint = "It is looked at within moments of its registration; `detail` says if that fails."


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
    hint = "GET /v1/webhooks/{id}/deliveries lists those of a webhook; old ones are removed after a while."


class RouteNotFoundError(NotFoundError):
    type = "route-not-found"
    title = "There is nothing at this address"
    hint = "The API documentation at /docs lists all addresses."


class TokenNotFoundError(NotFoundError):
    type = "token-not-found"
    title = "No token with this id is known"
    hint = "`groundskeeper token list` lists the tokens."


class PolicyNotFoundError(NotFoundError):
    type = "policy-not-found"
    title = "No policy is set here"
    hint = "GET /v1/policies lists those of patterns; where none is set, the defaults and the other levels count."


class InvalidError(GroundskeeperError):
    """What the caller asks for makes no sense, whatever the state of the table."""


class ParamsInvalidError(InvalidError):
    """`extensions["errors"]` lists what is wrong, each with `field` and `message`."""

    type = "params-invalid"
    title = "Something in this request is missing, unknown or out of range"
    hint = "See `errors`; the API documentation at /docs lists what each call takes."


class UrlNotAllowedError(InvalidError):
    type = "url-not-allowed"
    title = "No webhook may be sent to this URL"
    hint = "Take an https URL of a public address; GROUNDSKEEPER_WEBHOOK_ALLOWED_HOSTS can name others."


class FlinkHostNotAllowedError(InvalidError):
    type = "flink-host-not-allowed"
    title = "The service may not call this Flink cluster"
    hint = (
        "An administrator can name its host in GROUNDSKEEPER_FLINK_HOSTS (`host` or `host:port`, separated by commas). "
        "Without it, stop the job yourself when a job waits for that, and POST /v1/jobs/{id}/writers-stopped."
    )


class HeaderNotAllowedError(InvalidError):
    type = "header-not-allowed"
    title = "This header cannot be sent with a webhook"
    hint = "Names that the request itself needs are taken, and a value is one line of printable ASCII."


class NotAHudiTableError(InvalidError):
    type = "not-a-hudi-table"
    title = "There is no Hudi table at this path"
    hint = "A Hudi table has a file .hoodie/hoodie.properties below its base path."


class PathNotFoundError(InvalidError):
    type = "path-not-found"
    title = "The path does not exist, or cannot be read from here"
    hint = "Check the spelling, and that the service has the rights and options to read it."


class PathForbiddenError(GroundskeeperError):
    type = "path-not-allowed"
    title = "The path is not below one of the allowed roots"
    hint = "An administrator can extend GROUNDSKEEPER_ALLOWED_ROOTS."


class StorageUnsupportedError(InvalidError):
    type = "storage-not-supported"
    title = "This kind of storage is not supported"
    hint = "Supported are local paths (file:) and S3 (s3:, s3a:)."


class StorageError(GroundskeeperError):
    type = "storage-error"
    title = "The table's storage did not answer as it should"
    hint = "Check that the storage is up and that the service may read it, then try again."


class FlinkError(GroundskeeperError):
    type = "flink-error"
    title = "The Flink cluster did not answer as it should"
    hint = "Check `writers.flink` of the table, and that the cluster is up."


class PollTimedOutError(StorageError):
    type = "look-too-slow"
    title = "The table's storage answers too slowly"
    hint = "Check the storage. The table is looked at again, less and less often as long as this goes on."


class PollFailedError(StorageError):
    type = "look-failed"
    title = "The table could not be looked at"
    hint = "The service's log says more. The table is looked at again, less and less often as long as this goes on."


class TableUnsupportedError(InvalidError):
    type = "table-not-supported"
    title = "This Hudi table is of a kind that Groundskeeper does not serve"
    hint = "Table versions 6, 8 and 9 with Parquet base files are supported."


class ConflictError(GroundskeeperError):
    """It makes sense, but not in the state that things are in."""


class TableAlreadyRegisteredError(ConflictError):
    type = "table-already-registered"
    title = "A table with this base path is registered already"
    hint = "Use the registered one (`table_id`), or unregister it first."


class BucketIndexContradictedError(ConflictError):
    type = "bucket-index-contradicted"
    title = "The record keys in the table contradict the claimed bucket index"
    hint = "Claim the number of buckets and the hash fields that the writers use (`hoodie.bucket.index.*`)."


class TableBusyError(ConflictError):
    type = "table-busy"
    title = "The table has active jobs"
    hint = "Wait for them or cancel them first."


class JobConflictError(ConflictError):
    type = "job-conflict"
    title = "Another active job of this table stands in the way"
    hint = "Wait for it (`job_id`) or cancel it first."


class IncidentOpenError(ConflictError):
    """`extensions["incident_ids"]` are those that stand in the way."""

    type = "incident-open"
    title = "Rows of the table are astray, and this job might take away what they can be repaired from"
    hint = "Run the job `repair` first, or close the incidents (POST /v1/incidents/{id}/close) if they are none."


class IncidentClosedError(ConflictError):
    type = "incident-already-closed"
    title = "The incident has been closed already"
    hint = "GET /v1/incidents shows what has become of it."


class JobNotWaitingError(ConflictError):
    type = "job-not-waiting"
    title = "This job does not wait for writers to be stopped"
    hint = "GET /v1/jobs/{id} shows its state, and in `hand_over` whether it waits."


class FenceLosesFlinkError(ConflictError):
    type = "fence-loses-flink-batches"
    title = "A Flink job writes this table, and fencing would lose its batch"
    hint = (
        "Leave `on_active_writers` at `wait`: the job waits until the Flink job was stopped with a savepoint. If none "
        'writes the table any more, PATCH it with `{"writers": {"engines": [...]}}`.'
    )


class JobNotCancellableError(ConflictError):
    type = "job-already-ended"
    title = "The job has ended already"
    hint = "Only queued, leased and running jobs can be cancelled."


class IdempotencyKeyReusedError(ConflictError):
    type = "idempotency-key-reused"
    title = "This Idempotency-Key was used for another job of this table"
    hint = "Take a new key for a new job; repeat the same request to get the first answer again (`job_id`)."


class LeaseLostError(ConflictError):
    type = "lease-lost"
    title = "This attempt does not hold the job any more"
    hint = "Stop, and write nothing: another attempt may be running, or the job has ended."


class WebhookDisabledError(ConflictError):
    type = "webhook-disabled"
    title = "The webhook is disabled, so nothing is sent to it"
    hint = "POST /v1/webhooks/{id}/enable enables it."


class KafkaMissingError(ConflictError):
    type = "kafka-not-installed"
    title = "The service was installed without what it needs to write to Kafka"
    hint = "An administrator has to run pip install 'groundskeeper[kafka]' and start the service again."


class SecretKeyMissingError(ConflictError):
    type = "secret-key-missing"
    title = "The service has no key to keep secrets with"
    hint = "An administrator has to set GROUNDSKEEPER_SECRET_KEYS, the same for every replica."


class SecretUnreadableError(ConflictError):
    type = "secret-unreadable"
    title = "A stored secret cannot be read: it was kept with another key"
    hint = "Give GROUNDSKEEPER_SECRET_KEYS the old key back; or rotate the webhook's secret and set its headers again."


class UnauthenticatedError(GroundskeeperError):
    type = "unauthenticated"
    title = "This call needs a valid bearer token"
    hint = "Send `Authorization: Bearer <token>`; `groundskeeper token create` makes one."


class ForbiddenError(GroundskeeperError):
    type = "forbidden"
    title = "The token's role does not allow this call"
    hint = "Ask an administrator for a token with a higher role."


class MethodNotAllowedError(GroundskeeperError):
    type = "method-not-allowed"
    title = "This address does not know this method"
    hint = "The header `Allow` lists the methods that it knows."


class RequestTooLargeError(GroundskeeperError):
    type = "request-too-large"
    title = "The body of this request is too large"
    hint = "An administrator can raise GROUNDSKEEPER_MAX_REQUEST_BYTES."


class TooManyStreamsError(GroundskeeperError):
    type = "too-many-streams"
    title = "Too many event streams are open"
    hint = "Close one, or ask for pages: GET /v1/events with `Accept: application/json`."


class DatabaseUnavailableError(GroundskeeperError):
    type = "database-unavailable"
    title = "The service's database does not answer"
    hint = "Check that the database is up and that GROUNDSKEEPER_DATABASE names it, then try again."


class NotReadyError(GroundskeeperError):
    type = "not-ready"
    title = "The service cannot take calls yet"
    hint = "Wait a moment; `groundskeeper migrate` brings the database up to date."


class SettingsError(GroundskeeperError):
    type = "settings-invalid"
    title = "The service cannot start with these settings"
    hint = ""
