"""The patterns of texts in requests, each with the words for a text that does not match it."""

from __future__ import annotations

from jobs.kinds.words import HIVE_NAME, INSTANT, METASTORE_URIS, NO_NUL
from service.policies.policy import GROUP_PATTERN

SOME_TEXT = r"^[^\x00]+$"
ACTION = r"^[a-z]+$"
A_REASON = r"^[^\x00]*\S[^\x00]*$"
COMMIT_TIME = r"^[0-9]{14,17}$"
EVENT_TYPE = r"^[a-z*]+(\.[a-z*]+)?$"
GLOB = r"^[^*\x00]*(\*[^*\x00]*){0,4}$"
HTTP_URL = r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"
HUDI_VERSION = r"^[0-9]+\.[0-9]+\.[0-9]+([.-]\w+)*$"
LOCK_PROVIDER = r"^(filesystem|zookeeper|\w+(\.[\w$]+)+)$"
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
TIME_OF_DAY = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"

OTHERWISE = {
    NO_NUL: "must not contain the character NUL",
    SOME_TEXT: "must not be empty or contain the character NUL",
    ACTION: "must be an action of the timeline, such as deltacommit",
    A_REASON: "must have a character that is not a blank, and none that is NUL",
    COMMIT_TIME: "must be an instant, such as 20260101120000000",
    EVENT_TYPE: "must be a type of event, such as commit.completed, or have * for a part of it",
    GLOB: "must have at most four *, and not the character NUL",
    GROUP_PATTERN: "must be 1 to 24 letters, digits, dots, hyphens and underscores, and begin with a letter or digit",
    HIVE_NAME: "must be 1 to 128 letters, digits and underscores",
    HTTP_URL: "must be an http or https URL without user, query and fragment",
    HUDI_VERSION: "must be a version of Hudi, such as 1.2.0",
    INSTANT: "must be an instant, such as 20260101120000000",
    LOCK_PROVIDER: "must be filesystem, zookeeper or the class of a lock provider",
    METASTORE_URIS: "must be thrift URIs, separated by commas, such as thrift://metastore:9083",
    NAME: "must be 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit",
    TIME_OF_DAY: "must be a time of day, such as 22:30",
}
