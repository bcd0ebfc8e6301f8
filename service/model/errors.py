"""The hierarchy of errors. The type of an error says what happened, `detail` describes this case, and `hint` says what
to do. Errors have no HTTP status here: `service.api.statuses` maps the types to statuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from jobs.contract import Problem
from jobs.errors import JobError
from jobs.problems.problem_type import ProblemType
from jobs.redaction import redacted

_MAX_DETAIL = 4000
_TEXTS = ("type", "title", "hint", "why", "example")

ErrorOfJobs = type[JobError] | ProblemType


class GroundskeeperError(Exception):
    """Base of all errors that a user may see.

    `extensions` are further members of the problem document (RFC 9457, section 3.2), such as counts or the id of the
    conflicting row. For every type, `why` explains its causes, and an example has the detail and extensions of one
    case.
    """

    type = "internal-error"
    title = "Something went wrong inside Groundskeeper"
    hint = "Check the service's log, and report the error if it happens again."
    why = (
        "An unexpected error occurred in the service. The service's log has the cause. The answer leaves out the cause,"
        " because the cause might contain secrets."
    )
    example = "Something went wrong inside Groundskeeper"
    example_members: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, *, like: ErrorOfJobs | None = None) -> None:
        """`like` is the error of `jobs` with the same meaning, if jobs report this error, too. The class takes from
        `like` the texts that it does not declare itself."""
        for text in _TEXTS if like else ():
            if text not in vars(cls):
                setattr(cls, text, getattr(like, text))

    def __init__(
        self, detail: str = "", *, hint: str | None = None, extensions: Mapping[str, Any] | None = None
    ) -> None:
        # Secrets must not remain in the text. The text may come from a library, a table or a storage, and is shown,
        # stored, logged and sent in events.
        self.detail = _storable(redacted(detail))
        super().__init__(self.detail or self.title)
        self.hint = self.hint if hint is None else hint
        self.extensions = dict(extensions or {})

    def problem(self) -> Problem:
        return Problem(type=self.type, title=self.title, detail=self.detail, hint=self.hint)


def _storable(detail: str) -> str:
    """Returns the text without characters that a database refuses. A name from a table in the text may have such
    characters."""
    return detail.replace("\0", "").encode(errors="replace").decode()[:_MAX_DETAIL]


class NotFoundError(GroundskeeperError):
    """The resource that the caller names does not exist."""


class WebhookNotFoundError(NotFoundError):
    type = "webhook-not-found"
    title = "No webhook with this id is known"
    hint = "GET /v1/webhooks, or `groundskeeper webhooks list`, lists the webhooks."
    why = (
        "The id is not the id of a webhook. Perhaps it was mistyped, or the webhook has been deleted together with its"
        " deliveries."
    )
    example = "There is no webhook wh_5d0c9b8a7f6e4d3c."


class NotificationNotFoundError(NotFoundError):
    type = "notification-not-found"
    title = "No notification has this name"
    hint = "GET /v1/notifications, or `groundskeeper notifications list`, lists the notifications."
    why = "The name is not that of a notification. Perhaps it was mistyped, or the notification has been deleted."
    example = "There is no notification on-call."


class DeliveryNotFoundError(NotFoundError):
    type = "delivery-not-found"
    title = "No delivery with this id is known"
    hint = "GET /v1/webhooks/{id}/deliveries lists the deliveries of a webhook; old ones are removed."
    why = (
        "The id is not the id of a delivery that is still kept: a delivery is deleted with its event, and with its"
        " webhook."
    )
    example = "There is no delivery dlv_9c1d3e5f7a2b4c6d."


class RouteNotFoundError(NotFoundError):
    type = "route-not-found"
    title = "No resource has this address"
    hint = "The API documentation at /docs lists all addresses."
    why = (
        "No resource has exactly this address. Every path has only one spelling: with a slash at its end, a path is"
        " another path."
    )
    example = "GET /v1/tables/"


class TokenNotFoundError(NotFoundError):
    type = "token-not-found"
    title = "No token with this id is known"
    hint = "`groundskeeper token list` lists the tokens."
    why = (
        "The id given on the command line is not the id of a token. The id is the part of a token between its first and"
        " its second underscore, not the whole token."
    )
    example = "There is no token 4f0c9d2b71aa."


class PolicyNotFoundError(NotFoundError):
    type = "policy-not-found"
    title = "No policy is set at this level"
    hint = "GET /v1/policies lists the policies of patterns. Without a policy the defaults and the other levels apply."
    why = (
        "Policies are set at several levels, and this pattern or table has none of its own. The effective policy of a"
        " table exists in any case: it comes from the other levels and from the defaults."
    )
    example = "No policy is set for orders_*."


class InvalidError(GroundskeeperError):
    """The request is invalid, whatever the state of the table."""


class ParamsInvalidError(InvalidError):
    """`extensions["errors"]` lists the problems, each with `field` and `message`."""

    type = "params-invalid"
    title = "A value in this request is missing, unknown or out of range"
    hint = "The API documentation, at /docs of the service, lists the members and parameters of each call."
    why = (
        "A member of the body, a parameter of the query, a header or a part of the path is missing, has a wrong type,"
        " or is out of range. A name that is not known is refused as well, since a misspelt filter would select"
        " everything. `errors` lists every case."
    )
    example = "tabel_id: is not known here. The parameters of this call are: cursor, kind, limit, state, table_id."
    example_members: ClassVar[Mapping[str, Any]] = {
        "errors": [{"field": "tabel_id", "message": "is not known here"}],
        "known": ["cursor", "kind", "limit", "state", "table_id"],
    }

    @classmethod
    def of(cls, field: str, message: str) -> Self:
        """Returns the error of one value."""
        return cls(f"{field}: {message}", extensions={"errors": [{"field": field, "message": message}]})


class BodyNotJsonError(InvalidError):
    """`extensions["errors"]` has one problem, without a field."""

    type = "body-not-json"
    title = "The body of this request is not JSON"
    hint = "Look at the character that the detail names; a comma, a quote or a bracket is often missing just before it."
    why = (
        "The body has to be one JSON document (RFC 8259) in UTF-8, without comments, and without a comma after the last"
        " member. The service also refuses numbers with thousands of digits and very deep nesting."
    )
    example = "the body of the request is not JSON: Expecting value, at character 18"
    example_members: ClassVar[Mapping[str, Any]] = {
        "errors": [{"field": "", "message": "is not JSON: Expecting value, at character 18"}]
    }


class ConflictError(GroundskeeperError):
    """The request is valid, but not in the current state."""


class UnauthenticatedError(GroundskeeperError):
    type = "unauthenticated"
    title = "This call needs a valid bearer token"
    hint = (
        "Send `Authorization: Bearer <token>`; on the command line, set GROUNDSKEEPER_TOKEN or --token-file."
        " `groundskeeper token create` creates a token."
    )
    why = (
        "Tokens exist, so every call needs a token. The call had none; or the token is mistyped, has expired or was"
        " revoked; or the session of the cookie has ended."
    )
    example = "The token is not valid."


class ForbiddenError(GroundskeeperError):
    type = "forbidden"
    title = "The token's role does not allow this call"
    hint = "Ask an administrator for a token with a higher role."
    why = (
        "Each call needs a role: reader, operator, admin or worker. The token is valid, but its role is not enough; or"
        " it is a worker's token for other worker groups."
    )
    example = "This call needs the role operator; the token has the role reader."


class MethodNotAllowedError(GroundskeeperError):
    type = "method-not-allowed"
    title = "This address does not support this method"
    hint = "The header `Allow` lists the supported methods."
    why = (
        "The address exists, but not for this method of HTTP. For example, GET reads a list, and POST adds to the list."
    )
    example = "PUT /v1/tables"


class RequestTooLargeError(GroundskeeperError):
    type = "request-too-large"
    title = "The body of this request is too large"
    hint = "An administrator can raise GROUNDSKEEPER_MAX_REQUEST_BYTES."
    why = "The service reads no body beyond its limit, so that a caller cannot fill its memory."
    example = "The limit is 8388608 bytes."


class TooManyStreamsError(GroundskeeperError):
    type = "too-many-streams"
    title = "Too many event streams are open"
    hint = "Close a stream, or request pages: GET /v1/events with `Accept: application/json`."
    why = (
        "Each open stream of events holds a connection. The number of streams is limited for the service and for each"
        " token. A client that opens new streams without closing old ones reaches the limit."
    )
    example = "50 streams of this token are open."


class DatabaseUnavailableError(GroundskeeperError):
    type = "database-unavailable"
    title = "The service's database cannot be used"
    hint = "Check that the database is up and that GROUNDSKEEPER_DATABASE points to it, then try again."
    why = (
        "The database refuses connections, does not answer in time, or is full; or its files were moved while they were"
        " open. The failed call has changed nothing."
    )
    example = "connection to server at 10.0.0.7, port 5432 failed"


class DatabaseDamagedError(DatabaseUnavailableError):
    type = "database-damaged"
    title = "The service's database is damaged"
    hint = (
        "Stop the service. Restore the database from a backup, or restore what `sqlite3 FILE .recover` can still read."
    )
    why = (
        "The database found that its own file is inconsistent: the disk is failing, or the file was copied or changed"
        " while the service was running."
    )
    example = "database disk image is malformed"


class NotReadyError(GroundskeeperError):
    type = "not-ready"
    title = "The service is not ready for calls yet"
    hint = "Wait a moment; `groundskeeper migrate` brings the database up to date."
    why = (
        "The service has started, but its database is of another version, a background task fails, or the database does"
        " not answer within the time of a probe."
    )
    example = "The database did not answer within 5 s."


class FleetUnavailableError(GroundskeeperError):
    type = "fleet-unavailable"
    title = "The process for answers about all tables does not answer"
    hint = "Try again in a moment. If the problem lasts, check the service's log and the machine's memory."
    why = (
        "A service with more than 500 tables has another process, which computes the overview, problems, decisions,"
        " forecasts and metrics. This process has ended, perhaps because memory ran out, and is started again; or it"
        " did not answer within a minute."
    )
    example = "The process that computes the answer ended twice."


class SettingsError(GroundskeeperError):
    type = "settings-invalid"
    title = "The service cannot start with these settings"
    hint = ""
    why = (
        "A setting in the environment is missing or unknown, or contradicts another one. The service does not guess the"
        " meaning of a setting, so it does not start. Only the command line shows this problem."
    )
    example = "GROUNDSKEEPER_POLL_SECONDS: must be greater than 0"
