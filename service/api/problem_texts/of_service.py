"""Problems of the service itself: its database, its secrets, its capacity, its webhooks."""

from __future__ import annotations

from typing import Final

from service.api.problem_texts.explanation import Explanation

OF_SERVICE: Final = {
    "internal-error": Explanation(
        "An error that the service does not expect. Its cause is in the service's log and not in the answer, because it"
        " might contain secrets.",
        "Something went wrong inside Groundskeeper",
    ),
    "url-not-allowed": Explanation(
        "Webhooks go to public addresses by https only. An address of the service's own network, a loopback or"
        " link-local"
        " one could be used to reach what callers cannot reach themselves. Names are resolved before each request.",
        "hooks.internal resolves to 10.0.0.5, which is private.",
    ),
    "header-not-allowed": Explanation(
        "A header of a webhook may not change how the request is framed, routed or signed, such as Host,"
        " Content-Length and webhook-signature, and it may not contain line breaks.",
        "Host",
    ),
    "webhook-disabled": Explanation(
        "The webhook was disabled by hand, or because nothing could be delivered to it for days. Nothing is sent to it"
        " until it is enabled.",
        "wh_5d0c9b8a7f6e4d3c is disabled: ada disabled it.",
    ),
    "kafka-not-installed": Explanation(
        "The URL names a Kafka topic, and the client for Kafka is an extra of the installation.",
        "kafka+ssl://broker-1:9093/lake-events",
    ),
    "secret-key-missing": Explanation(
        "Secrets of tables and webhooks are stored encrypted, and the service has neither a key of its settings nor one"
        " of its own beside an SQLite database.",
        "GROUNDSKEEPER_SECRET_KEYS is not set.",
    ),
    "secret-unreadable": Explanation(
        "The secret was encrypted with a key that this replica does not have: the key was changed, or the replicas have"
        " different ones.",
        "A secret of table tbl_0f3c2a9d5e7b1c44 cannot be decrypted.",
    ),
    "too-many-reads": Explanation(
        "Tables are read by a limited number of processes, and all of them are taken, with as many calls waiting as may"
        " wait.",
        "Too many tables are being read at this moment",
    ),
    "service-busy": Explanation(
        "The bodies of requests that are held in memory have reached their limit; this one was not read.",
        "Too many large requests have arrived at once.",
    ),
    "database-unavailable": Explanation(
        "The database refuses connections, does not answer in time, is full, or its files are not where they were"
        " opened."
        " A call that was being worked off has changed nothing.",
        "connection to server at 10.0.0.7, port 5432 failed",
    ),
    "database-damaged": Explanation(
        "The database found its own file to be inconsistent: the disk is failing, or the file was copied or changed"
        " while"
        " the service was running.",
        "database disk image is malformed",
    ),
    "not-ready": Explanation(
        "The service has started, but its database is of another version, a background task fails, or the database does"
        " not answer within the time of a probe.",
        "The database did not answer within 5 s.",
    ),
    "settings-invalid": Explanation(
        "A setting of the environment is missing, unknown or contradicts another one. The service does not start with"
        " settings that it would have to guess about. This is shown on the command line only.",
        "GROUNDSKEEPER_POLL_SECONDS: must be greater than 0",
    ),
}
