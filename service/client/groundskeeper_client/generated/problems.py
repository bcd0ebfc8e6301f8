"""The errors of the API, a class for each type of problem. Generated from its OpenAPI document by
`python -m service.client.generator`."""

from groundskeeper_client.errors import ApiError


class AdviceOutdatedError(ApiError):
    """There is no open advice that fits the policy"""

    type = "advice-outdated"


class BodyNotJsonError(ApiError):
    """The body of this request is not JSON"""

    type = "body-not-json"


class BucketFilesNotMergeableError(ApiError):
    """The files of a table with a bucket index cannot be merged"""

    type = "bucket-files-not-mergeable"


class BucketIndexContradictedError(ApiError):
    """The record keys in the table contradict the claimed bucket index"""

    type = "bucket-index-contradicted"


class CallbackUnknownTableError(ApiError):
    """No table is registered with the base path of this callback"""

    type = "callback-unknown-table"


class CatalogFailedError(ApiError):
    """The catalog answered with an error"""

    type = "catalog-failed"


class CatalogNotFoundError(ApiError):
    """No catalog has this name"""

    type = "catalog-not-found"


class ChangedMeanwhileError(ApiError):
    """The object has changed since you read it"""

    type = "changed-meanwhile"


class ConsumerNotFoundError(ApiError):
    """The table has no consumer of this name"""

    type = "consumer-not-found"


class DatabaseDamagedError(ApiError):
    """The service's database is damaged"""

    type = "database-damaged"


class DatabaseUnavailableError(ApiError):
    """The service's database cannot be used"""

    type = "database-unavailable"


class DeliveryEndedError(ApiError):
    """The delivery is not pending, so it cannot be skipped"""

    type = "delivery-ended"


class DeliveryNotFoundError(ApiError):
    """No delivery with this id is known"""

    type = "delivery-not-found"


class ExpansionFactorWithoutBucketsError(ApiError):
    """Only a table with a bucket index can be prepared for an expansion"""

    type = "expansion-factor-without-buckets"


class FenceLosesFlinkBatchesError(ApiError):
    """A Flink job writes this table, and fencing would lose its batch"""

    type = "fence-loses-flink-batches"


class FleetUnavailableError(ApiError):
    """The process for answers about all tables does not answer"""

    type = "fleet-unavailable"


class FlinkHostNotAllowedError(ApiError):
    """The service may not call this Flink cluster"""

    type = "flink-host-not-allowed"


class FlinkStateReturnsError(ApiError):
    """The Flink job with its state would write to file groups that are replaced now"""

    type = "flink-state-returns"


class ForbiddenError(ApiError):
    """The token's role does not allow this call"""

    type = "forbidden"


class FreezeNotFoundError(ApiError):
    """No freeze has this name"""

    type = "freeze-not-found"


class HeaderNotAllowedError(ApiError):
    """This header cannot be sent with a webhook"""

    type = "header-not-allowed"


class IdempotencyKeyReusedError(ApiError):
    """This Idempotency-Key was used for another job of this table"""

    type = "idempotency-key-reused"


class IncidentAlreadyClosedError(ApiError):
    """The incident is already closed"""

    type = "incident-already-closed"


class IncidentNotFoundError(ApiError):
    """No incident with this id is known"""

    type = "incident-not-found"


class IncidentOpenError(ApiError):
    """Rows of the table are misplaced, and this job might delete what their repair needs"""

    type = "incident-open"


class JobAlreadyEndedError(ApiError):
    """The job has already ended"""

    type = "job-already-ended"


class JobConflictError(ApiError):
    """This job conflicts with another active job of the table"""

    type = "job-conflict"


class JobNotFoundError(ApiError):
    """No job with this id is known"""

    type = "job-not-found"


class JobNotRetriableError(ApiError):
    """Only a job that failed or was cancelled can be submitted again"""

    type = "job-not-retriable"


class JobNotWaitingError(ApiError):
    """This job is not waiting for writers to be stopped"""

    type = "job-not-waiting"


class JsonRequiredError(ApiError):
    """Without a bearer token, a POST must be JSON"""

    type = "json-required"


class KafkaNotInstalledError(ApiError):
    """The service was installed without its Kafka client"""

    type = "kafka-not-installed"


class LockChangedError(ApiError):
    """Another holder has the lock now"""

    type = "lock-changed"


class LockEndsByItselfError(ApiError):
    """The lock ends by itself"""

    type = "lock-ends-by-itself"


class LockFreeError(ApiError):
    """Nobody holds the table's lock"""

    type = "lock-free"


class LockHeldByJobError(ApiError):
    """A job of this service holds the lock"""

    type = "lock-held-by-job"


class LockNotRemovableError(ApiError):
    """The service cannot remove a lock of this provider"""

    type = "lock-not-removable"


class LockTooYoungError(ApiError):
    """The lock has not been held for long enough to prove that its holder is dead"""

    type = "lock-too-young"


class LockUnavailableError(ApiError):
    """No server of the table's lock can be reached"""

    type = "lock-unavailable"


class LoginUnencryptedError(ApiError):
    """A session needs HTTPS: without it, its cookie could be read on the way"""

    type = "login-unencrypted"


class MetastoreNotAllowedError(ApiError):
    """Jobs may not connect to this metastore"""

    type = "metastore-not-allowed"


class NoLoginError(ApiError):
    """There is no token to log in with"""

    type = "no-login"


class NotAHudiTableError(ApiError):
    """There is no Hudi table at this path"""

    type = "not-a-hudi-table"


class NotReadyError(ApiError):
    """The service is not ready for calls yet"""

    type = "not-ready"


class NotificationNeededError(ApiError):
    """This receiver cannot read the events of a webhook"""

    type = "notification-needed"


class NotificationNotFoundError(ApiError):
    """No notification has this name"""

    type = "notification-not-found"


class OptionNotAllowedError(ApiError):
    """An option of the table is not allowed"""

    type = "option-not-allowed"


class ParamsInvalidError(ApiError):
    """A value in this request is missing, unknown or out of range"""

    type = "params-invalid"


class PathNotAllowedError(ApiError):
    """The path is not below one of the allowed roots"""

    type = "path-not-allowed"


class PathNotFoundError(ApiError):
    """The path does not exist, or the service cannot read it"""

    type = "path-not-found"


class PlanUnusableError(ApiError):
    """Hudi's own clustering would break the table's bucket index"""

    type = "plan-unusable"


class PolicyNotFoundError(ApiError):
    """No policy is set at this level"""

    type = "policy-not-found"


class ProblemNotStandingError(ApiError):
    """No problem with this id exists now"""

    type = "problem-not-standing"


class RequestTooLargeError(ApiError):
    """The body of this request is too large"""

    type = "request-too-large"


class RouteNotFoundError(ApiError):
    """No resource has this address"""

    type = "route-not-found"


class SecretKeyMissingError(ApiError):
    """The service has no key to encrypt secrets with"""

    type = "secret-key-missing"


class SecretUnreadableError(ApiError):
    """A stored secret cannot be decrypted: it was encrypted with another key"""

    type = "secret-unreadable"


class ServiceBusyError(ApiError):
    """The service has more to do than it can take"""

    type = "service-busy"


class ShadowNotFoundError(ApiError):
    """The policy of this pattern has no shadow"""

    type = "shadow-not-found"


class SimulationTooLargeError(ApiError):
    """This simulation would take too long"""

    type = "simulation-too-large"


class SnapshotNotTakenError(ApiError):
    """No poll of the table has succeeded yet"""

    type = "snapshot-not-taken"


class StorageError(ApiError):
    """Reading the table's storage failed"""

    type = "storage-error"


class StorageNotSupportedError(ApiError):
    """This kind of storage is not supported"""

    type = "storage-not-supported"


class TableAlreadyRegisteredError(ApiError):
    """A table with this base path is already registered"""

    type = "table-already-registered"


class TableBusyError(ApiError):
    """The table has active jobs"""

    type = "table-busy"


class TableNotFoundError(ApiError):
    """No table with this id is registered"""

    type = "table-not-found"


class TableNotSupportedError(ApiError):
    """Groundskeeper does not support this kind of Hudi table"""

    type = "table-not-supported"


class TooManyFreezesError(ApiError):
    """There are too many freezes"""

    type = "too-many-freezes"


class TooManyReadsError(ApiError):
    """Too many tables are being read at this moment"""

    type = "too-many-reads"


class TooManyShadowsError(ApiError):
    """There are too many shadows of policies"""

    type = "too-many-shadows"


class TooManyWaitsError(ApiError):
    """Too many calls wait for the end of jobs"""

    type = "too-many-waits"


class UnauthenticatedError(ApiError):
    """This call needs a valid bearer token"""

    type = "unauthenticated"


class UrlNotAllowedError(ApiError):
    """Webhooks may not be sent to this URL"""

    type = "url-not-allowed"


class WebhookDisabledError(ApiError):
    """The webhook is disabled, so nothing is sent to it"""

    type = "webhook-disabled"


class WebhookNotFoundError(ApiError):
    """No webhook with this id is known"""

    type = "webhook-not-found"


class WebhookOfNotificationError(ApiError):
    """The webhook belongs to a notification"""

    type = "webhook-of-notification"


class WritersAliveError(ApiError):
    """A writer of the table is alive, and may hold the lock"""

    type = "writers-alive"


BY_TYPE: dict[str, type[ApiError]] = {
    each.type: each
    for each in (
        AdviceOutdatedError,
        BodyNotJsonError,
        BucketFilesNotMergeableError,
        BucketIndexContradictedError,
        CallbackUnknownTableError,
        CatalogFailedError,
        CatalogNotFoundError,
        ChangedMeanwhileError,
        ConsumerNotFoundError,
        DatabaseDamagedError,
        DatabaseUnavailableError,
        DeliveryEndedError,
        DeliveryNotFoundError,
        ExpansionFactorWithoutBucketsError,
        FenceLosesFlinkBatchesError,
        FleetUnavailableError,
        FlinkHostNotAllowedError,
        FlinkStateReturnsError,
        ForbiddenError,
        FreezeNotFoundError,
        HeaderNotAllowedError,
        IdempotencyKeyReusedError,
        IncidentAlreadyClosedError,
        IncidentNotFoundError,
        IncidentOpenError,
        JobAlreadyEndedError,
        JobConflictError,
        JobNotFoundError,
        JobNotRetriableError,
        JobNotWaitingError,
        JsonRequiredError,
        KafkaNotInstalledError,
        LockChangedError,
        LockEndsByItselfError,
        LockFreeError,
        LockHeldByJobError,
        LockNotRemovableError,
        LockTooYoungError,
        LockUnavailableError,
        LoginUnencryptedError,
        MetastoreNotAllowedError,
        NoLoginError,
        NotAHudiTableError,
        NotReadyError,
        NotificationNeededError,
        NotificationNotFoundError,
        OptionNotAllowedError,
        ParamsInvalidError,
        PathNotAllowedError,
        PathNotFoundError,
        PlanUnusableError,
        PolicyNotFoundError,
        ProblemNotStandingError,
        RequestTooLargeError,
        RouteNotFoundError,
        SecretKeyMissingError,
        SecretUnreadableError,
        ServiceBusyError,
        ShadowNotFoundError,
        SimulationTooLargeError,
        SnapshotNotTakenError,
        StorageError,
        StorageNotSupportedError,
        TableAlreadyRegisteredError,
        TableBusyError,
        TableNotFoundError,
        TableNotSupportedError,
        TooManyFreezesError,
        TooManyReadsError,
        TooManyShadowsError,
        TooManyWaitsError,
        UnauthenticatedError,
        UrlNotAllowedError,
        WebhookDisabledError,
        WebhookNotFoundError,
        WebhookOfNotificationError,
        WritersAliveError,
    )
}
