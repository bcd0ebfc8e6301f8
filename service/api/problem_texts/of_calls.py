"""Problems of single calls: what they name, what they send, who makes them."""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import Explanation

OF_CALLS: Final = {
    "table-not-found": Explanation(
        "The id in the address is not that of a registered table. It was mistyped, or the table has been unregistered:"
        " a table that is registered again gets a new id.",
        "There is no table tbl_0f3c2a9d5e7b1c44.",
    ),
    "job-not-found": Explanation(
        "The id is not that of a known job. Ended jobs are deleted after GROUNDSKEEPER_HISTORY_DAYS, and all jobs of a"
        " table when it is unregistered.",
        "There is no job job_4be1c0d2f6a89b37.",
    ),
    "callback-unknown-table": Explanation(
        "A writer reported a commit on a base path that no registered table has. The paths are compared after `..` and"
        " links are resolved, so another spelling of the same path is no reason.",
        "No table is registered at s3a://lake/orders.",
    ),
    "snapshot-not-taken": Explanation(
        "The state of a table is that of its last successful poll, and there has been none yet: the table was"
        " registered a moment ago, or every poll has failed since.",
        "Reading the table's storage failed: s3a://lake/orders: connection refused",
    ),
    "incident-not-found": Explanation(
        "The id is not that of a known incident. Closed incidents are deleted once their commit has left the table's"
        " active timeline.",
        "There is no incident inc_8c1d0e5f2a7b4963.",
    ),
    "webhook-not-found": Explanation(
        "The id is not that of a webhook. It was mistyped, or the webhook has been deleted together with its"
        " deliveries.",
        "There is no webhook wh_5d0c9b8a7f6e4d3c.",
    ),
    "delivery-not-found": Explanation(
        "The id is not that of a delivery that is still kept: a delivery is deleted with its event, and with its"
        " webhook.",
        "There is no delivery dlv_9c1d3e5f7a2b4c6d.",
    ),
    "route-not-found": Explanation(
        "The address has a spelling that no resource has. Every path has exactly one spelling: a slash at the end is"
        " another path.",
        "GET /v1/tables/",
    ),
    "token-not-found": Explanation(
        "The id given on the command line is not that of a token. The id of a token is the part between the first and"
        " the second underscore, not the whole token.",
        "There is no token 4f0c9d2b71aa.",
    ),
    "policy-not-found": Explanation(
        "Policies are set at several levels, and this pattern or table has none of its own. The effective policy of a"
        " table exists in any case: it comes from the other levels and from the defaults.",
        "No policy is set for orders_*.",
    ),
    "consumer-not-found": Explanation(
        "Consumers are known by the names under which they report how far they have come. This one has never reported,"
        " or was deleted.",
        "There is no consumer orders-to-warehouse of table tbl_0f3c2a9d5e7b1c44.",
    ),
    "params-invalid": Explanation(
        "A member of the body, a parameter of the query, a header or a part of the path is missing, has a wrong type or"
        " is out of range; or it is not known, which is refused since a misspelt filter would select everything."
        " `errors`"
        " lists every case.",
        "tabel_id: is not known here. The parameters of this call are: cursor, kind, limit, state, table_id.",
        {
            "errors": [{"field": "tabel_id", "message": "is not known here"}],
            "known": ["cursor", "kind", "limit", "state", "table_id"],
        },
    ),
    "method-not-allowed": Explanation(
        "The address exists, but not for this method of HTTP: a list is read by GET and added to by POST, for example.",
        "PUT /v1/tables",
    ),
    "request-too-large": Explanation(
        "The service reads no body beyond its limit, so that a caller cannot fill its memory.",
        "The limit is 8388608 bytes.",
    ),
    "json-required": Explanation(
        "While no token exists, or with the cookie of a session, a web page on another site could make your browser"
        " send"
        " calls. It cannot make it send JSON, so other content is refused for calls that change something.",
        "This call was sent as text/plain.",
    ),
    "changed-meanwhile": Explanation(
        "The header If-Match names a state that is not the present one. Another caller has changed or deleted the"
        " object"
        " after you read it, and your update would undo that unseen. Nothing was changed.",
        'Its state is "3fa1b2c4d5e60718" now.',
        {"etag": '"3fa1b2c4d5e60718"'},
    ),
    "idempotency-key-reused": Explanation(
        "An Idempotency-Key stands for one job of one table. The same key came with another kind or other"
        " parameters, so"
        " returning the first job would be wrong, and so would be a second one.",
        "The key belongs to job_4be1c0d2f6a89b37 (compaction).",
        {"job_id": "job_4be1c0d2f6a89b37"},
    ),
    "unauthenticated": Explanation(
        "Tokens exist, so every call needs one. The call had none, or the token is mistyped, has expired or was"
        " revoked;"
        " or the session of the cookie has ended.",
        "The token is not valid.",
    ),
    "forbidden": Explanation(
        "Each call needs a role: reader, operator, admin or worker. The token is valid, but its role is not enough;"
        " or it"
        " is a worker's token for other worker groups.",
        "This call needs the role operator; the token has the role reader.",
    ),
    "no-login": Explanation(
        "A login exchanges a token for a cookie. The call had no token: nobody needs one yet, or it came with the"
        " cookie"
        " of an earlier login.",
        "There is no token to log in with",
    ),
    "login-unencrypted": Explanation(
        "The call came over plain HTTP from another machine, where anybody on the way can read a cookie and use it.",
        "A session needs HTTPS: without it, its cookie could be read on the way",
    ),
    "too-many-streams": Explanation(
        "Each open stream of events holds a connection. Their number is limited for the service and for each token. A"
        " client that opens a new stream without closing the last one gets here.",
        "50 streams of this token are open.",
    ),
    "too-many-waits": Explanation(
        "Each call with `wait_seconds` holds a connection until its job ends. Their number is limited for the"
        " service and"
        " for each token.",
        "100 calls of this token wait for jobs.",
    ),
    "job-not-retriable": Explanation(
        "A retry repeats the work of a job that came to nothing. This job has succeeded, or has not ended yet, or its"
        " end is not known, so a repetition might do the work twice.",
        "Job job_4be1c0d2f6a89b37 is running.",
    ),
    "delivery-ended": Explanation(
        "Only a delivery that waits for its next attempt can hold up those behind it. This one was delivered, was given"
        " up or was skipped before.",
        "Delivery dlv_6f0a1b2c3d4e5f60 is delivered.",
    ),
}
